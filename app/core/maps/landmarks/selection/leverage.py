"""Landmarks by ridge leverage scores."""

import numpy as np
import scipy

from app.core.arrays import Matrix, Rows, Whole, row_blocks
from app.core.kernels.base import AnyKernel
from app.core.maps.landmarks.selection.base import Coordinates, Run, Selected, finish, take_in_order, values
from app.core.progress import Progress
from app.core.samplers.base import Rng

MOST_PILOTS = 1024
"""Maximum number of pilots, the rows that represent all others."""
# Least ridge, relative to the largest eigenvalue: with a smaller one, scores would be rounding.
_LEAST_RIDGE = 1e-10
_HALVINGS = 100


def select(kernel: AnyKernel, rows: Rows, s: int, rng: Rng, progress: Progress, threads: int) -> Selected:
    """Draw rows without replacement with probabilities proportional to their ridge leverage scores.

    The score of row i is l_i = [K (K + λI)^(−1)]_ii (Alaoui and Mahoney, 2015, Fast randomized kernel ridge regression
    with statistical guarantees, definition 1). λ is the ridge at which the scores sum to s, or to half the number of
    pilots if that is less. The scores are estimated from m pilots, a uniform sample of 2s rows, at most 1024, as in one
    step of Musco and Musco (2017), Recursive sampling for the Nyström method, (8); with all rows as pilots they are
    exact. The cost is m kernel values for each row.

    The report has `ridge`, λ.
    """
    n = rows.shape[0]
    order, times = rng.permutation(n), rng.exponential(size=n)
    run = Run(s, progress, threads, stages=2)
    pilots, ridge = _pilots(kernel, rows[np.sort(order[: min(2 * s, MOST_PILOTS)])], n, run)

    def scores(part: Rows) -> Matrix:
        return (pilots.residuals(part, least=0) / ridge).clip(0, 1) if ridge else np.zeros(part.shape[0])

    found = run.by_row("scores", scores, rows, pilots.rows_per_part(rows), stage=0)
    basis = run.basis(kernel, rows)
    take_in_order(basis, run, _draw_order(found, np.asarray(times)), stage=1)
    return finish(basis, ridge=ridge)


def _draw_order(scores: Matrix, times: Matrix) -> Whole:
    """Return the order of successive draws with probabilities proportional to the scores, without rows of score 0.

    Rows are ordered by exponential times whose rates are the scores, times/scores (Efraimidis and Spirakis, 2006).
    """
    positive = np.flatnonzero(scores > 0)
    return positive[np.argsort(times[positive] / scores[positive], kind="stable")]


def _pilots(kernel: AnyKernel, rows: Rows, n: int, run: Run) -> tuple[Coordinates, float]:
    """Return coordinates whose residuals are λ times the scores, and λ, from m pilots that represent n rows.

    The residuals are k(x, x) − k(x, P) (K(P, P) + λm/n I)^(−1) k(P, x); eigenvalues of K are estimated by n/m times
    those of K(P, P).
    """
    m, gram = rows.shape[0], np.empty((rows.shape[0], rows.shape[0]))
    for part in row_blocks(m, Coordinates(kernel, rows, gram).rows_per_part(rows)):
        gram[part] = values(kernel, rows[part], rows)
        run.pause()
    eigenvalues = np.linalg.eigvalsh(gram)
    run.pause()
    ridge = _ridge(eigenvalues.clip(0), min(float(run.s), m / 2))
    if not ridge:
        return Coordinates(kernel, rows, np.zeros((m, m))), 0.0
    ridge = max(ridge, -2 * float(eigenvalues.min()))  # rounding may make eigenvalues negative
    factor = np.linalg.cholesky(gram + ridge * np.eye(m))
    inverse = scipy.linalg.solve_triangular(factor, np.eye(m), lower=True, check_finite=False)
    return Coordinates(kernel, rows, inverse), ridge * n / m


def _ridge(eigenvalues: Matrix, dimension: float) -> float:
    """Find the ridge λ at which Σ σ/(σ + λ) is `dimension`, by bisection of its logarithm.

    It is at least 1e-10 of the largest eigenvalue, and 0 if all are 0.
    """
    low, high = _LEAST_RIDGE * eigenvalues.max(), eigenvalues.sum()
    if not high:
        return 0.0
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low) * np.sqrt(high))  # the product may leave the range of float64
        if (eigenvalues / (eigenvalues + middle)).sum() > dimension:
            low = middle
        else:
            high = middle
    return float(high)
