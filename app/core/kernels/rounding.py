"""Errors of kernels when rows are rounded to a dtype: in length scales, directions, roots, powers, or by a center."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from math import expm1, sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import (
    Floats,
    Matrix,
    Rows,
    blocks_of_entries,
    dense,
    divide_columns,
    in_dtype,
    row_blocks,
    row_numbers,
    stored_values,
)
from app.core.progress import Pause, between, no_pause

MOST = 1e-3
"""Largest error (`Rounding.sizes`) about which a client is not warned."""
# Smaller sums of squares of float32 are not to be trusted.
_LEAST_SQUARES = 1e-30


class Told(NamedTuple):
    """The two parts of a warning that a dtype is too coarse: the effect on the worst row, and the remedy."""

    what: str
    cure: str


class Rounding(ABC):
    """The errors of one kernel when rows are rounded to a dtype.

    Args:
        dtype: dtype of the map, to which rows are rounded.
    """

    looks_at_exact: ClassVar[bool] = False
    """Whether rows that the dtype holds exactly may lose digits too, for any family of maps."""

    def __init__(self, dtype: np.dtype[np.floating]) -> None:
        self.dtype = dtype
        self.epsilon = float(np.finfo(dtype).eps)

    @abstractmethod
    def may_matter(self, rows: Rows) -> bool:
        """Return whether some rows (n, d) may have an error above `MOST`: a quick check that may say yes wrongly."""

    def blocks(self, rows: Rows) -> Iterator[slice]:
        """Return an iterator over blocks of rows, for each of which `sizes` takes little memory."""
        return blocks_of_entries(rows, _ENTRIES_PER_BLOCK)

    @abstractmethod
    def sizes(self, rows: Rows) -> Matrix:
        """Estimate how far the kernels of each row (n, d) are off when it is rounded, (n,)."""

    def operations(self, rows: Rows) -> int:
        """Return the cost of `sizes`, counted in multiplications of a matrix product; 0 if features cost more."""
        return 0

    @abstractmethod
    def warning(self, row: Rows, size: float) -> Told:
        """Return the warning about a row (1, d) whose error is `size`."""

    def entry(self, row: Rows, column: int) -> str:
        """Describe an entry of the row (1, d) and its distance to the next number of the dtype."""
        value = float(row[0, column])
        near = float(np.spacing(np.abs(self.dtype.type(value))))
        return f"entry {value:.6g} in column {column} is {near:.3g} from the next"

    def or_wider(self, cure: str) -> str:
        """Return a remedy, with a wider dtype as an alternative if there is one."""
        wider = "take dtype float64" if self.dtype.name == "float32" else ""
        return ", or ".join(filter(None, [cure, wider]))


class OfLengthScales(Rounding):
    """ε·‖(x_j/σ_j)‖, the spacing of numbers at a row x in length scales; ε is the distance from 1 to the next number.

    Args:
        dtype: dtype of the map.
        scales: σ, (), or σ_j, (d,).
        size_of: function that returns norms of rows (n, d), in the kernel's metric, (n,).
        is_sum: whether the norm is a sum of magnitudes; otherwise it is at most the root of a sum of squares.
        operations_of: function that returns `operations` of rows; None if they do not matter.
    """

    def __init__(
        self,
        dtype: np.dtype[np.floating],
        scales: Matrix,
        size_of: Callable[[Rows], Matrix],
        is_sum: bool,
        operations_of: Callable[[Rows], int] | None = None,
    ) -> None:
        super().__init__(dtype)
        self._scales, self._size_of, self._is_sum = scales, size_of, is_sum
        self._operations_of = operations_of
        # Capped so that the square is finite.
        self._most_squares = min(MOST / self.epsilon * float(scales.min()), 1e154) ** 2

    def blocks(self, rows: Rows) -> Iterator[slice]:
        """Return an iterator over blocks of few rows if their norms cost much."""
        most = rows.shape[0] * _OPERATIONS_PER_BLOCK // max(1, self.operations(rows))
        return (part for block in super().blocks(rows) for part in row_blocks(block.stop, most, block.start))

    def may_matter(self, rows: Rows) -> bool:
        """Return whether the sum of all squares, times d if `is_sum`, a bound on any squared norm, is too large."""
        values = stored_values(rows).reshape(-1)
        if self._most_squares < _LEAST_SQUARES:  # of float32, which would underflow
            values = values.astype(np.float64, copy=False)
        return not np.vdot(values, values) * (rows.shape[1] if self._is_sum else 1) <= self._most_squares

    def operations(self, rows: Rows) -> int:
        """Return the cost of the norms, if it matters."""
        return 0 if self._operations_of is None else self._operations_of(rows)

    def sizes(self, rows: Rows) -> Matrix:
        """Return the spacing of numbers at each row, in length scales."""
        return self.epsilon * self._size_of(self._scale(rows))

    def warning(self, row: Rows, size: float) -> Told:
        """Return a warning that names the entry farthest from 0 in length scales."""
        column = _farthest(row, stored_values(self._scale(row)))
        scale = float(self._scales[column] if self._scales.ndim else self._scales)
        return Told(
            f"its numbers are {size:.3g} length scales apart ({self.entry(row, column)}, the length scale there "
            f"is {scale:.3g}), and features and kernels are off by as much",
            self.or_wider("center the rows by an input of the map"),
        )

    def _scale(self, rows: Rows) -> Rows:
        """Return a float64 copy of the rows, divided by the length scales."""
        scaled: Rows = rows.astype(np.float64)
        divide_columns(scaled, self._scales)
        return scaled


class _OfAllRows(Rounding):
    """The same error for every row."""

    _size: float

    def may_matter(self, rows: Rows) -> bool:
        """Return whether the error exceeds `MOST`."""
        return self._size > MOST

    def sizes(self, rows: Rows) -> Matrix:
        """Return the error for every row."""
        return np.full(rows.shape[0], self._size)


class OfDirections(_OfAllRows):
    """ε·√γ for every row, for kernels e^(−γ(1 − ρ)): on unit rows their length scale is 1/√γ.

    Unit rows are computed in the dtype, so even rows that it holds exactly lose digits.
    """

    looks_at_exact = True

    def __init__(self, dtype: np.dtype[np.floating], gamma: float) -> None:
        super().__init__(dtype)
        self._size = self.epsilon * sqrt(gamma)

    def warning(self, row: Rows, size: float) -> Told:
        """Return a warning that names gamma."""
        return Told(
            f"the numbers of its direction are {size:.3g} of 1/sqrt(gamma) apart, and features and kernels are off by "
            "as much",
            self.or_wider("take a smaller gamma"),
        )


class OfRoots(Rounding):
    """ε·√(γ Σ_j x_j) for kernels e^(−γ Σ (x_j − y_j)²/(x_j + y_j)).

    If x and y are large compared with their difference, such a kernel is Gaussian in √x_j with the length scale
    1/(2√γ), and numbers near √x_j lie ε·√x_j/2 apart.
    """

    def __init__(self, dtype: np.dtype[np.floating], gamma: float) -> None:
        super().__init__(dtype)
        self._gamma = gamma

    def may_matter(self, rows: Rows) -> bool:
        """Return whether the sum of all entries, a bound on any row's, gives an error above `MOST`."""
        values = stored_values(rows)
        with np.errstate(over="ignore"):
            return bool(values.size) and self.epsilon**2 * self._gamma * float(np.abs(values).sum()) > MOST**2

    def sizes(self, rows: Rows) -> Matrix:
        """Return the errors, from the sums of the rows."""
        sums = np.asarray(rows.sum(axis=1, dtype=np.float64)).reshape(-1)
        return np.asarray(self.epsilon * sqrt(self._gamma) * np.sqrt(np.maximum(sums, 0)), np.float64)

    def warning(self, row: Rows, size: float) -> Told:
        """Return a warning that names the largest entry."""
        return Told(
            f"the square roots of its numbers are {size:.3g} of 1/sqrt(gamma) apart "
            f"({self.entry(row, _farthest(row, stored_values(row)))}), and features and kernels are off by as much",
            self.or_wider("take a smaller gamma"),
        )


