"""Antithetic pairs."""

from typing import Literal

import numpy as np

from app.core.errors import InvalidInput
from app.core.kernels.base import Matrix, SpectralKernel
from app.core.samplers.base import PointSampler


class Antithetic(PointSampler):
    """Independent frequencies w, each beside its mirror −w.

    Makes the imaginary part of the form `complex` vanish. The real forms do not tell w from −w, so there a pair is
    worth one frequency and the error grows by √2.
    """

    kind: Literal["antithetic"]

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Pairs need an even s."""
        del kernel, input_dim
        if s % 2:
            raise InvalidInput(
                f"antithetic frequencies come in pairs, and {s} is odd; take {s + 1} (for each subset)",
                "/s",
            )

    def points(self, n: int, d: int, rng: np.random.Generator) -> Matrix:
        """n/2 uniform points, then their mirror images 1 − t."""
        half = rng.random((n // 2, d))
        return np.concatenate([half, 1 - half])

    def form_warnings(self, real: bool) -> tuple[str, ...]:
        """A loss with every real form."""
        if not real:
            return ()
        return ("antithetic is a loss with a real form (cos(w·δ) = cos(−w·δ)): the error is √2 times monte_carlo's",)
