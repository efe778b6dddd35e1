"""Frequencies with weights that integrate every polynomial up to a degree exactly."""

from math import comb
from typing import Annotated, Literal, Self

import numpy as np
import scipy
from numpy.polynomial import hermite_e
from pydantic import Field
from scipy.special import factorial

from app.core.arrays import Matrix
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, SpectralKernel
from app.core.model import GQ
from app.core.panels import orthonormal, row_products
from app.core.samplers.base import FrequencySampler, FrequencySet, Rng
from app.core.samplers.normal_law import NORMAL_LAW, normal_deviations, reach_of, reach_warnings

_MOST_EQUATIONS, _MOST_DEGREE = 400, 10
# Most equations that recommendations try: more take half a second to solve.
_MOST_EQUATIONS_TRIED = 256
_MOST_ENTRIES = 1 << 20
_MOST_RESIDUAL = 1e-10
# With fewer random candidates per equation, there is seldom a solution with non-negative weights.
_CANDIDATES_PER_EQUATION = 3
# Up to this size, candidates are doubled until there is a solution: high degrees need points far out, which are rare.
_MOST_ENTRIES_DOUBLED = 1 << 20
_BYTES_PER_COEFFICIENT = 64


class PolynomiallyExact(FrequencySampler):
    """Points chosen from random normal candidates, with non-negative weights that are exact to total degree R.

    The moment equations are solved by non-negative least squares. As few candidates as needed are kept: at most as
    many as there are equations, C(d + R, R).

    Choose when:
        Use it for rows close to each other if weights must not be negative. Do not use it for distant rows: its largest
        error in 25 dimensions, degree 2, for |δ|/σ up to 0.1, 1, 2, 4 is 8.6e-6, .043, .163, .23; that of monte_carlo
        is 9.5e-4, .061, .092, .10, and that of moment_matching 3.7e-6, .018, .090, .11.
    """

    source = f"{GQ}, section 3.2, (3)"
    limits = (
        f"at most {_MOST_EQUATIONS} equations, C(input_dim + degree, degree), and no fewer candidates",
        f"at most {_MOST_ENTRIES} coefficients, equations times candidates",
        NORMAL_LAW,
    )

    kind: Literal["polynomially_exact"]
    degree: Annotated[int, Field(ge=0, le=_MOST_DEGREE)]
    """R, total degree to which the weights are exact."""
    candidates: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    """Number of random candidates; if not given, three per equation, and more if these are not enough."""

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, most: int, dataset: str | None) -> tuple[Self, ...]:
        """Return the sampler with the highest degree that fits, from 3 on: below, moment_matching is better."""
        most = min(most, _MOST_EQUATIONS_TRIED)
        degree = next(
            (degree for degree in range(_MOST_DEGREE, 2, -1) if comb(input_dim + degree, degree) <= most), None
        )
        return () if degree is None else (cls(kind="polynomially_exact", degree=degree),)

    def weighs_alike(self) -> bool:
        """Return False: the weights solve equations."""
        return False

    def count(self, s: int | None, input_dim: int) -> int:
        """Return the number of equations: more points are never kept."""
        return comb(input_dim + self.degree, self.degree)

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Return the memory of the equations of all candidates."""
        candidates, equations = self._n_candidates(input_dim), self.count(None, input_dim)
        most = candidates if self.candidates else max(candidates, _MOST_ENTRIES_DOUBLED // equations)
        return super().drawing_bytes(most, input_dim) + _BYTES_PER_COEFFICIENT * equations * most

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse laws that are not normal, equations that take more than seconds, and too few candidates."""
        normal_deviations(kernel, input_dim, self.kind)
        equations = self.count(None, input_dim)
        if equations > _MOST_EQUATIONS or equations * self._n_candidates(input_dim) > _MOST_ENTRIES:
            raise InvalidInput(
                f"expected up to {_MOST_EQUATIONS} equations, got {equations}: take a lower degree", "/sampler/degree"
            )
        if self._n_candidates(input_dim) < equations:
            reason = f"{self.candidates} candidates cannot solve {equations} equations; take {3 * equations}"
            raise InvalidInput(reason, "/sampler/candidates")

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Return the candidates with positive weights, and their weights."""
        candidates = rng.standard_normal((self._n_candidates(input_dim), input_dim))
        weights, residual = _solve(candidates, self.degree)
        most = 0 if self.candidates else _MOST_ENTRIES_DOUBLED // self.count(None, input_dim)
        while residual > _MOST_RESIDUAL and 2 * len(candidates) <= most:
            candidates = np.concatenate([candidates, rng.standard_normal(candidates.shape)])
            weights, residual = _solve(candidates, self.degree)
        if residual > _MOST_RESIDUAL:
            equations, more = self.count(None, input_dim), 2 * len(candidates)
            advice = f"try {more}, or a lower degree" if equations * more <= _MOST_ENTRIES else "take a lower degree"
            raise InvalidInput(
                f"{len(candidates)} candidates do not solve {equations} equations (residual {residual:.1e}); {advice}",
                "/sampler/candidates",
            )
        candidates, weights = candidates[weights > 0], weights[weights > 0]
        # A single point has no reach.
        warnings = reach_warnings(reach_of(candidates, weights)) if len(weights) > 1 else ()
        if self.degree < 2:
            warnings = (
                f"degree {self.degree} leaves the spread of the {len(weights)} frequencies, and so the kernel, to "
                "chance: take degree 2 or more",
            )
        return FrequencySet(candidates * normal_deviations(kernel, input_dim, self.kind), weights, warnings)

    def _n_candidates(self, input_dim: int) -> int:
        return self.candidates or _CANDIDATES_PER_EQUATION * self.count(None, input_dim)


def _solve(candidates: Matrix, degree: int) -> tuple[Matrix, float]:
    """Return non-negative weights, (candidates,), nearest to the moments of the normal law, and the residual."""
    equations = _hermite_products(candidates, degree)
    moments = np.eye(1, len(equations))[0]
    try:
        weights, residual = scipy.optimize.nnls(equations, moments)
    except RuntimeError:  # nnls gives up after three steps per candidate
        return np.zeros(len(candidates)), np.inf
    kept = weights > 0
    anew = _least_squares(equations[:, kept])
    if (anew > 0).all():
        weights[kept] = anew
    return weights, float(residual)


def _least_squares(equations: Matrix) -> Matrix:
    """Find the weights, of either sign, nearest to the moments: the same bits on every processor, unlike a library."""
    q = orthonormal(equations[None])[0]
    r = row_products(q.T, equations.T)
    weights: Matrix = q[0].copy()  # the moments are the first unit vector
    for i in reversed(range(len(weights))):
        weights[i] /= r[i, i]
        weights[:i] -= weights[i] * r[:i, i]
    return weights


def _hermite_products(points: Matrix, degree: int) -> Matrix:
    """Return normalised Hermite products of total degree ≤ degree, shape (equations, points), the constant first.

    They are orthonormal under the normal law, so their moments are 1 for the constant and 0 for all others. These
    conditions are equivalent to conditions on monomials, but far better conditioned.
    """
    one_dimensional = hermite_e.hermevander(points, degree) / np.sqrt(factorial(np.arange(degree + 1)))
    products, degrees = [np.ones(len(points))], [(0, 0)]
    # Each product is extended by later coordinates only, so that no product is made twice.
    for product, (total, first) in zip(products, degrees, strict=False):
        for j in range(first, points.shape[1]):
            for power in range(1, degree - total + 1):
                products.append(product * one_dimensional[:, j, power])
                degrees.append((total + power, j + 1))
    return np.array(products)
