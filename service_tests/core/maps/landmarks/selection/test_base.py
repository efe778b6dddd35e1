import numpy as np
import pytest
from scipy import sparse

from app.core.arrays import dense
from app.core.errors import InvalidInput
from app.core.maps.landmarks.selection.base import compared_at_once
from service_tests.cases import each, with_nightly
from service_tests.core.combinations import Fields
from service_tests.core.combinations import rows as drawn
from service_tests.core.interrupted import Interrupted, WatchedWork
from service_tests.core.maps.landmarks.selection.chosen import (
    GAUSSIAN,
    Linear,
    _small_steps,  # noqa: F401
    every_kernel,
    every_selection,
    numbers_of,
    of,
    prepared,
    run,
    trace_error,
)
from service_tests.core.specs import kernel as kernel_of
from service_tests.core.test_resumed_work import without_repeats

S = 9


@every_kernel
@every_selection
@each("dtype", ["float32", "float64"])
def test_landmarks_are_rows_or_centres_of_the_rows(name: str, its_kernel: Fields, dtype: str) -> None:
    made = of(its_kernel)
    rows = prepared(made, dtype=dtype)
    found = run(name, made, rows, S)
    assert found.landmarks.shape == (S, rows.shape[1])
    assert found.landmarks.dtype == rows.dtype
    assert 0 < trace_error(made, rows, found.landmarks) < 0.8
    if name != "k_means":
        assert len(set(numbers_of(rows, found.landmarks))) == S


@pytest.mark.usefixtures("_small_steps")
@every_kernel
@every_selection
def test_threads_change_nothing(name: str, its_kernel: Fields) -> None:
    made = of(its_kernel)
    rows = prepared(made)
    one, three = (run(name, made, rows, S, threads=threads) for threads in (1, 3))
    assert dense(one.landmarks).tobytes() == dense(three.landmarks).tobytes()
    assert one.report == three.report


@every_kernel
@every_selection
def test_sparse_rows_give_the_same_landmarks(name: str, its_kernel: Fields) -> None:
    made = of(its_kernel)
    some = np.where(np.random.default_rng(3).random((80, 4)) < 0.5, np.abs(drawn(80, 2)) + 0.1, 0)
    some = dense(made.prepare(some[some.any(axis=1)]))
    whole, parts = run(name, made, some, S), run(name, made, sparse.csr_array(some), S)
    assert sparse.issparse(parts.landmarks) == (name != "k_means")
    assert np.array_equal(dense(whole.landmarks), dense(parts.landmarks))
    assert whole.report == pytest.approx(parts.report)


@pytest.mark.gate
@pytest.mark.usefixtures("_small_steps")
@every_selection
@pytest.mark.parametrize(
    "its_kernel", with_nightly([{"kind": "gaussian", "length_scale": 2.5}], [{"kind": "gmm"}]), ids=str
)
def test_resumed_selections_come_to_the_same(name: str, its_kernel: Fields) -> None:
    made = of(its_kernel)
    rows, s = prepared(made), 24
    whole = WatchedWork()
    undisturbed = run(name, made, rows, s, progress=whole)
    bits = dense(undisturbed.landmarks).tobytes()
    assert len(without_repeats(whole.states)) > 7
    for most in range(1, len(whole.states), 1 + len(whole.states) // 40):
        ended = WatchedWork(most=most)
        with pytest.raises(Interrupted):
            run(name, made, rows, s, progress=ended)
        assert ended.states == whole.states[:most]
        resumed = WatchedWork(ended.states[-1])
        again = run(name, made, rows, s, progress=resumed)
        assert dense(again.landmarks).tobytes() == bits
        assert again.report == undisturbed.report
        left = without_repeats([ended.states[-1], *resumed.states])[1:]
        assert without_repeats([*ended.states, *left]) == without_repeats(whole.states), "nothing is done again"


@every_selection
def test_as_many_landmarks_as_rows_leave_nothing(name: str) -> None:
    rows = prepared(GAUSSIAN, 12)
    found = run(name, GAUSSIAN, rows, 40)
    assert sorted(numbers_of(rows, found.landmarks)) == list(range(12))
    assert abs(trace_error(GAUSSIAN, rows, found.landmarks)) < 1e-9


@every_selection
def test_equal_rows_are_one_landmark(name: str) -> None:
    rows = np.repeat(prepared(GAUSSIAN, 5), 9, axis=0)
    found = run(name, GAUSSIAN, rows, 20)
    assert found.landmarks.shape == (5, 4)
    assert abs(trace_error(GAUSSIAN, rows, found.landmarks)) < 1e-12
    for n in (1, 7):
        assert dense(run(name, GAUSSIAN, rows[:n], 3).landmarks) == pytest.approx(rows[:1], rel=1e-15)


@every_selection
def test_rows_without_kernel_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="kernel 0"):
        run(name, Linear(), np.zeros((6, 3)), 2)


def test_long_sparse_rows_are_compared_a_few_at_a_time() -> None:
    """As many as take half a second."""
    d = 400_000
    rows = sparse.csr_array((np.ones(300), (range(300), range(300))), shape=(300, d))
    for fields, least, most in (
        ({"kind": "gmm", "center": [1.0] * d}, 2, 8),
        ({"kind": "gmm"}, 256, 256),
        ({"kind": "laplacian", "length_scale": 1.0}, 200, 256),
        ({"kind": "anova", "length_scale": 1.0, "subsets": [[0, 1], [7]]}, 256, 256),
    ):
        assert least <= compared_at_once(kernel_of(**fields), rows) <= most
    long = sparse.csr_array(np.ones((20, 200_000)))
    short = sparse.csr_array((np.ones(300), (range(300), range(300))), shape=(300, 200_000))
    assert compared_at_once(kernel_of(kind="gmm"), long) < 50
    behind = sparse.csr_array(sparse.vstack([short, *[long] * 13]))
    assert compared_at_once(kernel_of(kind="gmm"), behind) < 50
