"""The client's own frequencies."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from app.core.errors import InvalidInput
from app.core.kernels.base import SpectralKernel
from app.core.model import GQ, check_entries
from app.core.samplers.base import FrequencySampler, FrequencySet, Rng, sum_warnings

Row = Annotated[tuple[float, ...], Field(fail_fast=True)]


class Uploaded(FrequencySampler):
    """Frequencies and weights supplied by the client, for instance from an optimisation elsewhere.

    Exact values and diagnostics use the kernel of the spec; the client is responsible for a set that fits it. With
    kernel `anova` every subset uses the same set: all subsets must have as many coordinates as a frequency has entries.

    Choose when:
        Use it for frequencies found, learned or optimised elsewhere.
    """

    source = f"The client; sums of this form: {GQ}, section 3"
    limits = (
        "input_dim entries in each frequency; with kernel anova as many as in each subset",
        "as many weights as frequencies, if any",
    )
    untried = "It has frequencies of the client's own."

    kind: Literal["uploaded"]
    frequencies: Annotated[tuple[Row, ...], Field(min_length=1, fail_fast=True)]
    """Frequencies w_l, each a list of input_dim numbers, in units of 1/coordinate."""
    weights: Annotated[tuple[float, ...], Field(fail_fast=True)] | None = None
    """One per frequency, of either sign; 1/s if not given."""

    def weighs_alike(self) -> bool:
        """Return whether all weights are equal and positive, or none are given."""
        return self.weights is None or (len(set(self.weights)) == 1 and self.weights[0] > 0)

    def off_law(self, input_dim: int) -> str | None:
        """Return that the frequencies may have any law."""
        return "may be of any law"

    def count(self, s: int | None, input_dim: int) -> int:
        """Return the number of uploaded frequencies."""
        return len(self.frequencies)

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse frequencies without input_dim entries, and weights whose number is not that of the frequencies."""
        for i, row in enumerate(self.frequencies):
            check_entries(row, input_dim, f"frequency {i}", f"/sampler/frequencies/{i}")
        if self.weights is not None and len(self.weights) != len(self.frequencies):
            raise InvalidInput(f"expected {len(self.frequencies)} weights, got {len(self.weights)}", "/sampler/weights")

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Return the set as uploaded, with weights 1/s if none are given."""
        n = len(self.frequencies)
        weights = np.full(n, 1 / n) if self.weights is None else np.array(self.weights)
        with np.errstate(over="ignore"):  # an infinite sum is refused by the map
            total = float(weights.sum())
        return FrequencySet(np.array(self.frequencies), weights, sum_warnings(total))
