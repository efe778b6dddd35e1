"""Bounds that the quadrature paper proves of the greatest error of a rule over a region."""

from math import e

import numpy as np

from app.core.maps import FeatureMap
from app.core.samplers.dense_grid import DenseGrid
from app.core.samplers.polynomially_exact import PolynomiallyExact
from app.core.samplers.sparse_grid import SparseGrid


def greatest_error_bound(feature_map: FeatureMap, diameter: float) -> float | None:
    """A bound of |k(δ) − k̂(δ)| for every |δ| ≤ `diameter`, in the unit of the vectors; None where none is proved.

    The spectrum is subgaussian with parameter b: of N(0, diag σ_j⁻²), b = 1/min σ_j. Quadrature paper:

    - Theorem 2, of rules with non-negative weights exact to the even total degree R: 3(e b²M²/R)^(R/2). Sampler
      polynomially_exact has R = degree, one less if that is odd; dense_grid has R = 2L − 2, the largest even number up
      to its degree 2L − 1.
    - Theorem 3, of sparse grids of level A ≥ 24 e b²M²: 2^d (12 e b²M²/A)^A.

    They hold for exact arithmetic, to which float32 adds some 1e-7. Kernel anova, a sum of kernels on its subsets, has
    none; nor has a bound beyond the range of float64.
    """
    spec = feature_map.spec
    deviations = feature_map.spectrum().kernel.normal_deviations(spec.input_dim)
    if deviations is None:
        return None
    with np.errstate(over="ignore"):  # an infinite bound is none
        square = np.square(np.float64(diameter) * deviations.max())
        match spec.sampler:
            case PolynomiallyExact(degree=degree):
                bound = _theorem_2(square, degree - degree % 2)
            case DenseGrid(points_per_dim=points):
                bound = _theorem_2(square, 2 * points - 2)
            case SparseGrid(level=level) if level >= 24 * e * square and level:
                bound = 2.0**spec.input_dim * (12 * e * square / level) ** level
            case _:
                return None
    return float(bound) if np.isfinite(bound) else None


def _theorem_2(square: np.float64, degree: int) -> np.float64:
    """Infinity for degree 0, which the theorem does not speak of."""
    return 3 * (e * square / degree) ** (degree / 2) if degree else np.float64(np.inf)
