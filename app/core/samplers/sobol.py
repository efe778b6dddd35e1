"""The Sobol' sequence."""

from collections.abc import Iterator
from typing import Literal

import numpy as np
import scipy

from app.core.arrays import Matrix
from app.core.kernels.base import SpectralKernel
from app.core.model import QMC
from app.core.samplers.base import PointSampler, Rng, SizeAdvice, check_dimensions

MOST_DIMENSIONS = 21_201
# Bits that a float64 in (0, 1) holds exactly. 30 bits, the engine's default, would put scrambled coordinates on exact
# zeros; and an engine can only draw as many points as its bits can distinguish.
BITS = 52
# Enough for points that are not scrambled, of which there are fewer than 2^30; with so few bits, an engine can begin at
# any point.
_PLAIN_BITS = 30
# Coordinates drawn between two releases of the interpreter lock.
_COORDINATES_PER_DRAW = 1 << 18
_BYTES_PER_DIRECTION = 50_000


class Sobol(PointSampler):
    """Sobol' points, scrambled by a random linear matrix and shift.

    Best at s = 2^m, where the points are balanced.

    Choose when:
        Use it in up to about twenty dimensions with s a power of two: its Gram error on cpu in 21 dimensions at s =
        1024 is .0669, where monte_carlo has .0825. On MNIST in 250 dimensions its Gram error is .0509, behind
        moment_matching (.0475); in the form complex it is the best (.0710 against .0761).
    """

    source = (
        "Joe and Kuo (2008), Constructing Sobol' sequences with better two-dimensional projections; scramble: Matoušek "
        f"(1998), On the L2-discrepancy for anchored boxes; as features: {QMC}, section 6.1"
    )
    limits = (f"input_dim of at most {MOST_DIMENSIONS}; one less for kernels matern and rational_quadratic",)
    best_at_powers_of_two = True

    kind: Literal["sobol"]
    scramble: bool = True
    """Whether to scramble the points; if false, the plain sequence is used without its first point, the origin."""

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse more than the 21,201 dimensions for which direction numbers are known."""
        check_dimensions(self.kind, MOST_DIMENSIONS, kernel, input_dim)

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Return the memory of the direction numbers and of the points."""
        return super().drawing_bytes(s, input_dim) + _BYTES_PER_DIRECTION * input_dim

    def is_seeded(self) -> bool:
        """Return whether the points are scrambled."""
        return self.scramble

    def points(self, n: int, d: int, rng: Rng) -> Matrix:
        """Return the first `n` points; without scrambling, the origin is left out."""
        seed, points = int(rng.integers(1 << 63)), np.empty((n, d))
        first = 0 if self.scramble else 1 + self._before
        for rows, drawn in sobol_blocks(n, d, seed if self.scramble else None, first):
            points[rows] = drawn
        return points

    def point_warnings(self, n: int, d: int) -> tuple[str, ...]:
        """Return warnings if the points are not balanced: s is no power of two, or the origin is missing."""
        warnings = balance_warnings(self.kind, n)
        if not self.scramble:
            warnings.append("sobol without scrambling starts at the origin, which was skipped; the balance is lost")
        return tuple(warnings)


def sobol_blocks(n: int, d: int, scramble_seed: int | None, first: int = 0) -> Iterator[tuple[slice, Matrix]]:
    """Yield n points from number `first` on, block by block: a slice of the n rows, and their points, (rows, d).

    Without a seed, points are not scrambled. For scrambled points, `first` must be 0.
    """
    bits = _PLAIN_BITS if scramble_seed is None else BITS
    engine = scipy.stats.qmc.Sobol(d, scramble=scramble_seed is not None, bits=bits, rng=scramble_seed)
    if first:
        engine.fast_forward(first)  # in SciPy 1.17 it fails beyond 32 bits
    # Powers of two first: the engine warns about an unbalanced first draw, which balance_warnings words better.
    most = 1 << max(0, (_COORDINATES_PER_DRAW // d).bit_length() - 1)
    done = 0
    while done < n:
        some = min(most, 1 << ((n - done).bit_length() - 1))
        yield slice(done, done + some), np.asarray(engine.random(some))
        done += some


def balance_warnings(kind: str, n: int) -> list[str]:
    """Return warnings about n points of a sampler that is balanced only at powers of two."""
    if n & (n - 1) == 0:
        return []
    lower = 1 << (n.bit_length() - 1)
    return [SizeAdvice(f"{kind} is balanced only at a power of two", n, lower, 2 * lower)]
