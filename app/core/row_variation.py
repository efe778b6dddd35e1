"""Uncertainty of a relative error over pairs of rows, as it varies between samples of rows from the same source."""

from typing import NamedTuple

import numpy as np
import scipy

from app.core.arrays import Matrix

HEAVY = 10
"""If the effective rows of an error are fewer, a handful of rows make most of it."""
_COVERED = 0.95


class RowVariation(NamedTuple):
    """Contribution of the sample of rows to the uncertainty of an error that is measured on them."""

    deviation: float
    """Standard deviation of the logarithm of the error, over samples of the same number of rows."""
    effective_rows: float
    """Number of rows of equal influence that would vary as much; small if few rows make most of the error."""

    def interval(self, error: float, of_maps: float = 0.0) -> tuple[float, float]:
        """Return the interval in which the error on new rows lies in 95 % of cases, by Student's t.

        `of_maps` is the standard deviation of the error's logarithm over maps, if the map is a new one too.
        """
        quantile = scipy.special.stdtrit(max(2.0, self.effective_rows - 1), (1 + _COVERED) / 2)
        factor = float(np.exp(quantile * np.hypot(self.deviation, of_maps)))
        return error / factor, error * factor


def row_variation(errors: Matrix, kernel: Matrix) -> RowVariation:
    """Return the variation of √(Σ E²/Σ K²), from the sums of E² and of K² in each row of a Gram matrix, both (n,).

    By the influence of each row on a ratio of two means over pairs (the infinitesimal jackknife; Efron 1982).
    """
    if not errors.any() or not kernel.any():
        return RowVariation(0.0, float(len(errors)))
    influence = errors / errors.sum() - kernel / kernel.sum()
    squares = np.square(influence)
    total = float(squares.sum())
    if not total:
        return RowVariation(0.0, float(len(errors)))
    n = len(errors)
    return RowVariation(float(np.sqrt(n / (n - 1) * total)), total**2 / float(np.square(squares).sum()))
