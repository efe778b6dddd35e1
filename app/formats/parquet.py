"""Parquet files, which a separate process reads."""

import subprocess
from contextlib import suppress
from threading import Timer

from app import own_process
from app.core.arrays import Identified, PostedRows
from app.core.errors import InvalidInput
from app.formats.arrow_ipc.columns import rows_of
from app.formats.base import Body, RowsFormat
from app.parquet_process import REFUSED

# Memory limit of the reader in bytes, on top of twice the size of the file and some for each column. The reader holds
# twice the file, and one page or batch of each column.
_MEMORY_BYTES = 512 << 20
# CPU time limit of the reader. A file that is as large as a dataset may be takes half a second; other files wait.
_SECONDS = 4
# Wall time limit of the reader: longer than its CPU time, as other processes may use the CPU. A reader that runs out of
# memory may sleep instead of exiting.
_WAIT_SECONDS = 30
_BYTES_AT_A_TIME = 1 << 20


class Parquet(RowsFormat):
    """`application/vnd.apache.parquet`, for datasets only.

    Rows:
        A Parquet file whose columns are those of an Arrow stream, in any of its encodings.
    """

    media_type = "application/vnd.apache.parquet"
    in_own_process = True

    def matrix(self, body: Body) -> PostedRows | Identified:
        """Read the rows of a file, with their ids if it has any."""
        return rows_of(Body(_as_arrow(body), check_rows=body.check_rows))


def _as_arrow(body: Body) -> bytearray:
    """Convert a Parquet file to an Arrow stream.

    Raises:
        InvalidInput: the body is not a Parquet file, or takes too much memory or time to read.
    """
    memory = _MEMORY_BYTES + 2 * len(body.content)
    command = own_process.command("app.parquet_process", str(memory), str(_SECONDS))
    pipe = subprocess.PIPE
    # An empty environment, as that of the service may hold secrets.
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env={}) as reader:  # noqa: S603 - our own
        watch = Timer(_WAIT_SECONDS, reader.kill)
        watch.start()
        try:
            stream, said = _exchange(reader, body)
        finally:
            watch.cancel()
            reader.kill()  # unless it has ended
    if reader.returncode == REFUSED:
        raise InvalidInput(f"the body is not a Parquet file that can be read: {said}")
    if reader.returncode:
        raise InvalidInput(
            f"the Parquet file is damaged, or takes more than {memory} bytes of memory or {_SECONDS} seconds to read: "
            "several smaller files, or one column of lists of numbers, take less"
        )
    return stream


def _exchange(reader: "subprocess.Popen[bytes]", body: Body) -> tuple[bytearray, str]:
    """Send the file to the reader; return its Arrow stream, if not too long, and the beginning of its error message."""
    stdin, stdout, stderr = reader.stdin, reader.stdout, reader.stderr
    if stdin is None or stdout is None or stderr is None:
        raise TypeError("the process has no pipes")
    with suppress(BrokenPipeError):  # the reader's error message says why it stopped reading
        stdin.write(body.content)
        stdin.close()
    stream = bytearray()
    while piece := stdout.read(_BYTES_AT_A_TIME):
        stream += piece
        body.check_rows(len(stream))
    said = stderr.read(_BYTES_AT_A_TIME).decode(errors="replace")
    reader.wait()
    return stream, said
