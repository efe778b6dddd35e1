"""Our own threads, among which rows are shared out."""

import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.core.progress import Pause, no_pause

Part = TypeVar("Part")

_NICENESS = 10


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
    pool = ThreadPoolExecutor(min(threads, len(parts)), initializer=_give_way)
    try:
        for _ in pool.map(work, parts):
            pause()
    finally:
        pool.shutdown(cancel_futures=True)


def _give_way() -> None:
    """Let other threads run before this one, so that small requests do not wait for large ones."""
    if sys.platform == "linux":  # elsewhere it is the whole process that gives way
        os.nice(_NICENESS)
