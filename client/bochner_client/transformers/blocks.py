"""Long arrays sent as blocks that a service accepts: where to cut them, and how to send several at a time."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import numpy as np

from bochner_client.refusals import TooLarge
from bochner_client.transformers.rows import Rows

Cut = tuple[int, int]
"""First row of a block, and the row after its last."""

BODY_HEAD_BYTES = 256
"""Most bytes of a body apart from its rows."""
# Size of a block in the request and in the answer. Large enough that the cost of a request does not matter; small
# enough that the service sends the answer as a whole, and that several blocks take little memory.
_BLOCK_BYTES = 6 << 20


def cuts(rows: Rows, answered: int, limits: Mapping[str, float]) -> Iterator[Cut]:
    """Yield where to cut rows into blocks, given the bytes of the answer for each row and the limits of the service."""
    most = max(1, min(_BLOCK_BYTES, int(limits["max_body_bytes"]) - BODY_HEAD_BYTES))
    step = max(
        1,
        min(_BLOCK_BYTES // max(1, answered), rows.n if rows.bytes_before is not None else most // rows.bytes_per_row),
    )
    start = 0
    while start < rows.n:
        stop = min(start + step, rows.n)
        if (before := rows.bytes_before) is not None:
            fitting = int(np.searchsorted(before, before[start] + most, side="right")) - 1
            stop = min(stop, max(start + 1, fitting))
        yield start, stop
        start = stop


def for_each(
    work: Callable[[int, int], object], blocks: Iterator[Cut], at_once: int, done: Callable[[int], object]
) -> None:
    """Call `work` for each block, `at_once` at a time, and `done` with the number of rows of each finished block.

    An exception of `work` ends the run. A block that turns out to be too large for the service is halved.
    """

    def one(start: int, stop: int) -> int:
        try:
            work(start, stop)
        except TooLarge:
            if stop - start == 1:
                raise
            middle = (start + stop) // 2
            one(start, middle)
            one(middle, stop)
        except Exception as error:
            error.add_note(f"in rows {start} to {stop - 1}")
            raise
        return stop - start

    if at_once < 1:
        raise ValueError(f"at_once={at_once} came; 1 or more is wanted")
    with ThreadPoolExecutor(at_once, "bochner") as pool:
        under_way: set[Future[int]] = set()
        for block in blocks:
            if len(under_way) >= at_once:
                ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for future in ended:
                    done(future.result())
            under_way.add(pool.submit(one, *block))
        for future in under_way:
            done(future.result())
