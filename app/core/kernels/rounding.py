"""Errors of kernels whose rows are rounded to a dtype: by length scales, directions, square roots, or a center."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Floats, Matrix, Rows, dense, in_dtype, row_blocks, stored_values
from app.core.sparse_rows import divide_columns, row_numbers

MOST = 1e-3
"""The largest of `Rounding.sizes` that a client is not warned of."""


class Told(NamedTuple):
    """The two halves of a warning that a dtype is too coarse: what it does to the worst row, and what helps."""

    what: str
    cure: str


class Rounding(ABC):
    """The errors of one kernel where rows are rounded to a dtype.

    Args:
        dtype: of the map, to which rows are rounded.
    """

    looks_at_exact: ClassVar[bool] = False
    """Whether rows that the dtype holds exactly may lose digits too, whatever the family of the map."""

    def __init__(self, dtype: np.dtype[np.floating]) -> None:
        self.dtype = dtype
        self.epsilon = float(np.finfo(dtype).eps)

    @abstractmethod
    def may_matter(self, rows: Rows) -> bool:
        """Whether some of the rows (n, d) may have a size above `MOST`: a quick look that errs on the side of yes."""

    @abstractmethod
    def sizes(self, rows: Rows) -> Matrix:
        """About how far the kernels of each row (n, d) are off where it is rounded, (n,)."""

    @abstractmethod
    def warning(self, row: Rows, size: float) -> Told:
        """The warning about the row (1, d) of this size."""

    def entry(self, row: Rows, column: int) -> str:
        """The words for an entry of the row (1, d), and how far the next number is from it."""
        value = float(row[0, column])
        near = float(np.spacing(np.abs(self.dtype.type(value))))
        return f"entry {value:.6g} in column {column} is {near:.3g} from the next"

    def or_wider(self, cure: str) -> str:
        """A cure, with that of a wider dtype where there is one."""
        wider = "take dtype float64" if self.dtype.name == "float32" else ""
        return ", or ".join(filter(None, [cure, wider]))


class OfLengthScales(Rounding):
    """ε·‖(x_j/σ_j)‖, how many length scales numbers lie apart at a row x; ε is the distance from 1 to the next number.

    Args:
        dtype: of the map.
        scales: σ, (), or σ_j, (d,).
        size_of: norms of rows (n, d), in the kernel's metric, (n,).
        is_sum: whether that norm is a sum of sizes, and not at most the root of a sum of squares.
    """

    def __init__(
        self, dtype: np.dtype[np.floating], scales: Matrix, size_of: Callable[[Rows], Matrix], is_sum: bool
    ) -> None:
        super().__init__(dtype)
        self._scales, self._size_of, self._is_sum = scales, size_of, is_sum
        # No more than has a square.
        self._most_squares = min(MOST / self.epsilon * float(scales.min()), 1e154) ** 2

    def may_matter(self, rows: Rows) -> bool:
        """Compare the sum of all squares: no less than any row's, and a row's than the square of its sum over d."""
        values = stored_values(rows).reshape(-1)
        return not np.vdot(values, values) * (rows.shape[1] if self._is_sum else 1) <= self._most_squares

    def sizes(self, rows: Rows) -> Matrix:
        """The spacing at each row, in length scales."""
        return self.epsilon * self._size_of(self._scale(rows))

    def warning(self, row: Rows, size: float) -> Told:
        """Name the entry that is farthest from 0 in length scales."""
        column = _farthest(row, stored_values(self._scale(row)))
        scale = float(self._scales[column] if self._scales.ndim else self._scales)
        return Told(
            f"its numbers are {size:.3g} length scales apart ({self.entry(row, column)}, the length scale there "
            f"is {scale:.3g}), and features and kernels are off by as much",
            self.or_wider("center the rows by an input of the map"),
        )

    def _scale(self, rows: Rows) -> Rows:
        """Rows divided by the length scales, in float64 and memory of their own."""
        scaled: Rows = rows.astype(np.float64)
        divide_columns(scaled, self._scales)
        return scaled


class OfDirections(Rounding):
    """ε·√γ for every row, of kernels e^(−γ(1 − ρ)): on unit rows they have the length scale 1/√γ.

    Unit rows are computed in the dtype, so that they lose digits of rows that it holds exactly.
    """

    looks_at_exact = True

    def __init__(self, dtype: np.dtype[np.floating], gamma: float) -> None:
        super().__init__(dtype)
        self._size = self.epsilon * sqrt(gamma)

    def may_matter(self, rows: Rows) -> bool:
        """Compare what is that of every row."""
        return self._size > MOST

    def sizes(self, rows: Rows) -> Matrix:
        """The same for every row."""
        return np.full(rows.shape[0], self._size)

    def warning(self, row: Rows, size: float) -> Told:
        """Name gamma."""
        return Told(
            f"the numbers of its direction are {size:.3g} of 1/sqrt(gamma) apart, and features and kernels are off by "
            "as much",
            self.or_wider("take a smaller gamma"),
        )


class OfRoots(Rounding):
    """ε·√(γ Σ_j x_j) of kernels e^(−γ Σ (x_j − y_j)²/(x_j + y_j)).

    Where x and y are large beside their difference, such a kernel is Gaussian in √x_j with the length scale 1/(2√γ),
    and numbers at √x_j lie ε·√x_j/2 apart.
    """

    def __init__(self, dtype: np.dtype[np.floating], gamma: float) -> None:
        super().__init__(dtype)
        self._gamma = gamma

    def may_matter(self, rows: Rows) -> bool:
        """Compare the largest row sum there could be."""
        values = stored_values(rows)
        with np.errstate(over="ignore"):
            return bool(values.size) and self.epsilon**2 * self._gamma * float(np.abs(values).sum()) > MOST**2

    def sizes(self, rows: Rows) -> Matrix:
        """From the sums of the rows."""
        sums = np.asarray(rows.sum(axis=1, dtype=np.float64)).reshape(-1)
        return np.asarray(self.epsilon * sqrt(self._gamma) * np.sqrt(np.maximum(sums, 0)), np.float64)

    def warning(self, row: Rows, size: float) -> Told:
        """Name the largest entry."""
        return Told(
            f"the square roots of its numbers are {size:.3g} of 1/sqrt(gamma) apart "
            f"({self.entry(row, _farthest(row, stored_values(row)))}), and features and kernels are off by as much",
            self.or_wider("take a smaller gamma"),
        )


class OfCenter(Rounding):
    """1 − k(x, x̃), where x̃ is what rounding leaves of x, of a kernel of ratios that subtracts a center first.

    Row and center are both rounded before they are subtracted, and what is left of a row that lies far from 0 and near
    the center may be mostly rounding.

    Args:
        dtype: of the map.
        center: (d,).
        alike: the kernel of row i of the one with row i of the other, once the center is subtracted.
    """

    looks_at_exact = True

    def __init__(self, dtype: np.dtype[np.floating], center: Matrix, alike: Callable[[Rows, Rows], Matrix]) -> None:
        super().__init__(dtype)
        self._center, self._alike = center, alike
        self._rounded = center.astype(dtype).astype(np.float64)

    def may_matter(self, rows: Rows) -> bool:
        """Whether something is rounded at all."""
        return rows.shape[0] > 0 and (rows.dtype != self.dtype or bool((self._rounded != self._center).any()))

    def sizes(self, rows: Rows) -> Matrix:
        """By the kernel itself; 1 for rows of which rounding leaves nothing, 0 for those that have no kernel."""
        came, left = self._subtract_center(rows)
        found = np.where(came.any(axis=1), 1.0, 0.0)
        both = np.flatnonzero(came.any(axis=1) & left.any(axis=1))
        found[both] -= self._alike(came[both], left[both])
        return found

    def warning(self, row: Rows, size: float) -> Told:
        """Name the entry that moves most."""
        came, left = self._subtract_center(row)
        column = int(np.argmax(np.abs(came - left)))
        return Told(
            f"the kernel of what is posted with what is left of it is {1 - size:.3g} and not 1 "
            f"({self.entry(row, column)}, the center there is {self._center[column]:.6g}), and codes and "
            "kernels are off by as much",
            self.or_wider("take the center from the kernel and give it to an input of the map, which subtracts first"),
        )

    def _subtract_center(self, rows: Rows) -> tuple[Matrix, Matrix]:
        """Rows less the center, as they came and rounded; zero where they leave float64, which is refused by name."""
        with np.errstate(over="ignore"):
            came, left = dense(rows) - self._center, dense(in_dtype(rows, self.dtype)) - self._rounded
        is_odd = ~(np.isfinite(came) & np.isfinite(left))
        came[is_odd] = left[is_odd] = 0
        return came, left


def _farthest(row: Rows, sizes: Floats) -> int:
    """The column of a row (1, d) whose entry has the largest of these sizes, which are of those that are stored."""
    place = int(np.argmax(np.abs(sizes)))
    return place if isinstance(row, np.ndarray) else int(row.indices[place])


# Entries that are looked at together.
_ENTRIES_PER_BLOCK = 1 << 18


def coarseness_warnings(rounding: Rounding | None, rows: Rows, counts_exact: bool, called: str) -> tuple[str, ...]:
    """The warning that a dtype is too coarse for rows (n, d) behind the gate, in the eyes of a kernel; none for most.

    Those cost no more than the sum of the squares of their entries, or what a center leaves of them.

    Args:
        rounding: that of the kernel of the spec, before anything of it is rounded.
        rows: in float32 or float64.
        counts_exact: whether rows count that the dtype holds exactly. The phases w·x of a Fourier map lose digits of
            them all the same; differences with landmarks do not.
        called: what the request calls the rows.
    """
    if rounding is None:
        return ()
    counts_exact = counts_exact or rounding.looks_at_exact
    if (not counts_exact and rows.dtype == rounding.dtype) or not rounding.may_matter(rows):
        return ()
    n, sizes = rows.shape[0], np.zeros(rows.shape[0])
    with np.errstate(over="ignore"):
        for block in row_blocks(n, _ENTRIES_PER_BLOCK // rows.shape[1]):
            sizes[block] = rounding.sizes(rows[block])
            if not counts_exact:
                sizes[block][~_is_rounded(rows[block], rounding.dtype)] = 0
    worst = int(np.argmax(sizes)) if n else 0
    count = int((sizes > MOST).sum())
    if not count:
        return ()
    what, cure = rounding.warning(rows[worst : worst + 1], float(sizes[worst]))
    return (f"{rounding.dtype.name} is too coarse for {count} of {n} rows of {called}: at row {worst} {what}: {cure}",)


def _is_rounded(rows: Rows, dtype: np.dtype[np.floating]) -> NDArray[np.bool_]:
    """Whether a dtype rounds an entry of a row, (n,)."""
    if isinstance(rows, np.ndarray):
        return np.asarray((rows.astype(dtype) != rows).any(axis=1))
    return np.bincount(row_numbers(rows)[rows.data.astype(dtype) != rows.data], minlength=rows.shape[0]) > 0