class OfPowers(_OfAllRows):
    """1 − e^(−pε) for every row, for kernels of ratios of entries to the power p; each entry is rounded by ε/2."""

    def __init__(self, dtype: np.dtype[np.floating], p: float) -> None:
        super().__init__(dtype)
        self._p, self._size = p, -expm1(-p * self.epsilon)

    def warning(self, row: Rows, size: float) -> Told:
        """Return a warning that names the power."""
        return Told(
            f"to the power {self._p:.6g}, its entries are off by up to {size:.3g} of their size, and codes and kernels "
            "by as much",
            self.or_wider("take a smaller p"),
        )


class OfCenter(Rounding):
    """1 − k(x, x̃), x̃ being the row x after rounding, for a kernel of ratios that subtracts a center first.

    Row and center are both rounded before they are subtracted. For a row far from 0 and near the center, the difference
    may be mostly rounding error.

    Args:
        dtype: dtype of the map.
        center: (d,).
        alike: function that returns the kernel of row i of one array with row i of another, both less the center.
    """

    looks_at_exact = True

    def __init__(self, dtype: np.dtype[np.floating], center: Matrix, alike: Callable[[Rows, Rows], Matrix]) -> None:
        super().__init__(dtype)
        self._center, self._alike = center, alike
        self._rounded = center.astype(dtype).astype(np.float64)

    def may_matter(self, rows: Rows) -> bool:
        """Return whether anything is rounded at all."""
        return rows.shape[0] > 0 and (rows.dtype != self.dtype or bool((self._rounded != self._center).any()))

    def blocks(self, rows: Rows) -> Iterator[slice]:
        """Return an iterator over blocks by the number of columns, as rows less a center are dense."""
        return row_blocks(rows.shape[0], _ENTRIES_PER_BLOCK // rows.shape[1])

    def sizes(self, rows: Rows) -> Matrix:
        """Return the error of each row by the exact kernel: 1 if it rounds to zeros, 0 if its kernel is undefined."""
        came, left = self._subtract_center(rows)
        found = np.where(came.any(axis=1), 1.0, 0.0)
        both = np.flatnonzero(came.any(axis=1) & left.any(axis=1))
        found[both] -= self._alike(came[both], left[both])
        return found

    def warning(self, row: Rows, size: float) -> Told:
        """Return a warning that names the entry that changes most."""
        came, left = self._subtract_center(row)
        column = int(np.argmax(np.abs(came - left)))
        return Told(
            f"the kernel of what is posted with what is left of it is {1 - size:.3g} and not 1 "
            f"({self.entry(row, column)}, the center there is {self._center[column]:.6g}), and codes and "
            "kernels are off by as much",
            self.or_wider("take the center from the kernel and give it to an input of the map, which subtracts first"),
        )

    def _subtract_center(self, rows: Rows) -> tuple[Matrix, Matrix]:
        """Return rows less the center, exact and rounded; 0 where they leave float64, which is refused elsewhere."""
        with np.errstate(over="ignore"):
            came, left = dense(rows) - self._center, dense(in_dtype(rows, self.dtype)) - self._rounded
        is_odd = ~(np.isfinite(came) & np.isfinite(left))
        came[is_odd] = left[is_odd] = 0
        return came, left


def _farthest(row: Rows, sizes: Floats) -> int:
    """Return the column of a row (1, d) with the largest of `sizes`, which are given per stored entry."""
    place = int(np.argmax(np.abs(sizes)))
    return place if isinstance(row, np.ndarray) else int(row.indices[place])


# Entries of a block of rows that is checked at a time.
_ENTRIES_PER_BLOCK = 1 << 18
# Multiplications that the norms of a block take, a tenth of a second.
_OPERATIONS_PER_BLOCK = 1 << 29


def coarseness_warnings(
    rounding: Rounding | None, rows: Rows, counts_exact: bool, called: str, pause: Pause = no_pause
) -> tuple[str, ...]:
    """Return a warning if a dtype is too coarse for checked and preprocessed rows (n, d), by the kernel's `rounding`.

    Most rows need none; they cost no more than the sum of the squares of their entries, or a subtraction of the center.

    Args:
        rounding: how rounding the rows changes the kernel of the spec; None if it does not matter.
        rows: rows in float32 or float64.
        counts_exact: whether rows that the dtype holds exactly count too. The phases w·x of a Fourier map lose digits
            of such rows; differences with landmarks do not.
        called: name of the rows in the request.
        pause: called between blocks of rows.
    """
    if rounding is None:
        return ()
    counts_exact = counts_exact or rounding.looks_at_exact
    if (not counts_exact and rows.dtype == rounding.dtype) or not rounding.may_matter(rows):
        return ()
    worst, largest, count = 0, 0.0, 0
    with np.errstate(over="ignore"):
        for block in between(rounding.blocks(rows), pause):
            sizes = rounding.sizes(rows[block])
            if not counts_exact:
                sizes[~_is_rounded(rows[block], rounding.dtype)] = 0
            count += int((sizes > MOST).sum())
            at = int(np.argmax(sizes))
            if sizes[at] > largest:
                worst, largest = block.start + at, float(sizes[at])
    if not count:
        return ()
    what, cure = rounding.warning(rows[worst : worst + 1], largest)
    few = f"{count} of {rows.shape[0]} rows of {called}"
    return (f"{rounding.dtype.name} is too coarse for {few}: at row {worst} {what}: {cure}",)


def _is_rounded(rows: Rows, dtype: np.dtype[np.floating]) -> NDArray[np.bool_]:
    """Return for each row whether a dtype rounds one of its entries, (n,)."""
    if isinstance(rows, np.ndarray):
        return np.asarray((rows.astype(dtype) != rows).any(axis=1))
    return np.bincount(row_numbers(rows)[rows.data.astype(dtype) != rows.data], minlength=rows.shape[0]) > 0
