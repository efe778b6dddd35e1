"""Independent random points."""

from typing import Literal

from app.core.arrays import Matrix
from app.core.model import RFF
from app.core.samplers.base import PointSampler, Rng


class MonteCarlo(PointSampler):
    """Independent draws: random Fourier features.

    Choose when:
        As the baseline, and where frequencies must be independent. Gram error .0693 on MNIST in 250 dimensions at s =
        1024, where moment_matching has .0475.
    """

    source = f"{RFF}, section 3"

    kind: Literal["monte_carlo"]

    def points(self, n: int, d: int, rng: Rng) -> Matrix:
        """Return `n` independent uniform points."""
        return rng.random((n, d))
