"""Our own threads, among which rows are shared out."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.core.progress import Pause, no_pause

Part = TypeVar("Part")


def for_each(work: Callable[[Part], None], parts: Iterable[Part], threads: int, pause: Pause = no_pause) -> None:
    """Call `work` once with every part, on up to `threads` threads.

    Args:
        work: must release the interpreter lock for most of its time, or nothing is gained.
        parts: must not depend on each other.
        threads: how many to use; with one, the caller's own.
        pause: is called on the caller's thread after every part. What it raises ends the work.

    Raises:
        Exception: the first of a part or a pause, when all parts that were begun have ended.
    """
    parts = list(parts)
    if min(threads, len(parts)) <= 1:
        for part in parts:
            work(part)
            pause()
        return
    pool = ThreadPoolExecutor(min(threads, len(parts)))
    try:
        for _ in pool.map(work, parts):
            pause()
    finally:
        pool.shutdown(cancel_futures=True)
