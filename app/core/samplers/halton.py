"""The Halton sequence."""

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from app.core.arrays import Matrix, Whole
from app.core.errors import InvalidInput
from app.core.kernels.base import SpectralKernel
from app.core.model import QMC
from app.core.samplers.base import PointSampler, Rng, check_dimensions

# A coordinate costs time in proportion to its base, here up to 104,729.
_MOST_DIMENSIONS = 10_000
# Above this dimension, neighbouring coordinates of an unscrambled sequence visibly depend on each other.
_POOR_ABOVE = 30


class Halton(PointSampler):
    """Radical inverses in the first d primes, with permuted digits.

    Sequences without random scrambling leave out the origin: they start at their point 1.

    Choose when:
        Use it with random scrambling if s is not a power of two, or to skip points: its Gram error at s = 1024 is .0573
        on MNIST in 250 dimensions and .0709 on cpu in 21, where monte_carlo has .0693 and .0825. Do not use it without
        scrambling in more than a few dimensions: on MNIST its Gram error is then .109.
    """

    source = f"{QMC}, sections 2.3 and 6.1; scramble random: Owen (2017), A randomized Halton algorithm in R"
    limits = (
        f"input_dim of at most {_MOST_DIMENSIONS}; one less for kernels matern and rational_quadratic",
        "leap + 1 shares no factor with the first input_dim primes",
    )

    kind: Literal["halton"]
    scramble: Literal["random", "reverse_radix", "none"] = "random"
    """Permutations of the digits. random: a random permutation for every digit. reverse_radix: bit reversal. none: no
    permutation.
    """
    skip: Annotated[int, Field(ge=0, le=1 << 31)] = 0
    """Number of points left out at the start of the sequence."""
    leap: Annotated[int, Field(ge=0, le=1 << 20)] = 0
    """Number of points left out between two points that are used."""

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse too many dimensions, and a leap that would never change the first digit of a coordinate."""
        check_dimensions(self.kind, _MOST_DIMENSIONS, kernel, input_dim)
        dimensions = kernel.uniforms_per_frequency(input_dim)
        stuck = [base for base in _primes(dimensions) if (self.leap + 1) % base == 0] if self.leap else []
        if stuck:
            works = _primes(dimensions + 1)[-1] - 1
            raise InvalidInput(
                f"leap {self.leap} skips a multiple of base {stuck[0]} of the sequence; leap {works} works",
                "/sampler/leap",
            )

    def is_seeded(self) -> bool:
        """Return whether the points are scrambled at random."""
        return self.scramble == "random"

    def points(self, n: int, d: int, rng: Rng) -> Matrix:
        """Return `n` points of the sequence; the base of the d-th coordinate is the d-th prime."""
        first = self.skip + (self.scramble != "random")
        indices = first + (self.leap + 1) * np.arange(self._before, self._before + n, dtype=np.int64)
        points = np.empty((n, d))
        for j, base in enumerate(_primes(d)):
            points[:, j] = self._coordinate(indices, base, rng)
        return points

    def point_warnings(self, n: int, d: int) -> tuple[str, ...]:
        """Return warnings, if not scrambled at random, about the missing origin and about dependent coordinates."""
        if self.scramble == "random":
            return ()
        warnings = [f"halton with scramble {self.scramble} starts at the origin, which was skipped"]
        if d > _POOR_ABOVE:
            warnings.append(
                f"halton with scramble {self.scramble} is poor above {_POOR_ABOVE} dimensions (input_dim is {d}): "
                "neighbouring coordinates depend on each other; scramble random has no such limit"
            )
        return tuple(warnings)

    def _coordinate(self, indices: Whole, base: int, rng: Rng) -> Matrix:
        """Permute the digits of the indices and mirror them at the point: Σ_k permutations[k](digit_k) base^(−k−1)."""
        last = int(indices[-1])
        n_digits = 1
        while base**n_digits <= last:
            n_digits += 1
        if self.scramble == "random":
            # If the indices have a single digit, only the values that occur need an image.
            size = min(base, last + 1)
            permutations = np.stack([rng.choice(base, size, replace=False) for _ in range(n_digits)])
            # All indices continue with zeros after their last digit; permuted, these are one uniform tail.
            tail = rng.random() / float(base**n_digits)
        else:
            one = np.arange(base) if self.scramble == "none" else _reversed_radix(base)
            permutations = np.broadcast_to(one, (n_digits, base))
            tail = 0.0
        inverse, place = np.zeros(len(indices)), 1.0
        for permutation in permutations:
            indices, digit = np.divmod(indices, base)
            place /= base
            inverse += place * permutation[digit]
        return inverse + tail


def _primes(count: int) -> list[int]:
    """Return the first `count` primes, sieved up to Rosser's bound n(ln n + ln ln n), which holds from n = 6 on."""
    bound = 11 if count < 6 else math.ceil(count * (math.log(count) + math.log(math.log(count))))
    sieve = np.ones(bound + 1, np.bool_)
    sieve[:2] = False
    for number in range(2, math.isqrt(bound) + 1):
        if sieve[number]:
            sieve[number * number :: number] = False
    primes: list[int] = np.flatnonzero(sieve)[:count].tolist()
    return primes


def _reversed_radix(base: int) -> Whole:
    """Return the reverse-radix permutation: bit reversals of 0 … 2^k − 1, of which those below the base are kept."""
    mirrored = np.zeros(1, np.int64)
    while len(mirrored) < base:
        mirrored = np.concatenate([2 * mirrored, 2 * mirrored + 1])
    return mirrored[mirrored < base]
