"""Work on every part once, whatever the number of threads, and errors that are not lost; one thread of BLAS."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import threadpool_info

from app.core.diagnostics.gram import Gram
from app.core.progress import Progress
from app.core.threads import for_each
from service_tests.cases import each
from service_tests.core.combinations import rows
from service_tests.core.specs import fourier


@each("n_threads", [0, 1, 2, 3, 50])
@each("n_parts", [0, 1, 2, 17, 300])
def test_every_part_is_worked_on_once(n_threads: int, n_parts: int) -> None:
    seen: list[int] = []
    for_each(seen.append, iter(range(n_parts)), n_threads)
    assert sorted(seen) == list(range(n_parts))


def test_the_threads_of_a_caller_are_kept_and_a_fork_has_its_own() -> None:
    def workers(n: int) -> set[int]:
        found: list[int] = []
        together = threading.Barrier(n, timeout=10)
        for_each(lambda _: found.append((together.wait() and 0) or threading.get_native_id()), range(n), n)
        return set(found)

    assert workers(3) == workers(3)
    assert len(workers(2)) == 2
    child = os.fork()
    if child == 0:
        os._exit(0 if len(workers(2)) == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_an_exception_reaches_the_caller_when_all_that_were_begun_have_ended(n_threads: int) -> None:
    begun: list[int] = []
    ended: list[int] = []

    def work(part: int) -> None:
        begun.append(part)
        try:
            if part == 1:
                raise ValueError(f"part {part}")
        finally:
            ended.append(part)

    with pytest.raises(ValueError, match="part 1"):
        for_each(work, range(20), n_threads)
    assert sorted(begun) == sorted(ended)
    assert {0, 1} <= set(ended)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_pause_that_raises_ends_the_work(n_threads: int) -> None:
    ended: list[int] = []

    def work(part: int) -> None:
        time.sleep(0.005)
        ended.append(part)

    def pause() -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        for_each(work, range(1000), n_threads, pause)
    # Few more than threads; how many, hangs on when the caller has its turn on a busy machine.
    assert 1 <= len(ended) <= (1 if n_threads == 1 else 200)
    count = len(ended)
    time.sleep(0.05)
    assert len(ended) == count, "nothing goes on"


def linear_algebra_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_diagnostics_at_once_leave_linear_algebra_on_one_thread() -> None:
    x = rows(60, 1, dtype="float32")
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(
            lambda seed: Gram(seeds=20, seed=seed).run(fourier(), {"vectors": x}, Progress(), 1), range(8)
        ):
            pass
    assert linear_algebra_threads() == {1}
