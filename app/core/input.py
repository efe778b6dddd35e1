"""The first steps of a map: missing entries are filled in, rows shifted, scaled and brought to unit length."""

from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag
from scipy import sparse

from app.core.arrays import Floats, Matrix, Rows, dense, largest_by_row, refuse_not_finite, row_blocks, stored_values
from app.core.datasets import MOST_RANGES, column_ranges, is_constant
from app.core.errors import InvalidInput
from app.core.model import Frozen, check_entries
from app.core.norms import unit_or_zero_rows
from app.core.progress import Pause, between, no_pause
from app.core.sparse_rows import divide_columns

# Entries that are worked on at a time: few enough to stay in the cache.
_ENTRIES_PER_BLOCK = 1 << 16
# Of columns that are looked at together.
_ENTRIES_OF_COLUMNS = 1 << 21
# Up to this span of a column, sums of squares stay in the range of float64.
_WIDEST = 1e140


def _is_list(value: object) -> str:
    return "list" if isinstance(value, list | tuple) else "number"


Shifts = Annotated[
    Annotated[float, Tag("number")] | Annotated[tuple[float, ...], Field(fail_fast=True), Tag("list")],
    Discriminator(_is_list),
]
"""One number for every column, or a list with one per column."""
_Positive = Annotated[float, Field(gt=0)]
Scales = Annotated[
    Annotated[_Positive, Tag("number")] | Annotated[tuple[_Positive, ...], Field(fail_fast=True), Tag("list")],
    Discriminator(_is_list),
]
"""One positive number for every column, or a list with one per column."""
Missing = Annotated[
    Annotated[Literal["refuse"], Tag("refuse")] | Annotated[float, Tag("number")],
    Discriminator(lambda value: "refuse" if isinstance(value, str) else "number"),
]
"""The number that takes the place of a missing entry, or `refuse`."""
MISSING = 'What stands for an entry that is missing, NaN or null in JSON, before all else; or "refuse".'
UNIT_NORM = "Whether rows are scaled to unit L2 norm in the end; a row that is all zero stays so."


