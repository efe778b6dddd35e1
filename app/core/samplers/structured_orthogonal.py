"""Structured orthogonal random features."""

from typing import Literal, NamedTuple

import numpy as np

from app.core.arrays import Matrix, row_blocks
from app.core.errors import InvalidInput
from app.core.hadamard import ROUNDS, Bits, frequencies_of, padded_size
from app.core.kernels.base import ScaledKernel, ShiftInvariantKernel, SpectralKernel
from app.core.progress import Pause, no_pause
from app.core.samplers.base import FrequencySampler, FrequencySet, Rng, inside

_LEAST_DIMENSIONS = 8
# For each D: the largest bias of a kernel within 3 length scales and within 60, for rows that differ in one, two or
# four columns by the same; measured for gaussian and for matern with nu from 0.1 on. See docs/decisions/maps.md.
_NEAR = {8: 0.32, 16: 0.16, 32: 0.08, 64: 0.035, 128: 0.015, 256: 0.007}
_FAR = {8: 0.45, 16: 0.31, 32: 0.23, 64: 0.16, 128: 0.09, 256: 0.014}
# Up to this D, biases are so large that codes do not tell the kernel.
_FEW_DIRECTIONS = 32
# Several vectors of this many entries are held at a time.
_MOST_DIMENSIONS = 1 << 20
# Lengths that are drawn in about a second.
_RADII_PER_SECOND = 1 << 20
_BYTES_PER_RADIUS = 48


class Rotations(NamedTuple):
    """Signs and lengths of s frequencies, which are the first d columns of blocks S H D₁ H D₂ H D₃, divided by σ."""

    signs: Bits
    """Signs of D₁, D₂, D₃ of each block, (blocks, 3, D/8): one bit per entry, set for −1."""
    radii: Matrix
    """Entries of S, (s,)."""


class StructuredOrthogonal(FrequencySampler):
    """Blocks of random signs and Walsh–Hadamard matrices, with row lengths from the exact law.

    A block is S H D₁ H D₂ H D₃ in D dimensions, the least power of two that is at least input_dim: H is the
    Walsh–Hadamard matrix, D_i are random signs, S lengths. Rows are padded with zeros. Only signs and lengths are
    stored, and features take s·log D operations instead of s·input_dim.

    Choose when:
        Use it from 8 dimensions on for accuracy and small size, and from about 200 dimensions on for speed: 65,536
        frequencies in 784 dimensions take 290 kB instead of 206 MB. With stratified radii its error does not exceed
        that of orthogonal. Do not use it in up to 32 dimensions for rows that differ in only some coordinates and by
        the same amount, such as indicators: it is biased for them. In D dimensions, the bias is up to 2.6/D within 3
        length scales.
    """

    source = "Yu, Suresh, Choromanski, Holtmann-Rice, Kumar (2016), Orthogonal random features, section 4"
    limits = (
        f"input_dim from {_LEAST_DIMENSIONS} to {_MOST_DIMENSIONS}",
        "frequencies of uniform direction (kernels gaussian, matern, rational_quadratic, correlation_rbf)",
    )

    serves_subsets = False

    kind: Literal["structured_orthogonal"]
    radii: Literal["stratified", "independent"] = "stratified"
    """How row lengths are drawn. stratified: in every block, one from each of D equally probable parts of their law.
    independent: independently.
    """

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse kernels without a law of lengths, dimensions too few for nearly uniform directions, and too many."""
        if not isinstance(kernel, ScaledKernel) or kernel.radial_quantile(np.empty(0), input_dim) is None:
            raise InvalidInput(
                f"{self.kind} needs frequencies of uniform direction; for this kernel, sampler sobol works",
                "/sampler/kind",
            )
        if input_dim < _LEAST_DIMENSIONS:
            other = "orthogonal" if kernel.normal_deviations(input_dim) is not None else "sobol"
            raise InvalidInput(
                f"{self.kind} takes {_LEAST_DIMENSIONS} dimensions at least, got {input_dim}; sampler {other} works",
                "/sampler/kind",
            )
        if input_dim > _MOST_DIMENSIONS:
            raise InvalidInput(
                f"{self.kind} takes up to {_MOST_DIMENSIONS} dimensions, got {input_dim}; sampler monte_carlo works",
                "/sampler/kind",
            )

    def off_law(self, input_dim: int) -> str | None:
        """Return that directions are few, for small D; None for other D.

        For rows that differ in two columns, the share of differing bits is smaller by .09, .026 and .006.
        """
        if padded_size(input_dim) > _FEW_DIRECTIONS:
            return None
        return f"have few directions in {input_dim} columns (from {_FEW_DIRECTIONS + 1} on they have more)"

    def warnings(self, input_dim: int) -> tuple[str, ...]:
        """Return the warning about few directions, unless D is large."""
        size = padded_size(input_dim)
        if size not in _NEAR:
            return ()
        return (
            f"in {input_dim} dimensions {self.kind} has few directions: for rows that differ in some coordinates only, "
            f"and by the same, kernels are off by up to {_NEAR[size]} within 3 length scales and {_FAR[size]} within "
            "60, whatever s is; sampler orthogonal has no such bias",
        )

    def law_doubts(self, kernel: ShiftInvariantKernel, input_dim: int) -> tuple[str, ...]:
        """Return that the bias of few directions is not in an interval."""
        return tuple(f"{one}; the interval leaves this out" for one in self.warnings(input_dim))

    def is_long(self, s: int, input_dim: int) -> bool:
        """Return whether the quantiles of the lengths may take more than a second."""
        return s > _RADII_PER_SECOND

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Return the memory of the lengths and of the signs."""
        size = padded_size(input_dim)
        return _BYTES_PER_RADIUS * s + ROUNDS * (s // size + 1) * size // 4

    def rotations(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng, pause: Pause = no_pause) -> Rotations:
        """Draw signs and lengths; lengths are infinite if the law leaves the range of float64."""
        size = padded_size(input_dim)
        signs = rng.integers(0, 256, (-(-s // size), ROUNDS, size // 8), np.uint8)
        uniforms = rng.random(s)
        if self.radii == "stratified":
            whole = s - s % size
            parts = np.arange(size)[None].repeat(whole // size, axis=0)
            uniforms[:whole] += rng.permuted(parts, axis=1, out=parts).ravel()
            uniforms[:whole] /= size
            # The last block may be incomplete.
            uniforms[whole:] += rng.permutation(s - whole)
            uniforms[whole:] /= max(1, s - whole)
        radii, uniforms = np.empty(s), inside(uniforms)
        for block in row_blocks(s, _RADII_PER_SECOND // 8):
            radii[block] = with_lengths(kernel).radial_quantile(uniforms[block], size)  # check() refuses None
            pause()
        return Rotations(signs, radii)

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Return the frequencies themselves, (s, d), each with weight 1/s."""
        signs, radii = self.rotations(kernel, s, input_dim, rng)
        frequencies = frequencies_of(signs, radii, 1 / with_lengths(kernel).scales(input_dim), np.dtype(np.float64))
        return FrequencySet(frequencies, np.full(s, 1 / s))


def with_lengths(kernel: SpectralKernel) -> ScaledKernel:
    """Return the kernel as one with a law of lengths, as `check` requires; TypeError for any other kernel."""
    if not isinstance(kernel, ScaledKernel):
        raise TypeError(f"kernel {kernel.kind} has no law of lengths")
    return kernel
