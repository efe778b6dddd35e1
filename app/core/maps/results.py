"""Results of maps beside features and codes."""

from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.kernels.base import Matrix, ShiftInvariantKernel

Arrays = dict[str, NDArray[Any]]
"""The frozen arrays of a map by name. They, not the spec, are the truth from then on."""


class Built(NamedTuple):
    """Frozen arrays, how much they make, and what the client should know about them."""

    arrays: Arrays
    n_frequencies: int
    n_output: int
    warnings: tuple[str, ...]
    report: dict[str, float] | None = None
    """Figures of a set that was learned: `objective_start` and `objective_end`, `weight_sum`, `points_kept` and, where
    rows were at hand, `gram_error`; None for all others."""


class FrozenArray(NamedTuple):
    """The largest shape, and the dtype, that a frozen array may have."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Spectrum(NamedTuple):
    """A set of frequencies beside the kernel it stands for, Σ ξ_l cos(w_l·δ) ≈ k(δ)/scale, all in float64."""

    frequencies: Matrix
    """w, (n_frequencies, d)."""
    weights: Matrix
    """ξ, (n_frequencies,); they sum to 1 where features are normalised."""
    kernel: ShiftInvariantKernel
    scale: float
    """k(0) where features are normalised, else 1."""


class ClosedForms(NamedTuple):
    """Variances of kernel estimates for pairs of rows, as far as they are known in closed form."""

    own: str | None
    """The name of this map's own, None where there is none. For some specs it has no entry in `by_name`."""
    by_name: dict[str, Matrix]
    """Each (n,). See the diagnostic `variance` for what the names mean."""


class Gives(StrEnum):
    """Results that a map may give beside its Gram block."""

    features = "features"
    codes = "codes"
    frequencies = "frequencies"
