"""Length scales computed from rows: one for all columns, or one for each."""

from enum import StrEnum
from math import fsum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Matrix, Rows, Whole, dense, entries_of_rows, entry_blocks, row_blocks, stored_values
from app.core.datasets import MOST_RANGES, column_ranges, is_constant, sample_rows
from app.core.errors import InvalidInput
from app.core.neighbours import Metric, Seen, distances_to_neighbour
from app.core.progress import Pause, between, no_pause

_NEIGHBOUR = 10
# Most differences of entries that all queries together take, a second or two; the differences that an entry of sparse
# rows counts as; and those added for each pair of rows.
_MOST_DIFFERENCES, _DIFFERENCES_PER_SPARSE_ENTRY, _DIFFERENCES_PER_PAIR = 1 << 34, 24, 16
# Times the usual work that rows of very different lengths may take.
_MOST_TIMES = 4
# Fewest queries, so that the mean is meaningful.
_FEWEST_QUERIES = 64
# Pairs that are sampled for the median if there are more. If rows are very long, the entries of all pairs limit their
# number, down to the fewest.
_MOST_PAIRS, _FEWEST_PAIRS, _MOST_PAIR_ENTRIES = 1 << 17, 1 << 12, 1 << 28
# Entries processed at a time.
_ENTRIES_AT_A_TIME = 1 << 20
# Squares of smaller distances lose digits, or become 0.
_LEAST_DISTANCE = 1e-150
_SEED = 0
# Field of the spec that all errors point to.
_POINTER = "/kernel/length_scale"


class Heuristic(StrEnum):
    """Rule that computes one length scale from rows.

    nearest_neighbor: the mean distance of a row to its tenth nearest neighbour among all rows, as in the experiments of
    the papers on quasi-Monte Carlo and moment-matched features. median: the median distance of two rows.
    """

    nearest_neighbor = "nearest_neighbor"
    median = "median"


def as_they_are(rows: Rows) -> Rows:
    """Return the rows themselves, in float64."""
    return rows.astype(np.float64, copy=False)


def length_scale(
    heuristic: Heuristic,
    rows: Rows,
    metric: Metric,
    *,
    seen: Seen = as_they_are,
    threads: int = 1,
    pause: Pause = no_pause,
) -> float:
    """Return one length scale for rows (n, d), from distances in a kernel's metric between rows as `seen` returns them.

    If there are many rows, a fixed sample is used: of the rows whose neighbours are sought (always among all rows), or
    of the pairs whose median is taken. Memory does not grow with n.

    Raises:
        InvalidInput: there are too few rows, or the distance is 0 because too many rows are equal, or it is infinite.
    """
    least = _NEIGHBOUR + 1 if heuristic is Heuristic.nearest_neighbor else 2
    if rows.shape[0] < least:
        detail = f"length_scale {heuristic.value!r} needs {least} rows or more, got {rows.shape[0]}"
        raise InvalidInput(detail, _POINTER)
    with np.errstate(over="ignore", invalid="ignore"):  # checked below
        if heuristic is Heuristic.median:
            found = float(np.median(_distances_of_pairs(rows, metric, seen, pause)))
        else:
            sampled = sample_rows(rows.shape[0], _queries(rows), _SEED)
            _check_lengths(rows, sampled)
            queries = seen(rows[sampled])
            distances = distances_to_neighbour(queries, rows, _NEIGHBOUR, metric, seen, threads, pause)
            try:
                found = fsum(distances) / len(distances)
            except OverflowError:
                found = np.inf
    if not (0 if metric == "cityblock" else _LEAST_DISTANCE) < found < np.inf:
        raise InvalidInput(f"length_scale {heuristic.value!r} is {found:g} on these rows; give a number", _POINTER)
    return found


def per_column(scale: float, rows: Rows, *, seen: Seen = as_they_are, pause: Pause = no_pause) -> tuple[float, ...]:
    """Return a length scale for each column of rows (n, d), given `scale`, the length scale for all columns.

    It is `scale` times the column's standard deviation, divided by the root of the mean of all columns' variances. For
    a column that is constant up to rounding, it is `scale`.

    Raises:
        InvalidInput: there are too many columns, or a length scale leaves the range of float64.
    """
    if rows.shape[1] > MOST_RANGES:
        raise InvalidInput(
            f"one length_scale per column takes up to {MOST_RANGES} columns, got {rows.shape[1]}", _POINTER
        )
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # checked below
        deviations, is_constant = _deviations(rows, seen, pause)
        if is_constant.all():
            return (scale,) * len(deviations)
        ratios = deviations / deviations.max()  # their squares stay in range
        found: Matrix = np.where(is_constant, scale, scale * (ratios / np.sqrt(np.mean(ratios**2))))
    if not (np.isfinite(found).all() and (found > _LEAST_DISTANCE).all()):
        raise InvalidInput("the columns are so different that a length_scale leaves the range of float64", _POINTER)
    return tuple(map(float, found))


