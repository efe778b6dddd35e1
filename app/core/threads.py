"""Thread pools among which work on rows is divided."""

import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

from app.core.progress import Pause, no_pause

Part = TypeVar("Part")

# Gives a thread a third of the weight of other threads on the same processor.
_NICENESS = 5

_kept = threading.local()


def for_each(work: Callable[[Part], None], parts: Iterable[Part], threads: int, pause: Pause = no_pause) -> None:
    """Call `work` once with every part, on up to `threads` threads; with one thread, on the caller's own.

    Parts must not depend on each other, and `work` must release the interpreter lock for most of its time, or nothing
    is gained. The threads give way to all other threads of the process. `pause` is called on the caller's thread after
    every part. An exception of `pause` or of a part ends the work; it is raised here once all parts that have begun
    have ended.
    """
    parts = list(parts)
    if min(threads, len(parts)) <= 1:
        for part in parts:
            work(part)
            pause()
        return
    pool = _pool(threads, bound=len(parts) <= threads)
    begun = [pool.submit(work, part) for part in parts]
    try:
        for one in begun:
            one.result()
            pause()
    finally:
        for one in begun:
            one.cancel()
        wait(begun)


def _pool(threads: int, bound: bool) -> ThreadPoolExecutor:
    """Return a pool that the calling thread keeps, as starting threads takes longer than little work.

    A forked process creates its own.

    Args:
        threads: number of threads.
        bound: whether each thread has a processor of its own. Threads that wake at the same time often share one for
            some milliseconds, until the system moves one away, and little work has ended by then. For longer work, the
            system's choice is better.
    """
    made_for = os.getpid(), threads, bound
    pools: dict[tuple[int, int, bool], ThreadPoolExecutor] = getattr(_kept, "pools", {})
    _kept.pools = pools
    if made_for not in pools:
        processors = list(os.sched_getaffinity(0)) if bound and sys.platform == "linux" else []
        # If there are fewer threads than processors, the system chooses: the pools of all callers would take the same
        # ones.
        own = processors if len(processors) == threads else []
        pools[made_for] = ThreadPoolExecutor(threads, initializer=_begin, initargs=(own,))
    return pools[made_for]


def _begin(processors: list[int]) -> None:
    """Lower the priority of this thread, so that small requests do not wait for large ones, and take a processor."""
    if sys.platform == "linux":  # elsewhere the priority of the whole process would be lowered
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, _NICENESS)
        if processors:
            with suppress(OSError):  # some containers forbid it
                os.sched_setaffinity(thread, {processors.pop()})
