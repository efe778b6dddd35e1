"""Moment matching over any point set."""

from typing import Literal

import numpy as np
from scipy.linalg import eigh

from app.core.errors import InvalidInput
from app.core.kernels.base import Matrix, ShiftInvariantKernel
from app.core.samplers.base import FrequencySampler, FrequencySet
from app.core.samplers.points import Points


class MomentMatching(FrequencySampler):
    """Frequencies moved to the exact mean 0 and covariance of their law (MM paper, algorithm 1).

    The best single choice for smooth kernels: never far from the best sampler, and far ahead in high dimension or
    for wide kernels. `base` may be any point sampler; over scrambled Sobol' points it keeps their gain.
    """

    kind: Literal["moment_matching"]
    base: Points

    def check(self, kernel: ShiftInvariantKernel, s: int, input_dim: int) -> None:
        """The law needs two finite moments, and s must exceed d."""
        self.base.check(kernel, s, input_dim)
        if kernel.frequency_variances(input_dim) is None:
            raise InvalidInput(
                "moment_matching needs frequencies of finite variance, which this kernel's law has not; "
                f"sampler {self.base.kind} alone works",
                "/sampler/kind",
            )
        if s <= input_dim:
            raise InvalidInput(
                f"moment_matching needs more frequencies than dimensions; s is {s}, input_dim {input_dim}: "
                f"take s of {input_dim + 1} or more",
                "/s",
            )

    def frequency_set(
        self, kernel: ShiftInvariantKernel, s: int, input_dim: int, rng: np.random.Generator
    ) -> FrequencySet:
        """Base frequencies, centred and whitened with divisor s, then scaled to the law's variances."""
        variances = kernel.frequency_variances(input_dim)
        if variances is None:
            raise AssertionError("check() lets no such kernel through")
        base = self.base.frequency_set(kernel, s, input_dim, rng)
        frequencies = base.frequencies
        frequencies /= np.sqrt(variances)
        # The first pass leaves an error of rounding times condition; the second one removes it.
        for _ in range(2):
            frequencies = _whitened(frequencies)
        frequencies *= np.sqrt(variances)
        return base._replace(frequencies=frequencies)


def _whitened(rows: Matrix) -> Matrix:
    """Mean 0 and second moments I, by the symmetric root, which moves the rows least."""
    rows -= rows.mean(axis=0)
    eigenvalues, vectors = eigh(rows.T @ rows / len(rows))
    whitened: Matrix = rows @ ((vectors / np.sqrt(eigenvalues)) @ vectors.T)
    return whitened
