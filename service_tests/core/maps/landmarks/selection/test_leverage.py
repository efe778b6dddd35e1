import numpy as np
import pytest
from scipy import sparse, stats

from app.core.arrays import Matrix, dense
from app.core.kernels.chi_squared import ChiSquared
from app.core.progress import unpack_arrays
from service_tests.cases import each
from service_tests.core.combinations import Fields
from service_tests.core.interrupted import WatchedWork
from service_tests.core.maps.landmarks.selection.chosen import GAUSSIAN, every_kernel, numbers_of, of, prepared, run


def exact_scores(gram: Matrix, ridge: float) -> Matrix:
    """The diagonal of K (K + λI)⁻¹."""
    return np.linalg.solve(gram + ridge * np.eye(len(gram)), gram).diagonal().astype(np.float64)


@every_kernel
@each(("s", "dimension"), [(31, 25), (25, 25)])
def test_scores_are_exact_where_all_rows_are_pilots(its_kernel: Fields, s: int, dimension: int) -> None:
    made = of(its_kernel)
    rows = prepared(made, 50)
    watched = WatchedWork()
    report = run("leverage", made, rows, s, progress=watched).report
    scores = unpack_arrays(watched.states[-1])["scores"]
    assert scores == pytest.approx(exact_scores(made.exact(rows, rows), report["ridge"]), abs=1e-7)
    assert scores.sum() == pytest.approx(dimension, rel=1e-6)


@pytest.mark.nightly
def test_landmarks_come_in_proportion_to_their_scores() -> None:
    # The first of three landmarks of six rows, in 2 000 draws, and the second after a certain first. Significance 1e-4.
    rows = np.concatenate([prepared(GAUSSIAN, 4) / 3, 2 * prepared(GAUSSIAN, 2, seed=8)])
    report = run("leverage", GAUSSIAN, rows, 3).report
    scores = exact_scores(GAUSSIAN.exact(rows, rows), report["ridge"])
    assert scores.max() > 1.5 * scores.min()
    orders = np.array([numbers_of(rows, run("leverage", GAUSSIAN, rows, 3, seed).landmarks) for seed in range(2000)])
    first = np.bincount(orders[:, 0], minlength=6)
    assert stats.chisquare(first, 2000 * scores / scores.sum()).pvalue > 1e-4
    second = np.bincount(orders[orders[:, 0] == 5, 1], minlength=6)[:5]
    assert stats.chisquare(second, second.sum() * scores[:5] / scores[:5].sum()).pvalue > 1e-4
    assert stats.chisquare(first).pvalue < 1e-6


def test_kernel_values_that_err_by_more_than_the_least_ridge_are_factorised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their matrix has negative eigenvalues."""
    rows = sparse.csr_array(np.column_stack([np.ones(300), 0.1 * np.arange(1, 301)]))
    made = of({"kind": "chi_squared"})
    exact = ChiSquared._kernel
    monkeypatch.setattr(ChiSquared, "_kernel", lambda self, distances: exact(self, distances).round(7))
    assert np.linalg.eigvalsh(made.exact(rows, rows)).min() < -1e-10 * 300
    assert len(numbers_of(rows.toarray(), dense(run("leverage", made, rows, 20).landmarks))) == 20
