"""Work spread over threads; what it calls must release the interpreter lock."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")


def for_each(work: Callable[[Part], None], parts: Iterable[Part], threads: int) -> None:
    """Call `work` once with every part, on up to `threads` threads.

    Parts must not depend on each other. The first exception is raised when all that were begun have ended.
    """
    parts = list(parts)
    if min(threads, len(parts)) <= 1:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(min(threads, len(parts))) as pool:
        for _ in pool.map(work, parts):
            pass
