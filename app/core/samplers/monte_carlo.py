"""Independent random points."""

from typing import Literal

from app.core.arrays import Matrix
from app.core.model import RFF
from app.core.samplers.base import PointSampler, Rng


class MonteCarlo(PointSampler):
    """Independent draws: random Fourier features.

    Choose when:
        Use it as the baseline, or if frequencies must be independent. Do not use it for the smallest error: on MNIST in
        250 dimensions at s = 1024 its Gram error is .0693, that of moment_matching .0475.
    """

    source = f"{RFF}, section 3"

    neighbours_are_independent = True

    kind: Literal["monte_carlo"]

    def points(self, n: int, d: int, rng: Rng) -> Matrix:
        """Return `n` independent uniform points."""
        return rng.random((n, d))
