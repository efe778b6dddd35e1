"""Independent random points."""

from typing import Literal

import numpy as np

from app.core.kernels.base import Matrix
from app.core.samplers.base import PointSampler


class MonteCarlo(PointSampler):
    """Independent draws: random Fourier features (Rahimi and Recht, 2007), the baseline of every other sampler."""

    kind: Literal["monte_carlo"]

    def points(self, n: int, d: int, rng: np.random.Generator) -> Matrix:
        """`n` independent uniform points."""
        return rng.random((n, d))
