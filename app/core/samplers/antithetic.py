"""Antithetic pairs."""

from typing import Literal

import numpy as np

from app.core.errors import InvalidInput
from app.core.kernels.base import ShiftInvariantKernel, SpectralKernel
from app.core.samplers.base import FrequencySampler, FrequencySet, Rng, SizeAdvice
from app.core.samplers.monte_carlo import MonteCarlo


class Antithetic(FrequencySampler):
    """Independent frequencies w, each paired with its mirror image −w.

    The imaginary part of the form `complex` vanishes. The real forms cannot distinguish w from −w: there a pair is
    worth one frequency, and the error grows by a factor of √2.

    Choose when:
        Use it only with the form complex, whose imaginary error it removes. Do not use it with the real forms: on MNIST
        in 250 dimensions at s = 1024 its Gram error is .099, where monte_carlo has .0693.
    """

    source = "Hammersley and Morton (1956), A new Monte Carlo technique: antithetic variates"
    limits = ("s is even, on each subset of kernel anova",)
    untried = "It loses in the real forms, and recommended maps are of one."

    neighbours_are_independent = True

    kind: Literal["antithetic"]

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse an odd s: frequencies come in pairs."""
        if s % 2:
            raise InvalidInput(SizeAdvice("antithetic frequencies come in pairs", s, s + 1), "/s")

    def form_warnings(self, real: bool) -> tuple[str, ...]:
        """Return, for a real form, the warning that mirror images add no information."""
        if not real:
            return ()
        return (
            "antithetic is a loss with a real form (cos(w·δ) = cos(−w·δ)): the error is √2 times monte_carlo's with "
            "cos_sin, up to √1.5 times with phase",
        )

    def law_doubts(self, kernel: ShiftInvariantKernel, input_dim: int) -> tuple[str, ...]:
        """Return that the bits of a pair differ together more often than those of other frequencies."""
        return (
            "frequencies of antithetic come in pairs that are not independent: intervals contain the kernel 92 to "
            "95 times in 100; those of sampler monte_carlo have no such gap",
        )

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Draw s/2 independent frequencies and append their mirror images; each has weight 1/s."""
        # Mirrored points 1 − t would work for product kernels only: a uniform may determine the length of a frequency.
        half = MonteCarlo(kind="monte_carlo").frequency_set(kernel, s // 2, input_dim, rng).frequencies
        return FrequencySet(np.concatenate([half, -half]), np.full(s, 1 / s))
