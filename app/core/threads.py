"""All threads of the computation: none of the linear algebra, and our own, among which rows are shared out."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import scipy.linalg  # noqa: F401  loads the libraries of NumPy and of SciPy, for a limit reaches only what is loaded
from threadpoolctl import threadpool_limits

from app.core.progress import Pause, no_pause

Part = TypeVar("Part")


def one_thread_for_linear_algebra() -> None:
    """Have every product of this process run on the thread that asks for it, from now on.

    `app.core` calls it when it is imported. A limit for some time only is a limit of the whole process, and two such
    times that overlap leave the wrong number behind. With several threads sums would also round differently, and idle
    threads of the library spin.
    """
    threadpool_limits(1, "blas")


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
