"""Our own threads, among which rows are shared out."""

import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

from app.core.progress import Pause, no_pause

Part = TypeVar("Part")

# A third of the weight of others, where they want the same processor.
_NICENESS = 5

_kept = threading.local()


def for_each(work: Callable[[Part], None], parts: Iterable[Part], threads: int, pause: Pause = no_pause) -> None:
    """Call `work` once with every part, on up to `threads` threads; with one, on the caller's own.

    Parts must not depend on each other, and `work` must release the interpreter lock for most of its time, or nothing
    is gained. The threads give way to all others of the process. `pause` is called on the caller's thread after every
    part. What it or a part raises ends the work, and is raised here when all parts that were begun have ended.
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
    """A pool of the calling thread, kept: to start threads takes longer than little work. A fork makes its own.

    Args:
        threads: of the pool.
        bound: whether each has a processor of its own. Threads that wake at the same time often share one for some
            milliseconds, until the system moves one away, and little work has ended by then. In longer work the system
            does better.
    """
    made_for = os.getpid(), threads, bound
    pools: dict[tuple[int, int, bool], ThreadPoolExecutor] = getattr(_kept, "pools", {})
    _kept.pools = pools
    if made_for not in pools:
        processors = list(os.sched_getaffinity(0)) if bound and sys.platform == "linux" else []
        # Fewer threads than processors are left to the system: those of all callers would take the same.
        own = processors if len(processors) == threads else []
        pools[made_for] = ThreadPoolExecutor(threads, initializer=_begin, initargs=(own,))
    return pools[made_for]


def _begin(processors: list[int]) -> None:
    """Let other threads run before this one, so that small requests do not wait for large ones; take a processor."""
    if sys.platform == "linux":  # elsewhere it is the whole process that gives way
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, _NICENESS)
        if processors:
            with suppress(OSError):  # some containers forbid it
                os.sched_setaffinity(thread, {processors.pop()})
