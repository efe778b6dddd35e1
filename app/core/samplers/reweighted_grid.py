"""Points of the full tensor grid with weights fitted to data."""

from collections.abc import Callable
from functools import partial
from math import isqrt
from typing import Annotated, Literal, Self

import numpy as np
import scipy
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from pydantic import Field
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from app.core.arrays import Matrix, dense
from app.core.building import Building
from app.core.datasets import sample_rows
from app.core.discrepancy.row_differences import RowDifferences
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, SpectralKernel
from app.core.papers import GQ
from app.core.progress import Progress, begin_anew, pack_arrays, unpack_arrays
from app.core.samplers.base import PRODUCTS_PER_SECOND, FrequencySet, LearnedSampler, Rng, sum_warnings
from app.core.samplers.learning import Dataset, add_report, split
from app.core.samplers.normal_law import normal_deviations
from app.core.samplers.subsampled_grid import SubsampledGrid

_LAW = "normally distributed frequencies on all coordinates (kernels gaussian, correlation_rbf)"
_CANDIDATES_PER_FREQUENCY = 2
_MOST_CANDIDATES = 8192
_MOST_PAIRS = 1 << 21
# Added to the diagonal as part of its mean, so that candidates that the rows cannot tell apart share their weight.
_RIDGE = 1e-8
_BYTES_PER_PAIR, _BYTES_PER_FEATURE = 32, 56
# What rows, equations, support and weights take, as parts of the whole.
_ROWS, _EQUATIONS, _SUPPORT, _STEPS = 1, 30, 95, 100


