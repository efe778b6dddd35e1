"""Preprocessing (`input`), the first step of a map: missing entries are filled in, rows shifted and scaled."""

from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, Field, Tag
from scipy import sparse

from app.core.arrays import (
    Floats,
    Matrix,
    Rows,
    blocks_of_entries,
    divide_columns,
    largest_by_row,
    refuse_not_finite,
    row_blocks,
    stored_values,
)
from app.core.datasets import MOST_RANGES, column_ranges, is_constant
from app.core.errors import InvalidInput
from app.core.model import Frozen, check_entries
from app.core.norms import unit_or_zero_rows
from app.core.progress import Pause, between, no_pause

# Entries processed at a time: few enough to stay in the cache.
_ENTRIES_PER_BLOCK = 1 << 16
# Entries of the columns whose quartiles are computed together.
_ENTRIES_OF_COLUMNS = 1 << 21
_QUARTILES = (0.25, 0.5, 0.75)
# Most columns that a warning names.
_MOST_NAMED = 5
# Largest span of a column for which sums of squares stay in the range of float64.
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


def _is_word(value: object) -> str:
    return "word" if isinstance(value, str) else _is_list(value)


_Numbers = Annotated[float, Tag("number")] | Annotated[tuple[float, ...], Field(fail_fast=True), Tag("list")]
Missing = Annotated[Annotated[Literal["refuse"], Tag("word")] | _Numbers, Discriminator(_is_word)]
"""Replacement for missing entries: one number for all columns, or a list with one per column; or `refuse`."""
MissingOfRows = Annotated[
    Annotated[Literal["refuse", "mean", "median"], Tag("word")] | _Numbers, Discriminator(_is_word)
]
"""Replacement for missing entries as in `Missing`, or the mean or the median of the column in a dataset."""
MISSING = (
    "What stands for an entry that is missing, NaN or null in JSON, among rows that are centred and scaled: one number "
    'for all columns, or a list; or "refuse".'
)
FILL = (
    "Whether `missing` is filled in after `center` and `scale`, in their units, or before. A request or a record that "
    "does not say fills in after, if it has `missing`; records of maps that earlier versions have made say `before`."
)
UNIT_NORM = "Whether rows are scaled to unit L2 norm in the end; a row that is all zero stays so."


