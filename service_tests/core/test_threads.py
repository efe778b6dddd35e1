"""Work on every part once, whatever the number of threads, and errors that are not lost."""

import threading

import pytest

from app.core import threads
from app.core.threads import for_each


@pytest.mark.parametrize("n_threads", [0, 1, 2, 3, 50])
@pytest.mark.parametrize("n_parts", [0, 1, 2, 17])
def test_every_part_is_worked_on_once(n_threads: int, n_parts: int) -> None:
    seen: list[int] = []
    for_each(seen.append, iter(range(n_parts)), n_threads)
    assert sorted(seen) == list(range(n_parts))


def test_several_threads_work_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=10)
    for_each(lambda _: [together.wait()].clear(), range(3), 3)
    assert not together.broken


@pytest.mark.parametrize(("n_parts", "n_threads"), [(5, 1), (1, 5), (0, 5)])
def test_one_part_or_one_thread_needs_no_pool(n_parts: int, n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "ThreadPoolExecutor", None)
    workers: list[int] = []
    for_each(lambda _: workers.append(threading.get_ident()), range(n_parts), n_threads)
    assert workers == [threading.get_ident()] * n_parts


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