class ReweightedGrid(LearnedSampler):
    """Candidates of the dense grid, of which at most s get non-negative weights that fit the kernel on rows.

    The least squares over pairs of rows, each beside itself among them, are first penalised by the sum of the weights,
    as much as leaves s of them, then solved anew for the points kept without the penalty. The objective of the report
    is the mean square error of the cosines over these pairs; the start is the first s candidates with equal weights, as
    subsampled_grid draws them.
    """

    source = f"{GQ}, section 3.5; pairs summed by products of features"
    choose_when = (
        "For images and other data far from filling their space, in a real form. RMS kernel error on other rows of "
        "MNIST in 40 dimensions, fitted on 500: .033 and .024 at s = 250 and 500, where monte_carlo has .043 and .031. "
        "On rows of 12 other sets of data the Gram error was .48 of subsampled_grid's at s = 64. In the form complex, "
        "whose imaginary part is not fitted, it was above it in half of the cases."
    )
    limits = (_LAW, "a dataset", f"s candidates at least, {_MOST_CANDIDATES} at most")

    kind: Literal["reweighted_grid"]
    points_per_dim: Annotated[int, Field(ge=2, le=200, description="L, nodes of the one-dimensional rule.")] = 5
    candidates: Annotated[int, Field(ge=1, le=_MOST_CANDIDATES)] | None = Field(
        None, description="Grid points drawn to choose from; if not given, two for each of the s."
    )
    dataset: Dataset = Field(description="Rows to fit the kernel on.")
    pairs: Annotated[
        int, Field(ge=1, le=_MOST_PAIRS, description="Fitted are all pairs of as many rows as make at most so many.")
    ] = 124_750

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, most: int, dataset: str | None) -> tuple[Self, ...]:
        """On rows of the dataset, with the usual nodes and with three, which are better for rows of little spread."""
        if dataset is None:
            return ()
        return tuple(cls(kind="reweighted_grid", points_per_dim=nodes, dataset=dataset) for nodes in (5, 3))

    def weighs_alike(self) -> bool:
        """No: they are fitted."""
        return False

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Memory of the normal equations of the candidates, and of the candidates on the rows."""
        candidates = self._n_candidates(s)
        of_rows = isqrt(2 * self.pairs) * (_BYTES_PER_FEATURE * candidates + 8 * input_dim)
        return super().drawing_bytes(candidates, input_dim) + _BYTES_PER_PAIR * candidates**2 + of_rows

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse laws that are not normal, and too many candidates or too few."""
        normal_deviations(kernel, input_dim, self.kind, _LAW)
        candidates = self._n_candidates(s)
        if candidates > _MOST_CANDIDATES:
            raise InvalidInput(
                f"s = {s} takes {candidates} candidates, {_MOST_CANDIDATES} are the most: take s = "
                f"{_MOST_CANDIDATES // _CANDIDATES_PER_FREQUENCY}, or name the candidates",
                "/s",
            )
        if candidates < s:
            detail = f"of {candidates} candidates no {s} frequencies can be kept; take {2 * s}"
            raise InvalidInput(detail, "/sampler/candidates")

    def learned_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng, building: Building) -> FrequencySet:
        """The candidates kept, with their weights."""
        rows, progress = split(building.rows(self.dataset, "/sampler/dataset")), building.progress
        grid = SubsampledGrid(kind="subsampled_grid", points_per_dim=self.points_per_dim)
        drawn = grid.frequency_set(kernel, self._n_candidates(s), input_dim, rng).frequencies
        start, candidates = FrequencySet(drawn[:s], np.full(s, 1 / s)), _distinct(drawn)
        # n(n − 1)/2 ≤ pairs.
        n_rows = min(rows.learned.shape[0], (1 + isqrt(1 + 8 * self.pairs)) // 2)
        fit = dense(rows.learned[sample_rows(rows.learned.shape[0], n_rows, int(rng.integers(1 << 63)))])
        progress.report(_ROWS, _STEPS, None)
        state = progress.restore() or b""
        pause = partial(progress.checkpoint, lambda: state)
        measure = RowDifferences(kernel, fit, building.use._replace(is_complex=False), building.threads, pause)
        first = measure.evaluate(*start[:2], pause)
        matrix, right = measure.gram(candidates, pause), measure.means(candidates, pause)
        matrix[np.diag_indices_from(matrix)] += _RIDGE * np.trace(matrix) / len(matrix)
        progress.report(_EQUATIONS, _STEPS, first)
        try:
            kept = sparse_support(matrix, right, s, progress)
            progress.report(_SUPPORT, _STEPS, first)
            matrix, right = matrix[np.ix_(kept, kept)], right[kept]
            found_support = partial(support_state, kept)
            weights = nonnegative(matrix, right, np.ones(len(kept), np.bool_), offer(progress, found_support))
        except Unsolved:
            raise InvalidInput(
                f"{n_rows} rows cannot tell {len(candidates)} candidates apart: take more pairs, or fewer candidates",
                "/sampler/pairs",
            ) from None
        if not weights.any():
            raise InvalidInput(
                f"dataset {self.dataset!r} fits no candidate: its rows are so far from each other that the kernel is 0",
                "/sampler/dataset",
            )
        positive, pause = weights > 0, partial(progress.checkpoint, found_support)
        warnings = sum_warnings(float(weights[positive].sum()), ": that fits the other rows best; take a larger s")
        found = FrequencySet(candidates[kept][positive], weights[positive], warnings)
        last = measure.evaluate(*found[:2], pause)
        progress.report(_STEPS, _STEPS, last)
        return add_report(found, start, "subsampled_grid", (first, last), kernel, rows, building.use, pause)

    def _n_candidates(self, s: int) -> int:
        return self.candidates or _CANDIDATES_PER_FREQUENCY * s


def _distinct(frequencies: Matrix) -> Matrix:
    """The frequencies without repetitions and mirror images, which no row tells from one another."""
    leading = np.argmax(frequencies != 0, axis=1)[:, None]
    signs = np.sign(np.take_along_axis(frequencies, leading, axis=1))
    return np.asarray(np.unique(frequencies * np.where(signs == 0, 1.0, signs) + 0.0, axis=0), np.float64)


Support = NDArray[np.bool_]

# Exchanges of the whole blocks that may fail to lessen the wrong signs before single ones, which always end, follow.
_PATIENCE = 3
# What counts as zero in a gradient, as part of the largest entry of the right side.
_TOLERANCE = 1e-11
# In practice some ten or twenty are made; without end, where rounding decides the signs.
_MOST_EXCHANGES = 500
_MOST_ONE_BY_ONE = 4096
_BISECTIONS = 60

Offer = Callable[[float], None]
"""Called before each call of the linear algebra with the multiplications it takes. It may raise to end the work."""


class Unsolved(Exception):
    """Rounding keeps the exchanges from ending: the matrix is singular."""


def offer(progress: Progress, make_state: Callable[[], bytes]) -> Offer:
    """Offers a state to the progress of some work: before a long call as such, else as a checkpoint."""

    def before_call(products: float) -> None:
        (progress.before_long_call if products > PRODUCTS_PER_SECOND else progress.checkpoint)(make_state)

    return before_call


def nonnegative(matrix: Matrix, right: Matrix, support: Support, before_call: Offer) -> Matrix:
    """A ≥ 0 of least ½aᵀMa − rᵀa, (n,), by block principal pivoting.

    Kim and Park (2011), Fast nonnegative matrix factorization: an active-set-like method, section 3; it guesses which
    entries are above 0, solves for these, and exchanges all whose sign, or whose gradient's, is wrong. At the end the
    conditions of Karush, Kuhn and Tucker hold, which for a convex programme are enough.

    M, (n, n), is symmetric and positive definite; Unsolved is raised where it is singular to rounding. `support`, (n,),
    is a first guess of the entries above 0; `before_call` is told of every system that is solved. Where many solutions
    are nearly as good, as on rows that repeat, exchanges may never end: entries then come one by one.
    """
    inside, fewest, patience = support.copy(), len(right) + 1, _PATIENCE
    tolerance = _TOLERANCE * float(np.abs(right).max(initial=0.0))
    for _ in range(_MOST_EXCHANGES):
        solution, chosen = np.zeros(len(right)), np.flatnonzero(inside)
        if chosen.size:
            before_call(chosen.size**3 / 3)
            try:
                solution[chosen] = cho_solve(cho_factor(matrix[np.ix_(chosen, chosen)]), right[chosen])
            except LinAlgError:
                raise Unsolved from None
        wrong = np.where(inside, solution < 0, (matrix @ solution - right) < -tolerance)
        count = int(wrong.sum())
        if count == 0:
            return solution
        if count < fewest:
            fewest, patience = count, _PATIENCE
        elif patience:
            patience -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        inside ^= wrong
    return _one_by_one(matrix, right, before_call)


def _one_by_one(matrix: Matrix, right: Matrix, before_call: Offer) -> Matrix:
    """The same by the active sets of Lawson and Hanson on a root of M, which takes longer and always ends."""
    n = len(right)
    if n > _MOST_ONE_BY_ONE:
        raise Unsolved
    before_call(float(n) ** 3)
    try:
        root = cholesky(matrix)
    except LinAlgError:
        raise Unsolved from None
    solution: Matrix = scipy.optimize.nnls(root, solve_triangular(root, right, trans="T"), maxiter=30 * n)[0]
    return solution


def sparse_support(matrix: Matrix, right: Matrix, count: int, progress: Progress) -> NDArray[np.intp]:
    """Entries above 0 of the solution with a penalty λΣa, the least λ that leaves at most `count` of them, (k,).

    On a ≥ 0 the penalty takes λ from every entry of r. λ is bisected, each solution beginning at the one before.
    What `progress` restores is a state of this very search.
    """
    saved = unpack_arrays(progress.restore())
    if saved:
        least, most = saved["penalties"].tolist()
        support, kept, done = saved["support"], saved["kept"], int(saved["done"])
    else:
        support = nonnegative(matrix, right, np.zeros(len(right), np.bool_), offer(progress, begin_anew)) > 0
        least, most = 0.0, float(right.max(initial=0.0))
        if np.count_nonzero(support) <= count:
            return np.flatnonzero(support)
        kept, done = np.empty(0, np.intp), 0
    while done < _BISECTIONS and len(kept) < count:
        state = partial(pack_arrays, penalties=np.array([least, most]), support=support, kept=kept, done=np.array(done))
        progress.checkpoint(state)
        penalty = (least + most) / 2
        support = nonnegative(matrix, right - penalty, support, offer(progress, state)) > 0
        above = np.flatnonzero(support)
        if len(above) > count:
            least = penalty
        else:
            most, kept = penalty, above
        done += 1
    if not len(kept):
        # No penalty tells them apart: one is as good as the other.
        kept = np.flatnonzero(nonnegative(matrix, right - least, support, offer(progress, begin_anew)))[:count]
    return kept


def support_state(kept: NDArray[np.intp]) -> bytes:
    """The state from which `sparse_support` gives these entries at once."""
    return pack_arrays(penalties=np.zeros(2), support=np.zeros(0, np.bool_), kept=kept, done=np.array(_BISECTIONS))
