"""Several who do things at once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TypeVar

from service_tests.running import Running

T = TypeVar("T")


def at_once(n: int, act: Callable[[int], T]) -> list[T]:
    """What n threads that begin together find, each called with its number."""
    barrier = threading.Barrier(n)

    def begin(i: int) -> T:
        barrier.wait()
        return act(i)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(begin, range(n)))


def deleted_at_once(running: Running, path: str) -> list[int]:
    """The statuses of sixteen DELETEs that begin together, in order of size."""
    with ExitStack() as stack:
        clients = [stack.enter_context(running.client()) for _ in range(16)]
        return sorted(answer.status_code for answer in at_once(16, lambda i: clients[i].delete(path)))


def reads_during(rewrite: Callable[[], None], read: Callable[[], bool]) -> int:
    """How often `read` was true while `rewrite` ran; what either raises is raised here."""
    seen = 0
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(rewrite)
        while not writing.done():
            seen += read()
        writing.result()
    return seen
