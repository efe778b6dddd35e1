"""Work on every part once, whatever the number of threads, and errors that are not lost; one thread of BLAS."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info

import app
from app.core import kernels, panels, threads
from app.core.diagnostics.gram import Gram
from app.core.maps import opened
from app.core.maps.fourier import inner_products, phases
from app.core.progress import Pause, no_pause
from app.core.threads import for_each
from service_tests.cases import each
from service_tests.core.combinations import rows
from service_tests.core.specs import fourier, hashing


@each("n_threads", [0, 1, 2, 3, 50])
@each("n_parts", [0, 1, 2, 17, 300])
def test_every_part_is_worked_on_once(n_threads: int, n_parts: int) -> None:
    seen: list[int] = []
    for_each(seen.append, iter(range(n_parts)), n_threads)
    assert sorted(seen) == list(range(n_parts))


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_threads_give_way_to_those_that_answer() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before, found = niceness(), []
    for_each(lambda _: found.append(niceness()), range(2), 2)
    assert found == [max(before, 5)] * 2
    assert niceness() == before


@pytest.mark.skipif(sys.platform != "linux", reason="threads are not bound to processors")
@pytest.mark.parametrize("more", [0, 1])
def test_as_many_threads_as_processors_have_one_each_for_little_work(more: int) -> None:
    every = os.sched_getaffinity(0)
    n = max(2, len(every) + more)
    together, found = threading.Barrier(n, timeout=10), []

    def note(_: int) -> None:
        together.wait()
        found.append(os.sched_getaffinity(0))

    for_each(note, range(n), n)
    assert sorted(found, key=sorted) == ([every] * n if n != len(every) else [{one} for one in sorted(every)])
    found.clear()
    for_each(note, range(2 * n), n)
    assert found == [every] * 2 * n
    assert os.sched_getaffinity(0) == every


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


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_caller_pauses_after_every_part(n_threads: int) -> None:
    ended: list[int] = []
    pauses: list[tuple[int, int]] = []
    for_each(ended.append, range(9), n_threads, lambda: pauses.append((threading.get_ident(), len(ended))))
    assert [ident for ident, _ in pauses] == [threading.get_ident()] * 9
    assert all(count >= place for place, (_, count) in enumerate(pauses, 1))


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
        for _ in pool.map(lambda seed: Gram(seeds=20, seed=seed).run(fourier(), {"vectors": x}), range(8)):
            pass
    assert linear_algebra_threads() == {1}


FRESH = """
import time
import app.core
import app.main, scipy.optimize, scipy.sparse.linalg, scipy.stats
from threadpoolctl import threadpool_info
import numpy as np
a = np.ones((600, 600)); a @ a
began, clock = time.process_time(), time.monotonic()
time.sleep(0.4)
idle = (time.process_time() - began) / (time.monotonic() - clock)
print({one["num_threads"] for one in threadpool_info()}, idle < 0.1)
"""


@pytest.mark.nightly
def test_a_fresh_process_has_one_thread_of_linear_algebra_and_does_not_spin_when_idle() -> None:
    printed = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "{1} True"


def test_only_one_file_says_how_many_threads_linear_algebra_has() -> None:
    root = Path(app.__file__).parent
    users = [path for path in root.rglob("*.py") if re.search("threadpool|OPENBLAS|OMP_NUM", path.read_text())]
    assert users == [root / "core" / "__init__.py"]


SMALL_PARTS = [
    (phases, "_ROWS_PER_BLOCK", 16),
    (phases, "_LEAST_STEPS_PER_PART", 1),
    (phases, "_FREQUENCIES_PER_BLOCK", 1),
    (inner_products, "_FREQUENCIES_PER_BLOCK", 1),
    (panels, "_MOST_PRODUCTS_PER_PART", 40_000),
    (panels, "_LEAST_PRODUCTS_PER_PART", 1),
    (kernels.base, "_ENTRIES_PER_PART", 1000),
]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("form", ["cos_sin", "complex", "phase"])
@pytest.mark.parametrize("normalize", [False, True])
def test_no_bit_of_a_fourier_map_depends_on_the_number_of_threads(
    form: str, normalize: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small parts, so that there are many of them.
    for module, name, value in SMALL_PARTS:
        monkeypatch.setattr(module, name, value)
    made = fourier(s=200, form=form, normalize=normalize)
    x: Any = rows(70, 1, dtype="float32")
    y: Any = rows(90, 2, dtype="float32")
    if kind == "sparse":
        x, y = sparse.csr_array(x), sparse.csr_array(y)
    found = []
    for n_threads in (1, 2, 3, 7):
        one = opened(made.spec, dict(made.arrays), n_threads)
        found.append([one.transform(x), one.gram(x, y), one.gram(x, x), one.exact_gram(x, y)])
    for other in found[1:]:
        for wanted, array in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(array, wanted)


@pytest.mark.nightly
@pytest.mark.parametrize("made", [fourier(s=500), hashing(s=500)], ids=["fourier", "hashing"])
def test_long_calls_of_a_map_pause(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in SMALL_PARTS:
        monkeypatch.setattr(module, name, value)
    x = rows(200, 1, dtype="float32")
    calls: list[Callable[[Pause], Any]] = [
        lambda pause: made.gram(x, x, pause),
        lambda pause: made.exact_gram(x, x, pause),
        lambda pause: made.estimated_pairs(x, x, pause),
    ]
    for call in calls:
        pauses: list[int] = []
        np.testing.assert_array_equal(call(partial(pauses.append, 1)), call(no_pause))
        assert pauses
