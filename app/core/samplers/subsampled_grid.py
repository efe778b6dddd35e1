"""Random points of the full tensor grid."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from app.core.kernels.base import SpectralKernel
from app.core.model import GQ
from app.core.samplers.base import FrequencySampler, FrequencySet, Rng
from app.core.samplers.normal_law import NORMAL_LAW, gauss_hermite, normal_deviations


class SubsampledGrid(FrequencySampler):
    """s points of the dense grid, drawn with its weights as probabilities, all with weight 1/s.

    Drawing by weight already accounts for the weights; weighting the draws again would count them twice.

    Choose when:
        Use it if few distinct values per coordinate make features cheaper to compute, as in hardware. Do not use it for
        accuracy: its error is that of monte_carlo.
    """

    source = f"{GQ}, section 3.4, on subsampled grids"
    limits = (NORMAL_LAW,)
    untried = "Its error is that of monte_carlo."

    held_at_once = 3

    kind: Literal["subsampled_grid"]
    points_per_dim: Annotated[int, Field(ge=1, le=200)]
    """L, number of nodes of the one-dimensional rule."""

    def off_law(self, input_dim: int) -> str | None:
        """Return that coordinates take only the few values of the rule's nodes."""
        return "have coordinates of a few values"

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse laws that are not normal."""
        normal_deviations(kernel, input_dim, self.kind)

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Draw points of the grid, each coordinate with the one-dimensional weights as probabilities."""
        nodes, weights = gauss_hermite(self.points_per_dim)
        frequencies = rng.choice(nodes, p=weights, size=(s, input_dim))
        frequencies *= normal_deviations(kernel, input_dim, self.kind)
        return FrequencySet(frequencies, np.full(s, 1 / s))
