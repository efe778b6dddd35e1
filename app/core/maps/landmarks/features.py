"""Landmark features z(x) = k(x, L)·root of rows, in one pass over blocks of rows that fit into the cache.

If a kernel allows it, its values are computed from matrix products, in one compiled loop; else exactly, from the rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import (
    Compressed,
    Floats,
    Matrix,
    Ready,
    Rows,
    as_they_are,
    blocks_of_entries,
    count_entries,
    csr_parts,
    dense,
    in_own_columns,
    largest,
    largest_by_row,
    made_dense,
    of_columns,
    row_blocks,
)
from app.core.compiled import jit
from app.core.errors import InvalidInput
from app.core.kernels.anova import Anova
from app.core.kernels.base import AnyKernel, ScaledKernel
from app.core.kernels.correlation_rbf import CorrelationRbf
from app.core.kernels.gaussian import Gaussian
from app.core.kernels.matern import Matern
from app.core.kernels.polynomial import Polynomial
from app.core.kernels.rational_quadratic import RationalQuadratic
from app.core.norms import squared_norms
from app.core.panels import Panels
from app.core.progress import Pause, between, no_pause
from app.core.quantiles import exponential, log_of_one_more
from app.core.threads import for_each

EXPONENTIAL, MATERN, RATIONAL_QUADRATIC = range(3)
"""Functions of h that `write_kernels` can compute."""

# (1 + c₁z + c₂z² + c₃z³)·e^(−z) with z = √(2ν)·r: Rasmussen and Williams (2006), (4.16).
_MATERN = {0.5: (0.0, 0.0, 0.0), 1.5: (1.0, 0.0, 0.0), 2.5: (1.0, 1 / 3, 0.0), 3.5: (1.0, 2 / 5, 1 / 15)}
# With h up to `_LARGEST` and α from `_LEAST_ALPHA` on, no step leaves the range of float32.
_LARGEST, _LEAST_ALPHA = 1e34, 1e-3
# Reciprocals of much smaller scales leave the range of float64.
_LEAST_SCALE = 1e-300
_SINGLE_BYTES = 4
# Largest error of h, in units in the last place of the half squared norms.
_UNITS = 64
# Up to these values of kernel·(half squared norms), the difference of norms and product is accurate enough: the largest
# errors of kernels observed are 1.7e-6 in float32 and 1e-11 in float64.
_MOST_SINGLE, _MOST_DOUBLE = 2.0, 4096.0


class Profile(NamedTuple):
    """A kernel as a function of h = Σ (δ_j/scale_j)²/2."""

    what: int
    """`EXPONENTIAL`, `MATERN` or `RATIONAL_QUADRATIC`."""
    parameters: tuple[float, float, float]
    """c₁ to c₃ of a Matérn kernel; α of a rational quadratic one."""
    scales: Matrix
    """One scale for each coordinate, (d,), or () if all scales are equal."""


def profile(kernel: AnyKernel) -> Profile | None:
    """Return the profile of a kernel, for rows that it has prepared; None if no profile here describes it."""
    if isinstance(kernel, CorrelationRbf):
        kernel = kernel.blocks(1)[0].kernel
    if isinstance(kernel, ScaledKernel) and np.min(kernel.length_scale) < _LEAST_SCALE:
        return None
    if isinstance(kernel, Gaussian):
        return Profile(EXPONENTIAL, (0.0, 0.0, 0.0), kernel.length_scales)
    if isinstance(kernel, Matern) and kernel.nu in _MATERN:
        return Profile(MATERN, _MATERN[kernel.nu], kernel.length_scales / np.sqrt(2 * kernel.nu))
    if isinstance(kernel, RationalQuadratic) and kernel.alpha >= _LEAST_ALPHA:
        return Profile(RATIONAL_QUADRATIC, (kernel.alpha, 0.0, 0.0), kernel.length_scales)
    return None


@jit
def write_kernels(
    what: int,
    parameters: Floats,
    products: Floats,
    of_rows: Floats,
    of_landmarks: Floats,
    least: float,
    doubtful: NDArray[np.bool_],
) -> None:
    """Replace the products of rows and landmarks by their kernels, all in one dtype.

    NaN is written where h = of_rows + of_landmarks − product is too inaccurate for the kernel: where h is nearly 0
    compared with these terms, where an error of h in their last digits changes the kernel too much, and where numbers
    leave the range.

    Args:
        what: that of the kernel's `Profile`.
        parameters: those of the kernel's `Profile`, (3,).
        products: Σ x_j·l_j/scale_j² in the first k columns of n rows, C-contiguous.
        of_rows: Σ (x_j/scale_j)²/2, (n,).
        of_landmarks: the same of the landmarks, (k,).
        least: lower bound of the kernel in the test of its error; 1 if small kernels need as many digits as large ones.
        doubtful: (n,), receives whether NaN was written into a row.
    """
    nearest, largest = products.dtype.type(_UNITS * np.finfo(products.dtype).eps), products.dtype.type(_LARGEST)
    most = products.dtype.type(_MOST_SINGLE if products.itemsize == _SINGLE_BYTES else _MOST_DOUBLE)
    limits = nearest, largest, most, products.dtype.type(least)
    for i in range(len(of_rows)):
        doubtful[i] = _write_row(what, parameters, products[i, : len(of_landmarks)], of_rows[i], of_landmarks, limits)


@jit
def _write_row(
    what: int, parameters: Floats, row: Floats, of_row: Any, of_landmarks: Floats, limits: tuple[Any, Any, Any, Any]
) -> bool:
    """Write the kernel of one row, as `write_kernels` does, and return whether NaN was written.

    Each kind of kernel has a loop of its own, as the compiler does not vectorise a loop that has to choose.
    """
    one, zero, two = row.dtype.type(1), row.dtype.type(0), row.dtype.type(2)
    far, none = row.dtype.type(1000), row.dtype.type(np.nan)
    first, second, third = parameters[0], parameters[1], parameters[2]
    nearest, largest, most, floor = limits
    is_doubtful = False
    if what == EXPONENTIAL:
        for j in range(len(row)):
            of_both = of_row + of_landmarks[j]
            h = of_both - row[j]
            value = exponential(-h)
            is_good = (h >= nearest * of_both) & (h <= largest) & (max(value, floor) * of_both <= most)
            row[j] = value if is_good else none
            is_doubtful |= not is_good
    elif what == MATERN:
        is_rough = first == zero
        for j in range(len(row)):
            of_both = of_row + of_landmarks[j]
            h = of_both - row[j]
            z = min(np.sqrt(two * max(h, zero)), far)
            value = (one + z * (first + z * (second + z * third))) * exponential(-z)
            # The slope of e^(−z) in h is steep for small h.
            reach = min(one, z) if is_rough else one
            is_good = (h >= nearest * of_both) & (h <= largest) & (max(value, floor) * of_both <= most * reach)
            row[j] = value if is_good else none
            is_doubtful |= not is_good
    else:
        for j in range(len(row)):
            of_both = of_row + of_landmarks[j]
            h = of_both - row[j]
            value = exponential(-first * log_of_one_more(max(h, zero) / first))
            is_good = (h >= nearest * of_both) & (h <= largest) & (max(value, floor) * of_both <= most)
            row[j] = value if is_good else none
            is_doubtful |= not is_good
    return is_doubtful


@jit
def write_differences(rows: Floats, landmarks: Floats, per_scales: Matrix, out: Floats) -> None:
    """Write −Σ (x_j − l_j)²/(2·scale_j²), summed in float64, for use as products with norms of 0.

    Args:
        rows: (n, d).
        landmarks: (d, s), one landmark in each column.
        per_scales: 1/scale_j, (d,).
        out: (n, s).
    """
    d, s = landmarks.shape
    sums = np.zeros(s)
    for i in range(len(rows)):
        for j in range(d):
            # Slices of one row show the compiler that their entries are contiguous.
            x, scale, line = np.float64(rows[i, j]), per_scales[j], landmarks[j]
            for k in range(s):
                lag = (x - np.float64(line[k])) * scale
                sums[k] += lag * lag
        row = out[i]
        for k in range(s):
            row[k] = -sums[k] / 2
            sums[k] = 0


@jit
def write_sparse_differences(rows: Compressed, landmarks: Compressed, per_scales: Matrix, out: Matrix) -> None:
    """Write −Σ (x_j − l_j)²/(2·scale_j²) of sparse rows, over the columns in which either row of a pair has an entry.

    Args:
        rows: n rows, with their columns in order.
        landmarks: s landmarks, with their columns in order.
        per_scales: 1/scale_j, (d,), or (1,) if all scales are equal.
        out: (n, s).
    """
    (x_values, x_columns, x_ends), (l_values, l_columns, l_ends) = rows, landmarks
    is_one = len(per_scales) == 1
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            p, q, total = x_ends[i], l_ends[k], 0.0
            while p < x_ends[i + 1] or q < l_ends[k + 1]:
                if q == l_ends[k + 1] or (p < x_ends[i + 1] and x_columns[p] < l_columns[q]):
                    column, lag = x_columns[p], x_values[p]
                    p += 1
                elif p == x_ends[i + 1] or l_columns[q] < x_columns[p]:
                    column, lag = l_columns[q], l_values[q]
                    q += 1
                else:
                    column, lag = x_columns[p], x_values[p] - l_values[q]
                    p += 1
                    q += 1
                lag *= per_scales[0 if is_one else column]
                total += lag * lag
            out[i, k] = -total / 2


# Rows of a block: few enough to stay in the cache, fewer for many landmarks; multiples of the rows of a tile.
_MOST_ROWS, _LEAST_ROWS, _ENTRIES = 192, 48, 1 << 17
# Entries of rows, or of landmarks, that are made dense at a time.
_DENSE_ENTRIES = 1 << 20
# Memory of an entry of sparse landmarks that are ready to be compared: its value, its column, and the column's number.
_BYTES_PER_SPARSE_ENTRY = 24
# Costs, in multiplications of a matrix product: making an entry of sparse rows dense; scaling a dense entry; and going
# past an entry of a sparse landmark.
_PER_DENSE_ENTRY, _PER_SCALED_ENTRY, _PER_ENTRY_PASSED = 300, 50, 8


class KernelBlocks(ABC):
    """Computes the kernel of rows with s landmarks; the kernel has prepared both.

    No bit of a row's values depends on other rows, or on whether the row is dense or sparse.
    """

    operations_per_entry: int
    """Cost of an entry besides products and distances, counted in multiplications of a matrix product."""

    def __init__(self, kernel: AnyKernel, landmarks: Rows) -> None:
        self._kernel, self._landmarks = kernel, landmarks
        s, d = landmarks.shape
        self._is_sparse = kernel.compares_sparse and not isinstance(landmarks, np.ndarray)
        self._most_rows: int = max(_LEAST_ROWS, min(_MOST_ROWS, _ENTRIES // s))
        self._most_dense: int = max(1, _DENSE_ENTRIES // d)  # dense rows, or landmarks, at a time
        self.nbytes = 0
        """Memory held besides the landmarks."""

    def rows_per_block(self, rows: Rows) -> int:
        """Return the maximum number of these rows that should be compared at a time."""
        if self._is_sparse and not isinstance(rows, np.ndarray):
            return self._most_rows
        return min(self._most_rows, self._most_dense)

    @abstractmethod
    def write(self, rows: Rows, out: Floats) -> None:
        """Write the kernel of rows (n, d), in the dtype of `out`, into the first s columns of n rows, C-contiguous."""

    @abstractmethod
    def operations(self, rows: Rows) -> int:
        """Return the cost of `write`, counted in multiplications of a matrix product."""


class ExactBlocks(KernelBlocks):
    """Kernel values by the kernel's own method, in float64, for rows in the form of the landmarks, dense or sparse."""

    operations_per_entry = 512

    def __init__(self, kernel: AnyKernel, landmarks: Rows) -> None:
        # Of many columns, few may matter.
        self._restrict: Callable[[Rows], Rows] = _as_it_is
        self._exact = kernel.exact
        if isinstance(kernel, Anova):
            self._restrict, self._exact = kernel.restrict, kernel.gram_of_named
        landmarks = self._restrict(landmarks)
        super().__init__(kernel, landmarks)
        by_entries = blocks_of_entries(landmarks, _DENSE_ENTRIES)
        self._parts = [*(by_entries if self._is_sparse else row_blocks(landmarks.shape[0], self._most_dense))]
        self._sparse = [kernel.compare_with(landmarks[some]) for some in self._parts] if self._is_sparse else []
        """For each part of sparse landmarks, the function that compares rows with it."""
        self.nbytes += _BYTES_PER_SPARSE_ENTRY * count_entries(landmarks) if self._is_sparse else 0

    def write(self, rows: Rows, out: Floats) -> None:
        """Write the kernel, for some landmarks at a time; dense ones, which take more memory, are made ready anew."""
        rows, s = self._in_form(rows), self._landmarks.shape[0]
        with np.errstate(over="ignore"):  # an overflow is refused below
            for i, some in enumerate(self._parts):
                compared = self._sparse[i](rows) if self._is_sparse else self._exact(rows, self._landmarks[some])
                out[:, some] = compared
        if not np.isfinite(out[:, :s]).all():
            raise InvalidInput(f"a value of kernel {self._kernel.kind} leaves the range of {out.dtype}")

    def operations(self, rows: Rows) -> int:
        """Return the kernel's own cost of exact values, plus the cost of an exponential for each entry.

        If rows are compared in dense form, that takes its time too: of each row, and of the landmarks for each block.
        """
        n, (s, d) = rows.shape[0], self._landmarks.shape
        of_entries = n * s * self.operations_per_entry
        if self._is_sparse:
            ready = self._kernel.ready_operations(rows)
            return int(self._kernel.comparison_operations(rows, self._landmarks) + ready + of_entries)
        most = self.rows_per_block(rows)
        blocks, part = -(-n // most), self._landmarks[self._parts[0]]
        exact = self._kernel.exact_operations(rows if blocks == 1 else rows[:most], part)
        made = 0 if isinstance(rows, np.ndarray) else _PER_DENSE_ENTRY * n * d
        return int(blocks * len(self._parts) * exact + of_entries + made + _PER_SCALED_ENTRY * d * (n + s * blocks))

    def _in_form(self, rows: Rows) -> Rows:
        """Return the rows in the form in which the landmarks are compared: sums in another form may differ in a bit."""
        return sparse.csr_array(rows) if self._is_sparse else made_dense(self._restrict(rows))


def _as_it_is(rows: Rows) -> Rows:
    return rows


# A centre is subtracted if at most this share of the squared norms of the landmarks is then left.
_MOST_SHARE = 0.25


class DistanceBlocks(KernelBlocks):
    """Kernels of h = Σ (x_j − l_j)²/(2·scale_j²), computed as |x|²/2 + |l|²/2 − x·l of scaled rows and landmarks.

    Far from 0 these three terms are large compared with h. So the landmarks' mean is subtracted if that makes them much
    smaller. If h is still too inaccurate for a row and some landmark, all kernels of that row are computed from
    differences; those beyond the range of `write_kernels`, from their limits.
    """

    operations_per_entry = 32

    def __init__(
        self, kernel: AnyKernel, shape: Profile, landmarks: Rows, dtype: np.dtype[np.floating], is_relative: bool
    ) -> None:
        super().__init__(kernel, landmarks)
        self._dtype, self._what, self._alpha = dtype, shape.what, shape.parameters[0]  # α if rational quadratic
        self._parameters = np.array(shape.parameters, dtype)
        self._least = float(is_relative)
        self._center: Floats | None = None
        self._columns: Floats | None = None
        self._entries: Compressed
        with np.errstate(over="ignore"):  # pairs that leave the range are compared by differences
            self._per_scale = 1 / shape.scales
            if isinstance(landmarks, np.ndarray):
                self._products, self._of_landmarks = self._open_dense(landmarks)
            else:
                self._products, self._of_landmarks = self._open_sparse(landmarks)
        self._is_sparse = self._columns is None
        self.nbytes += self._of_landmarks.nbytes

    def write(self, rows: Rows, out: Floats) -> None:
        """Write products, replace them by kernels, and compute rows with inaccurate kernels again, from differences."""
        s, given = self._landmarks.shape[0], rows
        if self._center is not None:
            rows = made_dense(rows) - self._center
        doubtful = np.empty(rows.shape[0], np.bool_)
        with np.errstate(over="ignore"):
            self._products(rows, out)
            of_rows = self._half_squares(rows).astype(self._dtype)
        write_kernels(self._what, self._parameters, out, of_rows, self._of_landmarks, self._least, doubtful)
        if doubtful.any():
            out[doubtful, :s] = self._by_differences(given[doubtful])

    def operations(self, rows: Rows) -> int:
        """Return the multiplications of the products or differences, plus the cost of an exponential for each entry."""
        (n, d), s = rows.shape, self._landmarks.shape[0]
        if self._columns is None:
            passed = _PER_ENTRY_PASSED * n * self._landmarks.size
            return int((rows.size + n * self.operations_per_entry) * s + passed)
        made = 0 if isinstance(rows, np.ndarray) else _PER_DENSE_ENTRY * n * d
        return int((n * d + n * self.operations_per_entry) * s + made)

    def _by_differences(self, rows: Rows) -> Floats:
        """Compute the kernel of rows with the landmarks from differences."""
        differences = np.empty((rows.shape[0], self._landmarks.shape[0]))
        if self._columns is None:
            write_sparse_differences(
                csr_parts(sparse.csr_array(rows).sorted_indices()),
                self._entries,
                self._per_scale.reshape(-1),
                differences,
            )
        else:
            rows = made_dense(rows)
            write_differences(rows, self._columns, np.broadcast_to(self._per_scale, rows.shape[1]).copy(), differences)
        with np.errstate(over="ignore"):
            found: Floats = differences.astype(self._dtype)
        none, doubtful = np.zeros(max(found.shape), self._dtype), np.empty(len(found), np.bool_)
        of_rows, of_landmarks = none[: len(found)], none[: found.shape[1]]
        write_kernels(self._what, self._parameters, found, of_rows, of_landmarks, 0.0, doubtful)
        far = np.isnan(found)
        if far.any():
            found[far] = self._limits(-differences[far])
        return found

    def _limits(self, h: Matrix) -> Matrix:
        """Return kernels of large h: 0, but for a rational quadratic kernel, which falls slowly."""
        if self._what != RATIONAL_QUADRATIC:
            return np.zeros(len(h))
        if not np.isfinite(h).all():
            raise InvalidInput("a row is too many length scales away from a landmark for kernel rational_quadratic")
        with np.errstate(over="ignore"):  # infinite ratios are replaced
            ratios = h / self._alpha
        return np.exp(-self._alpha * np.where(np.isinf(ratios), np.log(h) - np.log(self._alpha), np.log1p(ratios)))

    def _open_dense(self, landmarks: Floats) -> tuple[Callable[[Rows, Floats], None], Floats]:
        """Return the function that writes products of rows with dense landmarks, and the landmarks' half squared norms.

        The centre, which is subtracted for both, is chosen here.
        """
        moved, s = dense(landmarks), len(landmarks)
        center = moved.mean(axis=0).astype(self._dtype)
        from_zero, from_center = (np.sum(((moved - origin) * self._per_scale) ** 2) for origin in (0, center))
        if from_center <= _MOST_SHARE * from_zero:
            self._center, moved = center, moved - center
        scaled = moved * self._per_scale
        halves = np.einsum("ij,ij->i", scaled, scaled) / 2
        panels = Panels((scaled * self._per_scale).astype(self._dtype), keeps_zeros=True)
        self._columns = landmarks.T.copy()
        self.nbytes += panels.nbytes + self._columns.nbytes
        return lambda rows, out: panels.multiplier(rows)(slice(0, s), out), halves.astype(self._dtype)

    def _open_sparse(self, landmarks: sparse.csr_array) -> tuple[Callable[[Rows, Floats], None], Floats]:
        """Return the function that writes products of rows with sparse landmarks, and their half squared norms."""
        s, (coordinates, scaled) = landmarks.shape[0], in_own_columns(landmarks)
        per_scale = self._per_scale[landmarks.indices] if self._per_scale.ndim else self._per_scale
        scaled.data = landmarks.data * per_scale * per_scale
        columns = scaled.T.tocsr()

        def write(rows: Rows, out: Floats) -> None:
            out[:, :s] = (of_columns(sparse.csr_array(rows).sorted_indices(), coordinates) @ columns).toarray()

        self._entries = csr_parts(landmarks.sorted_indices())
        self.nbytes += columns.data.nbytes + columns.indices.nbytes + columns.indptr.nbytes + coordinates.nbytes
        self.nbytes += sum(part.nbytes for part in self._entries)
        return write, self._half_squares(landmarks).astype(self._dtype)

    def _half_squares(self, rows: Rows) -> Matrix:
        """Compute Σ (x_j/scale_j)²/2 of each row, (n,), with the same bits for dense and sparse rows."""
        if not self._per_scale.ndim:
            return squared_norms(rows) * (self._per_scale**2 / 2)
        per_scale = self._per_scale.astype(self._dtype)
        if isinstance(rows, np.ndarray):
            return squared_norms(rows * per_scale) / 2
        scaled = rows.copy()
        scaled.data = rows.data * per_scale[rows.indices]
        return squared_norms(scaled) / 2


# Padding of each row of kernels: rows that begin a power of two apart evict each other from the cache.
_BYTES_BETWEEN_ROWS = 64
# Features computed at a time when rows with large entries are checked.
_CHECKED_AT_A_TIME = 1 << 20
# Products that are worth a thread; then the most products, and the most exact kernels, that a thread computes at a
# time, some milliseconds.
_LEAST_STEPS_PER_PART, _MOST_STEPS_PER_PART, _MOST_KERNELS_PER_PART = 1 << 22, 1 << 29, 1 << 17


def kernel_blocks(
    kernel: AnyKernel, landmarks: Rows, dtype: np.dtype[np.floating], is_relative: bool = False
) -> KernelBlocks:
    """Return the fastest way to compare rows of a dtype with landmarks that is as accurate as the kernel's own.

    `is_relative` asks for errors that are small compared with each kernel value, not only with the largest possible.
    """
    shape = profile(kernel)
    if shape is None:
        return ExactBlocks(kernel, landmarks)
    return DistanceBlocks(kernel, shape, landmarks, dtype, is_relative)


def landmark_block(kernel: AnyKernel, landmarks: Rows, pause: Pause = no_pause) -> Matrix:
    """Compute the kernel of landmarks (s, d) with each other, (s, s) in float64, as rows are compared with them."""
    s, exact = landmarks.shape[0], landmarks.astype(np.float64)
    blocks, block = kernel_blocks(kernel, exact, np.dtype(np.float64)), np.empty((s, s))
    for part in between(row_blocks(s, blocks.rows_per_block(exact)), pause):
        blocks.write(exact[part], block[part])
    return (block + block.T) / 2


def safe_entry(kernel: AnyKernel, landmarks: Rows, root: Floats) -> float:
    """Return a bound on the entries of a row, below which its kernels and features stay in range in any case."""
    d, most = landmarks.shape[1], float(np.finfo(np.float64).max) / 4
    if (shape := profile(kernel)) is not None:
        if shape.what != RATIONAL_QUADRATIC:
            return np.inf  # kernels of rows out of range are their limits, 0
        return float(np.sqrt(most / d) * np.min(shape.scales) - largest(landmarks))  # h stays finite
    if isinstance(kernel, ScaledKernel | Anova):
        return most * min(1.0, float(np.min(kernel.length_scale)))
    if not isinstance(kernel, Polynomial):
        return np.inf
    # Bounds (γ |x·l| + coef0)^degree times the sum of a column of the root, by the largest entries of x and l.
    entries = d if isinstance(landmarks, np.ndarray) else int(np.diff(landmarks.indptr).max())
    with np.errstate(over="ignore", divide="ignore"):  # an infinite bound excludes nothing
        in_dtype = float(np.finfo(root.dtype).max) / 4 / max(1.0, float(np.abs(root).sum(axis=0).max()))
        products = max(0.0, in_dtype ** (1 / kernel.degree) - kernel.coef0) / np.float64(kernel.gamma or 1 / d)
        return float(min(products, most) / np.float64(entries * largest(landmarks)))


class LandmarkFeatures:
    """Computes features of rows, in blocks of rows on up to `threads` threads.

    Kernels are in the dtype of the root. An error in them changes the product of two rows' features by at most the
    error times the coefficients root·rootᵀ·k(L, y) of the other row y; if y is a landmark, these select that landmark.
    Products with `root`, whose large entries cancel each other, are summed in float64: in float32, features of the
    landmarks would miss their kernels by 1e-6. No bit of a row's features depends on other rows, on the threads, or on
    whether rows are dense or sparse.

    Args:
        kernel: that of the map.
        landmarks: (s, d), prepared by the kernel, dense or sparse, in the dtype of the root. They are kept.
        root: (s, r), float32 or float64, which is the dtype of rows and features.
        threads: how many may be used.
        is_relative: whether features of rows far from all landmarks must be accurate relative to their own norm.
    """

    def __init__(
        self, kernel: AnyKernel, landmarks: Rows, root: Floats, threads: int, is_relative: bool = False
    ) -> None:
        self._blocks, self._dtype = kernel_blocks(kernel, landmarks, root.dtype, is_relative), root.dtype
        self._threads = threads
        self._is_exact, self._safe_entry = isinstance(self._blocks, ExactBlocks), safe_entry(kernel, landmarks, root)
        self._shape, self._root = root.shape, Panels(root.T.astype(np.float64), keeps_zeros=True)
        self.nbytes = self._blocks.nbytes + self._root.nbytes
        """Memory held besides the landmarks."""

    def operations(self, rows: Rows) -> int:
        """Return the cost of `of`, counted in multiplications of a matrix product."""
        s, r = self._shape
        return int(self._blocks.operations(rows) + rows.shape[0] * s * r)

    def check(self, rows: Rows, pause: Pause) -> None:
        """Raise InvalidInput if `of` would for some of the rows; only rows with large entries are computed."""
        doubtful = np.flatnonzero(largest_by_row(rows) > np.float64(self._safe_entry))
        for part in row_blocks(len(doubtful), _CHECKED_AT_A_TIME // self._shape[1]):
            self.of(rows[doubtful[part]], pause)

    def of(self, rows: Rows, pause: Pause, ready: Ready = as_they_are) -> Floats:
        """Compute the features of rows, (n, d) to (n, r).

        `ready` prepares blocks of them; by default the kernel has prepared them. InvalidInput if a feature leaves the
        range of the dtype, as it may if the kernel grows with the rows.
        """
        (s, r), n, per_block = self._shape, rows.shape[0], self._blocks.rows_per_block(rows)
        features: Floats = np.empty((n, r), self._dtype)
        padding = _BYTES_BETWEEN_ROWS // self._dtype.itemsize

        def fill(part: slice) -> None:
            most = min(per_block, part.stop - part.start)
            kernels, products = np.empty((most, s + padding), self._dtype), np.empty((most, r))
            for block in row_blocks(part.stop, per_block, part.start):
                of_block, out = kernels[: block.stop - block.start], products[: block.stop - block.start]
                self._blocks.write(ready(rows[block], block.start), of_block)
                self._root.multiplier(of_block[:, :s].astype(np.float64, copy=False))(slice(0, r), out)
                with np.errstate(over="ignore"):  # an overflow is refused below
                    features[block] = out
                if self._is_exact and not np.isfinite(largest(features[block])):
                    raise InvalidInput(f"a feature leaves the range of {self._dtype}; smaller rows work")

        # If there is work for several threads, few rows are split evenly among them.
        steps = max(1, self.operations(rows))
        even = max(n * _LEAST_STEPS_PER_PART // steps, -(-n // self._threads))
        most = n * _MOST_STEPS_PER_PART // steps
        if self._is_exact:  # whole blocks, as each prepares the landmarks
            most = min(max(most, per_block), _MOST_KERNELS_PER_PART // s)
        for_each(fill, row_blocks(n, min(even, most)), self._threads, pause)
        return features
