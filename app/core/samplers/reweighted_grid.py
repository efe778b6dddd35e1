"""Points of the full tensor grid with weights fitted to data."""

from functools import partial
from math import isqrt
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field

from app.core.arrays import Matrix, dense
from app.core.building import Building
from app.core.datasets import sampled
from app.core.discrepancy.row_differences import RowDifferences
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, SpectralKernel
from app.core.papers import GQ
from app.core.samplers.base import FrequencySet, LearnedSampler, Rng, sum_warnings
from app.core.samplers.learned_report import Compared, reported, split
from app.core.samplers.learning import Dataset
from app.core.samplers.nonnegative import Unsolved, nonnegative, offer, sparse_support, support_state
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
    limits = (
        _LAW,
        "a dataset",
        f"s candidates at least, {_MOST_CANDIDATES} at most",
    )

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
    def tried(cls, kernel: AnyKernel, input_dim: int, most: int, dataset: str | None) -> tuple[Self, ...]:
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
            raise InvalidInput(
                f"of {candidates} candidates no {s} frequencies can be kept; take {2 * s}", "/sampler/candidates"
            )

    def learned_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng, building: Building) -> FrequencySet:
        """The candidates kept, with their weights."""
        rows, progress = split(building.rows(self.dataset, "/sampler/dataset")), building.progress
        grid = SubsampledGrid(kind="subsampled_grid", points_per_dim=self.points_per_dim)
        drawn = grid.frequency_set(kernel, self._n_candidates(s), input_dim, rng).frequencies
        start, candidates = FrequencySet(drawn[:s], np.full(s, 1 / s)), _distinct(drawn)
        # n(n − 1)/2 ≤ pairs.
        n_rows = min(rows.learned.shape[0], (1 + isqrt(1 + 8 * self.pairs)) // 2)
        fit = dense(rows.learned[sampled(rows.learned.shape[0], n_rows, int(rng.integers(1 << 63)))])
        progress.report(_ROWS, _STEPS, None)
        state = progress.restored() or b""
        pause = partial(progress.checkpoint, lambda: state)
        measure = RowDifferences(kernel, fit, building.use._replace(is_complex=False), building.threads, pause)
        first = measure.normalized(*start[:2], pause)
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
        last = measure.normalized(*found[:2], pause)
        progress.report(_STEPS, _STEPS, last)
        compared = Compared(start, "subsampled_grid", first, last)
        return reported(found, compared, kernel, rows, building.use, pause)

    def _n_candidates(self, s: int) -> int:
        return self.candidates or _CANDIDATES_PER_FREQUENCY * s


def _distinct(frequencies: Matrix) -> Matrix:
    """The frequencies without repetitions and mirror images, which no row tells from one another."""
    leading = np.argmax(frequencies != 0, axis=1)[:, None]
    signs = np.sign(np.take_along_axis(frequencies, leading, axis=1))
    distinct: Matrix = np.unique(frequencies * np.where(signs == 0, 1.0, signs) + 0.0, axis=0)
    return distinct