def _queries(rows: Rows) -> int:
    """Return how many rows have their neighbours sought: all, unless that takes longer than a request may."""
    n, d = rows.shape
    per_query = n * d if isinstance(rows, np.ndarray) else 2 * rows.nnz * _DIFFERENCES_PER_SPARSE_ENTRY
    return int(min(n, max(_FEWEST_QUERIES, _MOST_DIFFERENCES // (per_query + n * _DIFFERENCES_PER_PAIR))))


def _check_lengths(rows: Rows, sampled: Whole) -> None:
    """Raise InvalidInput if the sampled rows are so long that comparing them takes several times as long as others."""
    n, counts = rows.shape[0], entries_of_rows(rows)
    usual = max(_MOST_DIFFERENCES // _DIFFERENCES_PER_SPARSE_ENTRY, 2 * len(sampled) * int(counts.sum()))
    if len(sampled) * int(counts.sum()) + n * int(counts[sampled].sum()) > _MOST_TIMES * usual:
        detail = "some rows have so many more entries than others that their neighbours take too long to find"
        raise InvalidInput(f"{detail}: give a number, or length_scale 'median'", _POINTER)


def _distances_of_pairs(rows: Rows, metric: Metric, seen: Seen, pause: Pause) -> Matrix:
    """Return the distances of all pairs of rows, or of a sample of pairs, drawn with replacement."""
    first, second = _pairs(rows.shape[0], _entries_per_row(rows))
    found = np.empty(len(first))
    counts = entries_of_rows(rows)
    for block in between(entry_blocks(counts[first] + counts[second], 2 * _ENTRIES_AT_A_TIME), pause):
        x, y = (seen(rows[of[block]]) for of in (first, second))
        # In place, as a row may have most of the rows' bytes.
        lags: Any = np.subtract(x, dense(y), out=x) if isinstance(x, np.ndarray) else x - y
        values = stored_values(lags)
        (np.abs if metric == "cityblock" else np.square)(values, out=values)
        found[block] = _sums(lags, axis=1)
    return found if metric == "cityblock" else np.sqrt(found)


def _pairs(n: int, entries: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the row numbers of both rows of each pair, for n rows of `entries` entries."""
    most = min(_MOST_PAIRS, max(_FEWEST_PAIRS, _MOST_PAIR_ENTRIES // entries))
    if n * (n - 1) // 2 <= most:
        return np.triu_indices(n, 1)
    words = np.random.PCG64(_SEED).random_raw((2, most))
    first, further = words[0] % n, 1 + words[1] % (n - 1)
    return first.astype(np.intp), ((first + further) % n).astype(np.intp)


def _entries_per_row(rows: Rows) -> int:
    """Return the number of entries of a row; for sparse rows, the average number of stored entries."""
    n, d = rows.shape
    return int(d if isinstance(rows, np.ndarray) else 1 + rows.nnz // n)


def _deviations(rows: Rows, seen: Seen, pause: Pause) -> tuple[Matrix, NDArray[np.bool_]]:
    """Return the standard deviations of the columns, (d,), 0 if constant, and whether each column is constant, (d,)."""
    n, d = rows.shape
    blocks = list(row_blocks(n, _ENTRIES_AT_A_TIME // _entries_per_row(rows)))
    least, most, total, squares = np.full(d, np.inf), np.full(d, -np.inf), np.zeros(d), np.zeros(d)
    for block in between(blocks, pause):
        some = seen(rows[block])
        of_block = column_ranges(some)
        least, most = np.minimum(least, of_block[0]), np.maximum(most, of_block[1])
        total += _sums(some, axis=0)
    mean = total / n
    for block in between(blocks, pause):
        squares += _squares_about(mean, seen(rows[block]))
    constant = is_constant(most - least, np.maximum(np.abs(least), np.abs(most)))
    squares[constant] = 0
    return np.sqrt(squares / n), constant


def _squares_about(mean: Matrix, rows: Rows) -> Matrix:
    """Return Σ (x_ij − mean_j)² over the rows, (d,)."""
    if isinstance(rows, np.ndarray):
        lags = dense(rows) - mean
        found: Matrix = np.einsum("ij,ij->j", lags, lags)
        return found
    columns: Any = rows.indices
    of_stored = np.bincount(columns, (rows.data - mean[columns]) ** 2, len(mean)).astype(np.float64)
    summed: Matrix = of_stored + (rows.shape[0] - np.bincount(columns, minlength=len(mean))) * mean**2
    return summed


def _sums(entries: Any, axis: Literal[0, 1]) -> Matrix:
    """Return sums of dense or sparse entries (n, d) over the rows, (d,), or over the columns, (n,)."""
    summed: Matrix = np.asarray(entries.sum(axis=axis)).reshape(-1)
    return summed
