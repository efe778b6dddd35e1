"""Orthogonal random features."""

from typing import Literal

import numpy as np

from app.core.arrays import Matrix, row_blocks
from app.core.errors import InvalidInput
from app.core.kernels.base import SpectralKernel
from app.core.panels import orthonormal
from app.core.samplers.base import FrequencySampler, FrequencySet, Rng, check_products
from app.core.samplers.normal_law import NORMAL_LAW, normal_deviations

# Together they bound the time to some ten seconds.
_MOST_DIMENSIONS, _MOST_PRODUCTS = 4096, 1 << 36
# Entries of the matrices decomposed at a time: in few dimensions there are millions of blocks.
_ENTRIES_PER_STACK = 1 << 18
# Per entry of these matrices: the random number, and the results computed from it.
_BYTES_PER_ENTRY = 32


class Orthogonal(FrequencySampler):
    """Normal frequencies in blocks of d that are exactly orthogonal before scaling.

    Each block is a uniformly distributed orthogonal matrix whose rows get the lengths of normal vectors, so each
    frequency alone has the right law, and the frequencies of a block avoid each other.

    Choose when:
        Use it for normal laws in many dimensions if each frequency alone must have the exact law (moment_matching has a
        bias of order 1/s), or if s is at most input_dim.
    """

    source = "Yu, Suresh, Choromanski, Holtmann-Rice, Kumar (2016), Orthogonal random features, section 3"
    limits = (f"input_dim of at most {_MOST_DIMENSIONS}, s·input_dim² of at most {_MOST_PRODUCTS}", NORMAL_LAW)
    decomposes = True

    kind: Literal["orthogonal"]

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse laws that are not normal, as rows get the lengths of normal vectors, and too many products."""
        check_products(self.kind, s, input_dim, _MOST_DIMENSIONS, _MOST_PRODUCTS, "sobol")
        if kernel.normal_deviations(input_dim) is None:
            reason = "orthogonal needs normally distributed frequencies, which this kernel has not; sampler sobol works"
            raise InvalidInput(reason, "/sampler/kind")

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Return the memory of the frequencies, and of the matrices that are decomposed at a time."""
        stack = min(max(_ENTRIES_PER_STACK, input_dim**2), s * input_dim)
        return super().drawing_bytes(s, input_dim) + _BYTES_PER_ENTRY * stack

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Draw blocks of directions, multiply each row by a length from the chi law, and divide column j by σ_j."""
        deviations = normal_deviations(kernel, input_dim, self.kind)
        frequencies, whole = np.empty((s, input_dim)), s - s % input_dim
        blocks = frequencies[:whole].reshape(-1, input_dim, input_dim)
        for stack in row_blocks(len(blocks), _ENTRIES_PER_STACK // input_dim**2):
            blocks[stack] = _directions(stack.stop - stack.start, input_dim, input_dim, rng)
        if whole < s:
            frequencies[whole:] = _directions(1, s - whole, input_dim, rng)[0]
        # A length scales a row: scaling columns would change the law.
        frequencies *= np.sqrt(rng.chisquare(input_dim, s))[:, None]
        frequencies *= deviations
        return FrequencySet(frequencies, np.full(s, 1 / s))


def _directions(k: int, n: int, d: int, rng: Rng) -> Matrix:
    """Draw the first n ≤ d rows of k uniformly distributed orthogonal matrices, (k, n, d), without the other rows.

    They are Q of the QR decomposition of a normal matrix, with a positive diagonal of R (Mezzadri, 2007).
    """
    return orthonormal(rng.standard_normal((k, d, n))).swapaxes(1, 2)