class Input(Frozen):
    """What is done to a row, in float64, before it is rounded to the map's dtype.

    First what is missing becomes a number, then a row x becomes (x − center)/scale, then, with `unit_norm`, its
    direction. Everything that a map takes rows for sees them after that.
    """

    center: Shifts = Field(0.0, description="Subtracted from each row: one number for all columns, or a list.")
    scale: Scales = Field(1.0, description="What each row is divided by then: one number for all columns, or a list.")
    unit_norm: bool = Field(False, description=UNIT_NORM)
    missing: Missing = Field("refuse", description=MISSING)

    def check(self, input_dim: int) -> None:
        """Raise InvalidInput for a list that has not one entry for each column."""
        check_entries(self.center, input_dim, "center", "/input/center", ", or one number")
        check_entries(self.scale, input_dim, "scale", "/input/scale", ", or one number")

    def applied(self, rows: Rows, pointer: str) -> Rows:
        """Rows (n, d) of floats, which stood at `pointer` of the request, as the map sees them: float64, finite.

        They are in memory of their own, sparse if they came so, and have the same bits then as in dense form. NaN
        stands for what is missing. The entries that sparse rows leave out are zeros, not missing.

        Raises:
            InvalidInput: an entry is missing and no number stands for it, or is infinite, or leaves the range of
                float64; or rows are sparse, and centring would make them dense.
        """
        if isinstance(rows, np.ndarray):
            found = np.empty(rows.shape)
            for block in row_blocks(len(rows), _ENTRIES_PER_BLOCK // rows.shape[1]):
                found[block] = rows[block]
                self._change(found[block], rows[block], block.start, pointer)
                if self.unit_norm:
                    found[block] = dense(unit_or_zero_rows(found[block]))
            return found
        if self._shifts.any():
            raise InvalidInput(
                "sparse rows came, and the input of this map subtracts a center, which would make them dense: post "
                "dense rows, or take an input that only scales",
                pointer,
            )
        changed: sparse.csr_array = rows.astype(np.float64)
        self._change(changed, rows, 0, pointer)
        return unit_or_zero_rows(changed) if self.unit_norm and changed.shape[0] else changed

    def zeroed(self, rows: Rows, pause: Pause = no_pause) -> int:
        """How many of the rows (n, d), which hold no NaN, are all zero in the end."""
        per_block = _ENTRIES_PER_BLOCK // rows.shape[1]
        return sum(
            int((largest_by_row(self.applied(rows[block], "")) == 0).sum())
            for block in between(row_blocks(rows.shape[0], per_block), pause)
        )

    @cached_property
    def _shifts(self) -> Matrix:
        return np.asarray(self.center, np.float64)

    @cached_property
    def _divisors(self) -> Matrix:
        return np.asarray(self.scale, np.float64)

    def _change(self, changed: Rows, came: Rows, first: int, pointer: str) -> None:
        """Fill in, shift and scale rows in place, which came so, and are those of the request from `first` on."""
        values = stored_values(changed)
        if self.missing != "refuse":
            np.copyto(values, self.missing, where=np.isnan(values))
        with np.errstate(over="ignore"):  # refused by name
            if isinstance(changed, np.ndarray):
                changed -= self._shifts
            divide_columns(changed, self._divisors)
        if not np.isfinite(values).all():
            refuse_not_finite(came if self.missing == "refuse" else _filled(came), pointer, first)
            refuse_not_finite(changed, pointer, first, "leaves the range of float64 once it is shifted and scaled")


def _filled(rows: Rows) -> Rows:
    """The rows with zeros for NaN."""
    found = rows.copy()
    np.nan_to_num(stored_values(found), copy=False, posinf=np.inf, neginf=-np.inf)
    return found


class Fit(StrEnum):
    """How center and scale are taken from the columns of a dataset.

    standardize: mean and standard deviation. min_max: least entry and range. robust: median and distance between the
    quartiles. max_abs: 0 and the largest size of an entry, for sparse rows too.
    """

    standardize = "standardize"
    min_max = "min_max"
    robust = "robust"
    max_abs = "max_abs"


def fitted(
    fit: Fit,
    rows: Rows,
    missing: float | Literal["refuse"] = "refuse",
    unit_norm: bool = False,
    *,
    pause: Pause = no_pause,
) -> Input:
    """The input whose center and scale are taken from rows (n, d), n ≥ 1, finite, as scikit-learn's scalers do.

    The scale of a column that is constant, but for the rounding of its numbers, is 1. Takes memory for some rows or
    columns at a time, for one column at least.

    Raises:
        InvalidInput: there are too many columns to list, or rows are sparse and the fit would centre them, or a column
            spans more than squares of float64 hold.
    """
    d = rows.shape[1]
    if d > MOST_RANGES:
        raise InvalidInput(f"a fit lists numbers of up to {MOST_RANGES} columns; there are {d}", "/input/fit")
    if fit is Fit.max_abs:
        reach = np.abs(column_ranges(rows).astype(np.float64)).max(axis=0)
        return Input(scale=_scales(reach, reach), unit_norm=unit_norm, missing=missing)
    if not isinstance(rows, np.ndarray):
        raise InvalidInput(
            f"fit {fit.value} subtracts a center, which would make sparse rows dense: take max_abs, which only scales",
            "/input/fit",
        )
    least, most = column_ranges(rows).astype(np.float64)
    with np.errstate(over="ignore"):  # refused by name
        span = most - least
    if span.max() > _WIDEST:
        raise InvalidInput(
            f"column {np.argmax(span)} spans {span.max():.3g}; a fit takes {_WIDEST:.0e} at most", "/input/dataset"
        )
    match fit:
        case Fit.min_max:
            center, spread = least, span
        case Fit.standardize:
            center, spread = _moments(rows, least, span, pause)
        case _:
            center, spread = _quartiles(rows, pause)
    scale = _scales(spread, np.maximum(np.abs(least), np.abs(most)))
    return Input(center=tuple(center.tolist()), scale=scale, unit_norm=unit_norm, missing=missing)


def _scales(spread: Matrix, reach: Matrix) -> tuple[float, ...]:
    """The spreads of columns whose entries reach so far, 1 where there is none beyond rounding."""
    return tuple(np.where(is_constant(spread, reach), 1.0, spread).tolist())


def _moments(rows: Floats, least: Matrix, span: Matrix, pause: Pause) -> tuple[Matrix, Matrix]:
    """Mean and standard deviation of columns, in two passes; the second mends what the first mean is off by."""
    # Powers of two: dividing by them rounds nothing, and squares of what is left do not underflow.
    n, units = len(rows), np.ldexp(1.0, np.frexp(span)[1])
    sums, squares = np.zeros((2, rows.shape[1]))
    blocks = [*row_blocks(n, _ENTRIES_PER_BLOCK // rows.shape[1])]
    for block in between(blocks, pause):
        sums += (rows[block] - least).sum(axis=0)
    means, off = least + sums / n, np.zeros_like(sums)
    for block in between(blocks, pause):
        lags = (rows[block] - means) / units
        off += lags.sum(axis=0)
        squares += np.square(lags).sum(axis=0)
    return means + units * (off / n), units * np.sqrt(np.maximum(squares - off**2 / n, 0) / n)


def _quartiles(rows: Floats, pause: Pause) -> tuple[Matrix, Matrix]:
    """Median of columns, and the distance between their quartiles."""
    quartiles = np.empty((3, rows.shape[1]))
    for some in between(row_blocks(rows.shape[1], _ENTRIES_OF_COLUMNS // len(rows)), pause):
        columns = rows[:, some].astype(np.float64)
        quartiles[:, some] = np.quantile(columns, (0.25, 0.5, 0.75), axis=0, overwrite_input=True)
    return quartiles[1], quartiles[2] - quartiles[0]
