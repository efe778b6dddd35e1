"""Interlaced digital nets in base 2."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.stats import qmc

from app.core.kernels.base import Matrix, SpectralKernel
from app.core.samplers.base import PointSampler, check_dimensions

# Bits of an interlaced coordinate: what a float64 in (0, 1) holds exactly.
_BITS = 52
_COORDINATES_PER_DRAW = 1 << 18


class DigitalNet(PointSampler):
    """Sobol' points whose digits are interlaced, alpha coordinates into one (Dick, 2008), with a digital shift.

    Higher order alpha pays for smooth integrands in few dimensions. With alpha 1 these are the Sobol' points.
    """

    kind: Literal["digital_net"]
    alpha: Annotated[int, Field(ge=1, le=4, description="Order of the interlacing.")] = 2
    scramble: bool = Field(True, description="Digital shift; without it the first point, the origin, is left out.")

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Direction numbers are known for 21,201 coordinates, and interlacing uses alpha a dimension."""
        del s
        kind = f"{self.kind} with alpha {self.alpha}"
        check_dimensions(kind, qmc.Sobol.MAXDIM // self.alpha, kernel, input_dim)

    def points(self, n: int, d: int, rng: np.random.Generator) -> Matrix:
        """The first `n` points, the origin left out when not shifted."""
        # Rounded up, and what is too much cut off at the end: for alpha 3, as far as a float64 goes too.
        per_digit = -(-_BITS // self.alpha)
        # An engine of `per_digit` bits would end after 2^per_digit points.
        engine = qmc.Sobol(d * self.alpha, scramble=False, bits=_BITS)
        if not self.scramble:
            engine.random(1)  # fast_forward of SciPy 1.17 fails beyond 32 bits
        shift = rng.integers(1 << _BITS, size=d) if self.scramble else np.zeros(d, np.int64)
        points = np.empty((n, d))
        # Powers of two first: the engine complains of an unbalanced first draw, which point_warnings says better.
        most = 1 << max(0, (_COORDINATES_PER_DRAW // (d * self.alpha)).bit_length() - 1)
        done = 0
        while done < n:
            some = min(most, 1 << ((n - done).bit_length() - 1))
            digits = (engine.random(some) * (1 << per_digit)).astype(np.int64).reshape(some, d, self.alpha)
            mixed = _interlaced(digits, per_digit) >> (per_digit * self.alpha - _BITS)
            # Half a step keeps the shifted points off 0.
            points[done : done + some] = ((mixed ^ shift) + 0.5) * 2.0**-_BITS
            done += some
        return points

    def point_warnings(self, n: int, d: int) -> tuple[str, ...]:
        """Balance off a power of two, the missing origin, and the identity with Sobol' at order 1."""
        del d
        warnings = []
        if n & (n - 1):
            lower = 1 << (n.bit_length() - 1)
            warnings.append(f"digital_net is balanced only at a power of two; s = {n}, take {lower} or {2 * lower}")
        if self.alpha == 1:
            warnings.append("digital_net with alpha 1 is the Sobol' sequence")
        if not self.scramble:
            warnings.append("digital_net without scrambling starts at the origin, which was skipped")
        return tuple(warnings)


def _interlaced(digits: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Numbers of `bits` bits, shape (n, d, alpha), to (n, d): first bits of all, then second bits of all, and so on."""
    alpha = digits.shape[2]
    mixed = np.zeros(digits.shape[:2], np.int64)
    for bit in range(bits):
        for k in range(alpha):
            taken = (digits[:, :, k] >> (bits - 1 - bit)) & 1
            mixed |= taken << (bits * alpha - 1 - (bit * alpha + k))
    return mixed