class Input(Frozen):
    """Preprocessing of each row, in float64, before the row is rounded to the map's dtype.

    A row x becomes (x − center)/scale; missing entries are filled in after that or, if `fill` says so, before; then,
    with `unit_norm`, the row is divided by its L2 norm. Everything that the map computes is computed from the result.
    """

    center: Shifts = 0.0
    """Offset subtracted from each row: one number for all columns, or a list with one per column."""
    scale: Scales = 1.0
    """Divisor of each row after `center` is subtracted: one number for all columns, or a list with one per column."""
    unit_norm: bool = Field(False, description=UNIT_NORM)
    missing: Missing = Field("refuse", description=MISSING)
    # Excluded from JSON if `before`: such a spec keeps the text that it had before this field existed.
    fill: Literal["before", "after"] = Field("before", description=FILL, exclude_if=lambda value: value == "before")

    def with_defaults(self) -> "Input":
        """Return the input, with `fill` set to `after` if missing entries are filled in and `fill` is not given."""
        if self.missing == "refuse" or "fill" in self.model_fields_set:
            return self
        return self.model_construct(_fields_set=self.model_fields_set, **{**dict(self), "fill": "after"})

    def as_before(self) -> Self:
        """Return the input as earlier versions read it, with `fill` set to `before` if the request does not give it."""
        return self if "fill" in self.model_fields_set else self.model_copy(update={"fill": "before"})

    def check(self, input_dim: int) -> None:
        """Raise InvalidInput for a list that does not have one entry per column."""
        check_entries(self.center, input_dim, "center", "/input/center", ", or one number")
        check_entries(self.scale, input_dim, "scale", "/input/scale", ", or one number")
        check_entries(self.missing, input_dim, "missing", "/input/missing", ", or one number")

    def apply(self, rows: Rows, pointer: str) -> Rows:
        """Return preprocessed rows (n, d), float64 and finite, of floats that were found at `pointer` of the request.

        The result is a copy. It is sparse if the rows are, with the same bits as in dense form. In the posted rows, NaN
        marks missing entries. Entries that sparse rows do not store are zeros, not missing.

        Raises:
            InvalidInput: an entry is missing and `missing` is `refuse`, or an entry is infinite or leaves the range of
                float64; or rows are sparse, and centring would make them dense.
        """
        if isinstance(rows, np.ndarray):
            found = np.empty(rows.shape)
            for block in row_blocks(len(rows), _ENTRIES_PER_BLOCK // rows.shape[1]):
                found[block] = rows[block]
                self._change(found[block], rows[block], block.start, pointer)
                if self.unit_norm:
                    unit_or_zero_rows(found[block], out=found[block])
            return found
        if self._shifts.any():
            raise InvalidInput(
                "sparse rows cannot be centred: post dense rows, or take an input that only scales", pointer
            )
        changed: sparse.csr_array = rows.astype(np.float64)
        self._change(changed, rows, 0, pointer)
        return unit_or_zero_rows(changed) if self.unit_norm and changed.shape[0] else changed

    def count_zero_rows(self, rows: Rows, pause: Pause = no_pause) -> int:
        """Return how many rows, (n, d), preprocessing makes all zero, without rows with refused missing entries."""
        wanted = self.model_copy(update={"missing": 1.0, "fill": "after"}) if self.missing == "refuse" else self
        return sum(
            int((largest_by_row(wanted.apply(rows[block], "")) == 0).sum())
            for block in between(blocks_of_entries(rows, _ENTRIES_PER_BLOCK), pause)
        )

    @cached_property
    def _shifts(self) -> Matrix:
        return np.asarray(self.center, np.float64)

    @cached_property
    def _divisors(self) -> Matrix:
        return np.asarray(self.scale, np.float64)

    @cached_property
    def _replacements(self) -> Matrix:
        return np.asarray(self.missing, np.float64)

    def _change(self, changed: Rows, came: Rows, first: int, pointer: str) -> None:
        """Fill in, shift and scale rows in place; `came` holds them as posted, from row `first` of the request on."""
        values = stored_values(changed)
        missing = np.isnan(values) if self.missing != "refuse" else np.False_
        if self.fill == "before":
            self._fill(changed, missing)
        with np.errstate(over="ignore"):  # the error names the entry
            if isinstance(changed, np.ndarray):
                changed -= self._shifts
            divide_columns(changed, self._divisors)
        if self.fill == "after":
            self._fill(changed, missing)
        if not np.isfinite(values).all():
            refuse_not_finite(came if self.missing == "refuse" else _replace_missing(came), pointer, first)
            refuse_not_finite(changed, pointer, first, "leaves the range of float64 once it is shifted and scaled")

    def _fill(self, changed: Rows, missing: NDArray[np.bool_] | np.bool_) -> None:
        if missing.any():
            numbers = self._replacements
            if numbers.ndim and not isinstance(changed, np.ndarray):
                numbers = numbers[changed.indices]
            np.copyto(stored_values(changed), numbers, where=missing)


def _replace_missing(rows: Rows) -> Rows:
    """Return a copy of the rows with zeros in place of NaN."""
    found = rows.copy()
    np.nan_to_num(stored_values(found), copy=False, posinf=np.inf, neginf=-np.inf)
    return found


class Fit(StrEnum):
    """How center and scale are computed from the columns of a dataset.

    standardize: mean and standard deviation. min_max: smallest entry and range. robust: median and interquartile range.
    max_abs: 0 and the largest absolute entry, for sparse rows too.
    """

    standardize = "standardize"
    min_max = "min_max"
    robust = "robust"
    max_abs = "max_abs"


def fit_input(
    fit: Fit,
    rows: Rows,
    missing: MissingOfRows = "refuse",
    unit_norm: bool = False,
    *,
    pause: Pause = no_pause,
) -> Input:
    """Return the input whose center and scale are computed from rows (n, d), n ≥ 1, as scikit-learn's scalers do.

    Entries of the rows are finite, or NaN if missing; the numbers of a column are computed from its other entries. The
    scale of a column that is constant up to rounding is 1. Working memory holds a block of rows or columns, at least
    one column.

    Raises:
        InvalidInput: there are too many columns to list, a column has no entries, rows are sparse and the fit would
            centre them, or a column's span is too large to be squared in float64.
    """
    d = rows.shape[1]
    if d > MOST_RANGES:
        raise InvalidInput(f"a fit lists numbers of up to {MOST_RANGES} columns; there are {d}", "/input/fit")
    least, most = column_ranges(rows).astype(np.float64)
    if (empty := np.isnan(least)).any():
        raise InvalidInput(f"column {np.argmax(empty)} has no entry that is not missing", "/input/dataset")
    reach = np.maximum(np.abs(least), np.abs(most))
    with np.errstate(over="ignore"):  # the error names the column
        span = most - least
    if (fit is not Fit.max_abs or missing in ("mean", "median")) and span.max() > _WIDEST:
        raise InvalidInput(
            f"column {np.argmax(span)} spans {span.max():.3g}; the most is {_WIDEST:.0e}", "/input/dataset"
        )
    center: Matrix | float
    if fit is Fit.max_abs:
        center, spread = 0.0, reach
    elif not isinstance(rows, np.ndarray):
        raise InvalidInput(
            f"fit {fit.value} would make sparse rows dense: take max_abs, which only scales", "/input/fit"
        )
    else:
        match fit:
            case Fit.min_max:
                center, spread = least, span
            case Fit.standardize:
                center, spread = _moments(rows, least, span, pause)
            case _:
                center, spread, reach = _quartiles(rows, pause)
    scale = np.where(is_constant(spread, reach), 1.0, spread)
    if missing == "mean" or missing == "median":
        if not isinstance(rows, np.ndarray):
            raise InvalidInput(f"missing {missing} is taken of dense rows; expected a number", "/input/missing")
        middle, *_ = _quartiles(rows, pause) if missing == "median" else _moments(rows, least, span, pause)
        missing = tuple(((middle - center) / scale).tolist())
    shift = center if isinstance(center, float) else tuple(center.tolist())
    made = Input(center=shift, scale=tuple(scale.tolist()), unit_norm=unit_norm, missing=missing)
    return made.with_defaults()


def _moments(rows: Floats, least: Matrix, span: Matrix, pause: Pause) -> tuple[Matrix, Matrix]:
    """Return mean and standard deviation of columns; a second pass corrects the rounding error of the first mean."""
    # Powers of two: to divide by them is exact, and squares of the quotients do not underflow.
    units = np.ldexp(1.0, np.frexp(span)[1])
    sums, squares = np.zeros((2, rows.shape[1]))
    blocks = [*row_blocks(len(rows), _ENTRIES_PER_BLOCK // rows.shape[1])]
    n = sum(np.count_nonzero(rows[block] == rows[block], axis=0) for block in between(blocks, pause))  # entries not NaN
    for block in between(blocks, pause):
        sums += np.nansum(rows[block] - least, axis=0)
    means, off = least + sums / n, np.zeros_like(sums)
    for block in between(blocks, pause):
        lags = (rows[block] - means) / units
        off += np.nansum(lags, axis=0)
        squares += np.nansum(np.square(lags), axis=0)
    return means + units * (off / n), units * np.sqrt(np.maximum(squares - off**2 / n, 0) / n)


def _quartiles(rows: Floats, pause: Pause) -> tuple[Matrix, Matrix, Matrix]:
    """Return the median of each column, its interquartile range, and its largest absolute quartile."""
    quartiles = np.empty((3, rows.shape[1]))
    for some in between(row_blocks(rows.shape[1], _ENTRIES_OF_COLUMNS // len(rows)), pause):
        columns = rows[:, some].astype(np.float64)  # the only copy, as a column may have most of the rows' bytes
        quartiles[:, some] = np.quantile(columns, _QUARTILES, axis=0, overwrite_input=True)
        for place in np.flatnonzero(np.isnan(quartiles[1, some])):
            pause()
            column = columns[:, place]
            there = len(column) - np.count_nonzero(np.isnan(column))
            column.partition(there - 1)  # NaN goes to the end
            quartiles[:, some.start + place] = np.quantile(column[:there], _QUARTILES, overwrite_input=True)
    return quartiles[1], quartiles[2] - quartiles[0], np.abs(quartiles).max(axis=0)


def mostly_missing(rows: Rows, dataset: str) -> tuple[str, ...]:
    """Return a warning that names columns missing in more than half of a dataset's rows; empty if there are none."""
    n = rows.shape[0]
    values = stored_values(rows)
    missing = np.isnan(values)
    if isinstance(rows, np.ndarray):
        counts = np.count_nonzero(missing, axis=0)
    else:
        counts = np.bincount(rows.indices[missing], minlength=rows.shape[1])
    places = np.flatnonzero(2 * counts > n)
    if not places.size:
        return ()
    named = ", ".join(f"column {place} in {counts[place]}" for place in places[:_MOST_NAMED])
    more = f", and {places.size - _MOST_NAMED} more" if places.size > _MOST_NAMED else ""
    return (f"most entries of columns of dataset {dataset!r} are missing: {named}{more} of {n} rows",)
