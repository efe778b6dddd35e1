"""Kernels of a distance: their values from products of rows with landmarks, in one compiled loop."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Floats, Matrix
from app.core.compiled import compiled
from app.core.exponential import exponential, log_of_one_more
from app.core.kernels.base import AnyKernel
from app.core.kernels.correlation_rbf import CorrelationRbf
from app.core.kernels.gaussian import Gaussian
from app.core.kernels.matern import Matern
from app.core.kernels.rational_quadratic import RationalQuadratic
from app.core.sparse_rows import Compressed

EXPONENTIAL, MATERN, RATIONAL_QUADRATIC = range(3)
"""The functions of h that `write_kernels` knows."""

# (1 + c₁z + c₂z² + c₃z³)·e^(−z) with z = √(2ν)·r: Rasmussen and Williams (2006), (4.16).
_MATERN = {0.5: (0.0, 0.0, 0.0), 1.5: (1.0, 0.0, 0.0), 2.5: (1.0, 1 / 3, 0.0), 3.5: (1.0, 2 / 5, 1 / 15)}
# Up to this h no step leaves the range of float32, with an α from this one on.
_LARGEST, _LEAST_ALPHA = 1e34, 1e-3
_SINGLE_BYTES = 4
# Units in the last place of the half squared norms that an h is wrong by, at most.
_UNITS = 64
# Up to which kernel·(half squared norms) the difference of norms and product is good enough: kernels were seen wrong by
# up to 1.7e-6 in float32, 1e-11 in float64.
_MOST_SINGLE, _MOST_DOUBLE = 2.0, 4096.0


class Profile(NamedTuple):
    """A kernel as a function of h = Σ (δ_j/scale_j)²/2."""

    what: int
    """`EXPONENTIAL`, `MATERN` or `RATIONAL_QUADRATIC`."""
    parameters: tuple[float, float, float]
    """c₁ to c₃ of a Matérn kernel; α of a rational quadratic one."""
    scales: Matrix
    """One for each coordinate, (d,), or () where all are one number."""


def profile(kernel: AnyKernel) -> Profile | None:
    """The profile of a kernel, for rows that it has prepared; None where it has none here."""
    if isinstance(kernel, CorrelationRbf):
        kernel = kernel.blocks(1)[0].kernel
    if isinstance(kernel, Gaussian):
        return Profile(EXPONENTIAL, (0.0, 0.0, 0.0), kernel.length_scales)
    if isinstance(kernel, Matern) and kernel.nu in _MATERN:
        return Profile(MATERN, _MATERN[kernel.nu], kernel.length_scales / np.sqrt(2 * kernel.nu))
    if isinstance(kernel, RationalQuadratic) and kernel.alpha >= _LEAST_ALPHA:
        return Profile(RATIONAL_QUADRATIC, (kernel.alpha, 0.0, 0.0), kernel.length_scales)
    return None


@compiled
def write_kernels(
    what: int,
    parameters: Floats,
    products: Floats,
    of_rows: Floats,
    of_landmarks: Floats,
    least: float,
    doubtful: NDArray[np.bool_],
) -> None:
    """Write the kernel of rows and landmarks in the place of their products, all in one dtype.

    NaN is written where h = of_rows + of_landmarks − product says too little of the kernel: where it is nearly 0 beside
    what it is the difference of, where the kernel changes by more than it should when h is off by the last digits of
    these, and where numbers leave the range.

    Args:
        what: of a `Profile`.
        parameters: of a `Profile`, (3,).
        products: Σ x_j·l_j/scale_j² in the first k columns of n rows, C-contiguous.
        of_rows: Σ (x_j/scale_j)²/2, (n,).
        of_landmarks: the same of the landmarks, (k,).
        least: what a kernel counts as at least where its error is judged: 1 where small kernels count as much as large.
        doubtful: (n,), says afterwards whether NaN was written into a row.
    """
    nearest, largest = products.dtype.type(_UNITS * np.finfo(products.dtype).eps), products.dtype.type(_LARGEST)
    most = products.dtype.type(_MOST_SINGLE if products.itemsize == _SINGLE_BYTES else _MOST_DOUBLE)
    limits = nearest, largest, most, products.dtype.type(least)
    for i in range(len(of_rows)):
        doubtful[i] = _write_row(what, parameters, products[i, : len(of_landmarks)], of_rows[i], of_landmarks, limits)


@compiled
def _write_row(
    what: int, parameters: Floats, row: Floats, of_row: Any, of_landmarks: Floats, limits: tuple[Any, Any, Any, Any]
) -> bool:
    """Write the kernel of one row, as `write_kernels` does; whether NaN was written.

    Each kind of kernel has a loop of its own: the compiler finds no vectors in one that has to choose.
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
            # Of e^(−z) a small h is a large part of the change.
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


@compiled
def write_differences(rows: Floats, landmarks: Floats, per_scales: Matrix, out: Floats) -> None:
    """Write −Σ (x_j − l_j)²/(2·scale_j²), summed in float64: what stands for products where norms are left out.

    Args:
        rows: (n, d).
        landmarks: (d, s), column by column.
        per_scales: 1/scale_j, (d,).
        out: (n, s).
    """
    d, s = landmarks.shape
    sums = np.zeros(s)
    for i in range(len(rows)):
        for j in range(d):
            # As slices of one row, for the compiler to see that their entries lie side by side.
            x, scale, line = np.float64(rows[i, j]), per_scales[j], landmarks[j]
            for k in range(s):
                lag = (x - np.float64(line[k])) * scale
                sums[k] += lag * lag
        row = out[i]
        for k in range(s):
            row[k] = -sums[k] / 2
            sums[k] = 0


@compiled
def write_sparse_differences(rows: Compressed, landmarks: Compressed, per_scales: Matrix, out: Matrix) -> None:
    """Write −Σ (x_j − l_j)²/(2·scale_j²) of sparse rows: of each pair, of the columns that one of both has.

    Args:
        rows: n, their columns in order.
        landmarks: s, likewise.
        per_scales: 1/scale_j, (d,), or (1,) where all are one number.
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
