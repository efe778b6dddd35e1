"""Points of the full tensor grid with weights fitted to data."""

from functools import partial
from math import isqrt
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field

from app.core.arrays import dense, row_blocks
from app.core.building import Building
from app.core.datasets import sampled
from app.core.discrepancy.box_discrepancy import product_kernel
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, Matrix, ProductKernel, SpectralKernel
from app.core.papers import GQ
from app.core.samplers.base import FrequencySet, LearnedSampler, Rng, sum_warnings
from app.core.samplers.learning import Dataset, report_of
from app.core.samplers.nonnegative import Offer, Unsolved, nonnegative, offer, sparse_support, support_state
from app.core.samplers.normal_law import normal_deviations
from app.core.samplers.subsampled_grid import SubsampledGrid

_LAW = "normally distributed frequencies on all coordinates (kernels gaussian, correlation_rbf)"
_CANDIDATES_PER_FREQUENCY = 2
_MOST_CANDIDATES = 8192
_MOST_PAIRS = 1 << 21
# Added to the diagonal as part of its mean, so that candidates that the rows cannot tell apart share their weight.
_RIDGE = 1e-8
_BYTES_PER_PAIR, _BYTES_PER_FEATURE = 32, 56
# Rows of the normal equations made at a time: their complex products take several times the memory.
_ROWS_PER_BLOCK = 512
# What rows, equations, support and weights take, as parts of the whole.
_ROWS, _EQUATIONS, _SUPPORT, _STEPS = 1, 30, 95, 100


class ReweightedGrid(LearnedSampler):
    """Candidates of the dense grid, of which at most s get non-negative weights that fit the kernel on rows.

    The least squares over pairs of rows, each beside itself among them, are first penalised by the sum of the weights,
    as much as leaves s of them, then solved anew for the points kept without the penalty. The objective of the report
    is the mean square error over these pairs, that of all candidates with equal weights at the start.
    """

    source = f"{GQ}, section 3.5; pairs summed by products of features"
    choose_when = (
        "For images and other data far from filling their space. RMS kernel error on other rows of MNIST in 40 "
        "dimensions, fitted on 500: .033 and .024 at s = 250 and 500, where monte_carlo has .043 and .031. On cpu it "
        "does not help."
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
        """On rows of the dataset."""
        return () if dataset is None else (cls(kind="reweighted_grid", dataset=dataset),)

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
        product, rows = product_kernel(kernel, input_dim), building.rows(self.dataset, "/sampler/dataset")
        grid = SubsampledGrid(kind="subsampled_grid", points_per_dim=self.points_per_dim)
        candidates = _distinct(grid.frequency_set(kernel, self._n_candidates(s), input_dim, rng).frequencies)
        # n(n − 1)/2 ≤ pairs.
        n_rows = min(rows.shape[0], (1 + isqrt(1 + 8 * self.pairs)) // 2)
        fit = dense(rows[sampled(rows.shape[0], n_rows, int(rng.integers(1 << 63)))])
        progress = building.progress
        progress.report(_ROWS, _STEPS, None)
        state = progress.restored() or b""
        matrix, right, energy = normal_equations(candidates, fit, product, offer(progress, lambda: state))
        equal = np.full(len(candidates), 1 / len(candidates))
        start = _error(matrix, right, energy, equal)
        matrix[np.diag_indices_from(matrix)] += _RIDGE * np.trace(matrix) / len(matrix)
        progress.report(_EQUATIONS, _STEPS, start)
        try:
            kept = sparse_support(matrix, right, s, progress)
            progress.report(_SUPPORT, _STEPS, start)
            matrix, right = matrix[np.ix_(kept, kept)], right[kept]
            found_support = offer(progress, partial(support_state, kept))
            weights = nonnegative(matrix, right, np.ones(len(kept), np.bool_), found_support)
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
        end = _error(matrix, right, energy, weights)
        positive = weights > 0
        warnings = sum_warnings(float(weights[positive].sum()), ": that fits the other rows best; take a larger s")
        found = FrequencySet(candidates[kept][positive], weights[positive], warnings)
        progress.report(_STEPS, _STEPS, max(0.0, end))
        return report_of(found, start, end, product, rows)

    def _n_candidates(self, s: int) -> int:
        return self.candidates or _CANDIDATES_PER_FREQUENCY * s


def _distinct(frequencies: Matrix) -> Matrix:
    """The frequencies without repetitions and mirror images, which no row tells from one another."""
    leading = np.argmax(frequencies != 0, axis=1)[:, None]
    signs = np.sign(np.take_along_axis(frequencies, leading, axis=1))
    distinct: Matrix = np.unique(frequencies * np.where(signs == 0, 1.0, signs) + 0.0, axis=0)
    return distinct


def normal_equations(
    frequencies: Matrix, rows: Matrix, kernel: ProductKernel, before_call: Offer
) -> tuple[Matrix, Matrix, float]:
    """Mean over all n² pairs of c cᵀ, k c and k², with c_l = cos(w_l·δ): (s, s), (s,) and a number.

    A row is paired with itself too: where rows are far from each other, k(0) would be lost. No pair is ever formed:
    with z_il = e^{iw_l·x_i}, twice the sum over all i and j of cos(w_l·δ) cos(w_m·δ) is |Z*Z|² + |ZᵀZ|² in (l, m).
    Frequencies w_l have shape (s, d), rows x_i (n, d); `before_call` is told of every product.
    """
    n = len(rows)
    features = np.exp(1j * (rows @ frequencies.T))
    conjugate = features.conj()
    matrix = np.empty((len(frequencies), len(frequencies)))
    for block in row_blocks(len(frequencies), _ROWS_PER_BLOCK):
        before_call(8 * (block.stop - block.start) * features.size)
        matrix[block] = np.square(np.abs(conjugate[:, block].T @ features))
        matrix[block] += np.square(np.abs(features[:, block].T @ features))
    gram = kernel.gram(rows, rows)
    before_call(4 * n * features.size)
    right = np.einsum("il,il->l", conjugate, gram @ features).real
    matrix /= 2 * n**2
    return matrix, right / n**2, float(np.square(gram).mean())


def _error(matrix: Matrix, right: Matrix, energy: float, weights: Matrix) -> float:
    """Mean squared error over the pairs of rows."""
    return float(weights @ matrix @ weights - 2 * right @ weights + energy)
