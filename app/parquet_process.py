"""The process that reads one Parquet file: from its input to its output, where an Arrow stream comes out.

It imports little, and takes no more memory and time than it is told: a file may be made to take any amount.
"""

import io
import os
import re
import resource
import sys

REFUSED = 65
"""Exit code where the reason was written to the standard error."""
_MOST_COLUMNS = 1 << 13
# What unpacks zstd takes so much for each column, however few numbers that has.
_COLUMN_BYTES = 160 << 10


def main(max_bytes: int, max_seconds: int) -> None:
    """Read the file; exit with `REFUSED` if it is none, or has too many columns.

    What takes more memory than this and some for each column, or more time, ends the process; or the library waits for
    itself for ever, where it has no memory to say so.
    """
    # What the library prints when it panics is for its makers.
    reasons = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    from arro3.io import read_parquet, write_ipc_stream  # here, as who starts this process imports the file too

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (max_seconds, max_seconds))
    content = sys.stdin.buffer.read()
    try:
        rows = read_parquet(io.BytesIO(content))
        if (columns := len(rows.schema.names)) > _MOST_COLUMNS:  # of its footer, which alone has been read
            raise ValueError(f"it has {columns} columns; {_MOST_COLUMNS} are read at most, or one of lists of numbers")
        max_bytes += columns * _COLUMN_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, max_bytes))
        write_ipc_stream(rows, sys.stdout.buffer, compression=None)
    except BaseException as error:  # panics of the library are no Exception
        within = re.search(r'\w+\("(.*)"\)', str(error))  # as in: General("Corrupt footer")
        os.write(reasons, (within[1] if within else str(error)).encode())
        sys.exit(REFUSED)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
