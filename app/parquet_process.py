"""A process that reads one Parquet file from standard input and writes an Arrow stream to standard output.

It imports little, and its memory and time are limited, as a malicious file could take any amount of both.
"""

import io
import os
import re
import resource
import sys

REFUSED = 65
"""Exit code if the file is refused; the reason is then on standard error."""
_MOST_COLUMNS = 1 << 13
# Memory that decompressing zstd takes for each column, however few numbers the column has.
_COLUMN_BYTES = 160 << 10
# Characters of a reason; the library may quote names of any length.
_REASON_LENGTH = 300


def main(max_bytes: int, max_seconds: int) -> None:
    """Convert the file on standard input; exit with `REFUSED` if it cannot be read or has too many columns.

    A file that takes more than `max_bytes`, plus a fixed amount for each column, or more than `max_seconds` of
    processor time, ends the process. If the library has no memory left to report this, it may instead hang for ever.
    """
    # Hides what the library prints when it panics.
    reasons = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    from arro3.core import DataType  # not at the top, as the parent process imports this module too
    from arro3.io import read_parquet, write_ipc_stream

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (max_seconds, max_seconds))
    content = sys.stdin.buffer.read()
    try:
        rows = read_parquet(io.BytesIO(content))
        schema = rows.schema
        if (columns := len(schema.names)) > _MOST_COLUMNS:  # from its footer; nothing else has been read
            raise ValueError(f"it has {columns} columns; {_MOST_COLUMNS} are read at most, or one of lists of numbers")
        for name, of in zip(schema.names, schema.types, strict=True):
            # Lists of lists may take long to read, only to be refused.
            if DataType.is_nested(of.value_type or of):
                raise ValueError(f"column {name!r} has structs, or lists of lists; numbers and lists of them are read")
        max_bytes += columns * _COLUMN_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, max_bytes))
        write_ipc_stream(rows, sys.stdout.buffer, compression=None)
    except BaseException as error:  # panics of the library are not subclasses of Exception
        # No more than a pipe holds: the parent process reads the stream to its end first.
        reason = str(error)[:_REASON_LENGTH]
        within = re.search(r'\w+\("(.*?)(?:"\)|$)', reason)  # as in: General("Corrupt footer")
        os.write(reasons, (within[1] if within else reason).encode())
        sys.exit(REFUSED)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
