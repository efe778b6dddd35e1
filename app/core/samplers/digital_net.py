"""Interlaced digital nets in base 2."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from app.core.arrays import Matrix, Whole
from app.core.kernels.base import SpectralKernel
from app.core.model import QMC
from app.core.samplers.base import PointSampler, Rng, check_dimensions
from app.core.samplers.sobol import BITS, MOST_DIMENSIONS, balance_warnings, sobol_blocks


class DigitalNet(PointSampler):
    """Sobol' points with a digital shift, in which the digits of `alpha` coordinates are interlaced into one.

    Choose when:
        Use it for smooth kernels in few dimensions with s a power of two, where an alpha of 2 or more can reduce the
        error. With alpha 1 it is the same as sobol. Do not use it in many dimensions: use sobol there.
    """

    source = (
        "Dick (2008), Walsh spaces containing smooth functions and quasi-Monte Carlo rules of arbitrary high "
        f"order; {QMC}, section 6.1"
    )
    limits = (
        f"input_dim of at most {MOST_DIMENSIONS} divided by alpha; one less for kernels matern and rational_quadratic",
    )
    best_at_powers_of_two = True

    kind: Literal["digital_net"]
    alpha: Annotated[int, Field(ge=1, le=4)] = 2
    """Order: number of coordinates whose digits are interlaced into one."""
    scramble: bool = True
    """Whether to apply a random digital shift. Without a shift, the first point, the origin, is left out."""

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse too many dimensions: each takes `alpha` of the 21,201 coordinates that have direction numbers."""
        check_dimensions(f"{self.kind} with alpha {self.alpha}", MOST_DIMENSIONS // self.alpha, kernel, input_dim)

    def is_seeded(self) -> bool:
        """Return whether the points are scrambled."""
        return self.scramble

    def points(self, n: int, d: int, rng: Rng) -> Matrix:
        """Return the first `n` points; without a shift, the origin is left out."""
        # Rounded up; the surplus bits are cut off at the end. So alpha 3 also uses all bits that a float64 holds.
        per_digit = -(-BITS // self.alpha)
        shift = rng.integers(1 << BITS, size=d) if self.scramble else np.zeros(d, np.int64)
        points, first = np.empty((n, d)), 0 if self.scramble else 1 + self._before
        for rows, drawn in sobol_blocks(n, d * self.alpha, None, first):
            digits = (drawn * (1 << per_digit)).astype(np.int64).reshape(-1, d, self.alpha)
            mixed = _interlace(digits, per_digit) >> (per_digit * self.alpha - BITS)
            # Half a step keeps the shifted points off 0.
            points[rows] = ((mixed ^ shift) + 0.5) * 2.0**-BITS
        return points

    def point_warnings(self, n: int, d: int) -> tuple[str, ...]:
        """Return warnings if s is no power of two, the origin is missing, or order 1 makes this the Sobol' sequence."""
        warnings = balance_warnings(self.kind, n)
        if self.alpha == 1:
            warnings.append("digital_net with alpha 1 is the Sobol' sequence")
        if not self.scramble:
            warnings.append("digital_net without scrambling starts at the origin, which was skipped")
        return tuple(warnings)


def _interlace(digits: Whole, bits: int) -> Whole:
    """Interlace numbers of `bits` bits, (n, d, alpha) to (n, d): all first bits, then all second bits, and so on."""
    alpha, mixed = digits.shape[2], np.zeros(digits.shape[:2], np.int64)
    for bit in range(bits):
        for k in range(alpha):
            taken = (digits[:, :, k] >> (bits - 1 - bit)) & 1
            mixed |= taken << (bits * alpha - 1 - (bit * alpha + k))
    return mixed
