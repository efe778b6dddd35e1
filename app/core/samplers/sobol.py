"""The Sobol' sequence."""

from typing import Literal

import numpy as np
from pydantic import Field
from scipy.stats import qmc

from app.core.kernels.base import Matrix, SpectralKernel
from app.core.samplers.base import PointSampler, check_dimensions

# Points drawn between two releases of the interpreter lock, in coordinates.
_COORDINATES_PER_DRAW = 1 << 18


class Sobol(PointSampler):
    """Sobol' points (directions of Joe and Kuo), scrambled by a random linear matrix and shift.

    Best at s = 2^m, where the points are balanced; the sampler to take up to some twenty dimensions.
    """

    kind: Literal["sobol"]
    scramble: bool = Field(True, description="False gives the plain sequence without its first point, the origin.")

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Direction numbers are known for 21,201 dimensions."""
        del s
        check_dimensions(self.kind, qmc.Sobol.MAXDIM, kernel, input_dim)

    def points(self, n: int, d: int, rng: np.random.Generator) -> Matrix:
        """The first `n` points, the origin left out when not scrambled."""
        # 30 bits, the engine's default, would put scrambled coordinates on exact zeros.
        engine = qmc.Sobol(d, scramble=self.scramble, bits=52, rng=int(rng.integers(1 << 63)))
        if not self.scramble:
            engine.random(1)  # fast_forward of SciPy 1.17 fails beyond 32 bits
        points = np.empty((n, d))
        # Powers of two first: the engine complains of an unbalanced first draw, which point_warnings says better.
        most = 1 << max(0, (_COORDINATES_PER_DRAW // d).bit_length() - 1)
        done = 0
        while done < n:
            some = min(most, 1 << ((n - done).bit_length() - 1))
            points[done : done + some] = engine.random(some)
            done += some
        return points

    def point_warnings(self, n: int, d: int) -> tuple[str, ...]:
        """Balance is lost off a power of two, and without the origin."""
        del d
        warnings = []
        if n & (n - 1):
            lower = 1 << (n.bit_length() - 1)
            warnings.append(f"sobol is balanced only at a power of two; s = {n}, take {lower} or {2 * lower}")
        if not self.scramble:
            warnings.append("sobol without scrambling starts at the origin, which was skipped; the balance is lost")
        return tuple(warnings)
