"""Features of rows by landmarks: z(x) = k(x, L)·root, in one pass over blocks of rows."""

import numpy as np

from app.core.arrays import Floats, Matrix, Rows, largest, largest_by_row, row_blocks
from app.core.errors import InvalidInput
from app.core.kernels.anova import Anova
from app.core.kernels.base import AnyKernel
from app.core.kernels.polynomial import Polynomial
from app.core.kernels.scaled import ScaledKernel
from app.core.maps.landmarks.kernel_blocks import DistanceBlocks, ExactBlocks, KernelBlocks, profile
from app.core.panels import Panels
from app.core.progress import Pause, no_pause
from app.core.threads import for_each

# Bytes behind each row of kernels: rows that begin a power of two apart keep each other out of the cache.
_BYTES_BETWEEN_ROWS = 64
# Features of rows with large entries that are made at a time, to see whether there are such.
_CHECKED_AT_A_TIME = 1 << 20
# Products that are worth a thread; and what a thread does at a time, some milliseconds: of exact kernels, so many.
_LEAST_STEPS_PER_PART, _MOST_STEPS_PER_PART, _MOST_KERNELS_PER_PART = 1 << 22, 1 << 29, 1 << 17


def kernel_blocks(
    kernel: AnyKernel, landmarks: Rows, dtype: np.dtype[np.floating], is_relative: bool = False
) -> KernelBlocks:
    """The fastest way to compare rows of a dtype with landmarks that is as good as the kernel's own.

    `is_relative` asks for kernels whose error is small beside them, not only beside the largest that there can be.
    """
    shape = profile(kernel)
    if shape is None:
        return ExactBlocks(kernel, landmarks)
    return DistanceBlocks(kernel, shape, landmarks, dtype, is_relative)


def landmark_block(kernel: AnyKernel, landmarks: Rows) -> Matrix:
    """The kernel of landmarks (s, d) with each other, (s, s) in float64, as rows are compared with them."""
    s, exact = landmarks.shape[0], landmarks.astype(np.float64)
    blocks, block = kernel_blocks(kernel, exact, np.dtype(np.float64)), np.empty((s, s))
    for part in row_blocks(s, blocks.rows_per_block):
        blocks.write(exact[part], block[part])
    return (block + block.T) / 2


def safe_entry(kernel: AnyKernel, landmarks: Rows, root: Floats) -> float:
    """How large the entries of a row may be for its kernels, and its features, to stay in range whatever they are."""
    d, most = landmarks.shape[1], float(np.finfo(np.float64).max) / 4
    if isinstance(kernel, ScaledKernel | Anova):
        return most * min(1.0, float(np.min(kernel.length_scale)))
    if not isinstance(kernel, Polynomial):
        return np.inf
    # (γ |x·l| + coef0)^degree times what is in a column of the root; |x·l| is at most the sum of the largest products.
    entries = d if isinstance(landmarks, np.ndarray) else int(np.diff(landmarks.indptr).max())
    with np.errstate(over="ignore", divide="ignore"):  # an infinite bound is none
        in_dtype = float(np.finfo(root.dtype).max) / 4 / max(1.0, float(np.abs(root).sum(axis=0).max()))
        products = max(0.0, in_dtype ** (1 / kernel.degree) - kernel.coef0) / np.float64(kernel.gamma or 1 / d)
        return float(min(products, most) / np.float64(entries * largest(landmarks)))


class LandmarkFeatures:
    """Makes features of rows, in blocks of rows on up to `threads` threads.

    Kernels are in the dtype. An error of theirs changes the product of two rows' features by no more than the error
    times the coefficients root·rootᵀ·k(L, y) of the other row, which are those of one landmark where y is that one. The
    products with `root`, whose large entries cancel each other, are summed in float64: in float32, features of the
    landmarks would miss their kernels by 1e-6. No bit of a row depends on the rows beside it, on the threads, or on
    whether rows are dense or sparse.

    Args:
        kernel: that of the map.
        landmarks: s of them, (s, d), prepared by the kernel, dense or sparse, in `dtype`. They are kept.
        root: (s, r), in `dtype`.
        dtype: of rows and features, float32 or float64.
        threads: how many may be used.
        is_relative: whether features of rows far from all landmarks must be as good beside their own norm.
    """

    def __init__(
        self,
        kernel: AnyKernel,
        landmarks: Rows,
        root: Floats,
        dtype: np.dtype[np.floating],
        threads: int,
        is_relative: bool = False,
    ) -> None:
        self._blocks, self._dtype, self._threads = kernel_blocks(kernel, landmarks, dtype, is_relative), dtype, threads
        self._is_exact, self._safe_entry = isinstance(self._blocks, ExactBlocks), safe_entry(kernel, landmarks, root)
        self._shape, self._root = root.shape, Panels(root.T.astype(np.float64), keeps_zeros=True)
        self.nbytes = self._blocks.nbytes + self._root.nbytes
        """Memory of what is held beside the landmarks."""

    def operations(self, rows: Rows) -> int:
        """Multiplications of a matrix product that take as long as `of`."""
        s, r = self._shape
        return int(self._blocks.operations(rows) + rows.shape[0] * s * r)

    def check(self, rows: Rows) -> None:
        """Raise InvalidInput if `of` would for some of the rows; features are made of rows with large entries only."""
        doubtful = np.flatnonzero(largest_by_row(rows) > np.float64(self._safe_entry))
        for part in row_blocks(len(doubtful), _CHECKED_AT_A_TIME // self._shape[1]):
            self.of(rows[doubtful[part]], no_pause)

    def of(self, rows: Rows, pause: Pause) -> Floats:
        """The features of rows that the kernel has prepared, (n, d) to (n, r).

        InvalidInput if one leaves the range of the dtype, as where a kernel grows with the rows.
        """
        (s, r), n, per_block = self._shape, rows.shape[0], self._blocks.rows_per_block
        features: Floats = np.empty((n, r), self._dtype)
        padding = _BYTES_BETWEEN_ROWS // self._dtype.itemsize

        def fill(part: slice) -> None:
            most = min(per_block, part.stop - part.start)
            kernels, products = np.empty((most, s + padding), self._dtype), np.empty((most, r))
            for block in row_blocks(part.stop, per_block, part.start):
                of_block, out = kernels[: block.stop - block.start], products[: block.stop - block.start]
                self._blocks.write(rows[block], of_block)
                self._root.multiplier(of_block[:, :s].astype(np.float64, copy=False))(slice(0, r), out)
                with np.errstate(over="ignore"):  # refused by name below
                    features[block] = out
                if self._is_exact and not np.isfinite(largest(features[block])):
                    raise InvalidInput(f"a feature leaves the range of {self._dtype}; smaller rows work")

        # Few rows are shared out evenly, if there is work for several threads.
        steps = max(1, self.operations(rows))
        even = max(n * _LEAST_STEPS_PER_PART // steps, -(-n // self._threads))
        most = min(n * _MOST_STEPS_PER_PART // steps, _MOST_KERNELS_PER_PART // s if self._is_exact else n)
        for_each(fill, row_blocks(n, min(even, most)), self._threads, pause)
        return features
