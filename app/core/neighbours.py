"""Distances of rows to their nearest neighbours in a dataset.

All pairs are compared by differences of their entries: with products and norms, rounding would hide small distances
between rows far from 0. A compiled loop takes about as long for a difference as a matrix product takes for a term.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy import sparse

from app.core.arrays import Array, Compressed, Matrix, Rows, csr_parts, dense, row_blocks
from app.core.compiled import jit
from app.core.progress import Pause, no_pause
from app.core.threads import for_each

Metric = Literal["euclidean", "cityblock"]
"""`euclidean`: √Σ δ_j²; `cityblock`: Σ |δ_j|."""
Seen = Callable[[Rows], Rows]
"""Function that returns rows as a map sees them. It is called with blocks of rows, as the stored rows may be large."""

# Most parts into which a dataset is divided for threads, and the fewest rows, or entries of long rows, of a part.
_PARTS, _LEAST_ROWS_PER_PART, _LEAST_ENTRIES_PER_PART = 64, 4096, 1 << 18
# Entries and rows that are compared at a time: few enough for the entries to stay near the processor.
_ENTRIES_AT_A_TIME, _LEAST_AT_A_TIME, _MOST_AT_A_TIME = 1 << 15, 128, 4096


def distances_to_neighbour(
    queries: Rows, rows: Rows, place: int, metric: Metric, seen: Seen, threads: int = 1, pause: Pause = no_pause
) -> Matrix:
    """Return the distance of each query, (q, d), to its neighbour number `place` among all rows, (n, d), as (q,).

    Neighbours are ordered by distance and numbered from 0. A query that is one of the rows is its own nearest
    neighbour. `queries` are results of `seen`, `rows` are not yet. The result does not depend on the number of threads.
    `pause` is called if there are many rows.
    """
    n, d = rows.shape
    entries = d if isinstance(rows, np.ndarray) else 1 + rows.nnz // max(1, n)
    least = min(_LEAST_ROWS_PER_PART, 1 + _LEAST_ENTRIES_PER_PART // entries)
    parts = list(row_blocks(n, max(least, -(-n // _PARTS))))
    nearest = np.full((len(parts), queries.shape[0], place + 1), np.inf)
    is_cityblock = metric == "cityblock"
    compressed: tuple[Compressed, Array] | None = None
    if not isinstance(queries, np.ndarray):
        columns, of_queries = np.unique(queries.indices, return_inverse=True)
        compressed = csr_parts(queries, of_queries), columns

    def compare(number: int) -> None:
        part = parts[number]
        if compressed is None:
            _compare_dense(dense(queries), rows, part, seen, is_cityblock, nearest[number])
        else:
            _compare_sparse(*compressed, seen(rows[part]), is_cityblock, nearest[number])

    for_each(compare, range(len(parts)), threads, pause if len(parts) > 1 else no_pause)
    found: Matrix = np.sort(nearest.swapaxes(0, 1).reshape(queries.shape[0], -1), axis=1)[:, place]
    return found if is_cityblock else np.sqrt(found)


def _compare_dense(queries: Matrix, rows: Rows, part: slice, seen: Seen, is_cityblock: bool, nearest: Matrix) -> None:
    at_a_time = min(_MOST_AT_A_TIME, max(_LEAST_AT_A_TIME, _ENTRIES_AT_A_TIME // queries.shape[1]))
    for block in row_blocks(part.stop, at_a_time, part.start):
        write_nearest(queries, dense(seen(rows[block])).T.copy(), is_cityblock, nearest)


def _compare_sparse(queries: Compressed, columns: Array, rows: Rows, is_cityblock: bool, nearest: Matrix) -> None:
    """Compare in the columns in which queries have entries; all other columns share one, in which queries are 0."""
    compared = sparse.csr_array(rows)
    places = np.searchsorted(columns, compared.indices)
    places[np.append(columns, -1)[places] != compared.indices] = len(columns)
    write_nearest_sparse(*queries, *csr_parts(compared, places), len(columns), is_cityblock, nearest)


@jit
def write_nearest(queries: Matrix, columns: Matrix, is_cityblock: bool, nearest: Matrix) -> None:
    """Insert the distances of queries to some rows into the lists of the smallest distances so far.

    Euclidean distances are squared.

    Args:
        queries: (q, d).
        columns: the rows, (d, n), column by column.
        is_cityblock: whether absolute differences are summed, rather than their squares.
        nearest: the lists, (q, k), each increasing; infinity fills the rest of a list.
    """
    d, n = columns.shape
    sums = np.zeros(n)
    for i in range(len(queries)):
        # One loop per metric: the compiler does not vectorise a loop that chooses between them.
        if is_cityblock:
            for j in range(d):
                # A slice of one row shows the compiler that its entries are contiguous.
                x, line = queries[i, j], columns[j]
                for k in range(n):
                    sums[k] += abs(line[k] - x)
        else:
            for j in range(d):
                x, line = queries[i, j], columns[j]
                for k in range(n):
                    lag = line[k] - x
                    sums[k] += lag * lag
        for k in range(n):
            _keep(sums[k], nearest[i])
            sums[k] = 0


@jit
def write_nearest_sparse(
    query_values: Matrix,
    query_columns: Array,
    query_ends: Array,
    values: Matrix,
    columns: Array,
    ends: Array,
    n_columns: int,
    is_cityblock: bool,
    nearest: Matrix,
) -> None:
    """Insert the distances of sparse queries to sparse rows into the lists of the smallest, as `write_nearest` does.

    Columns of queries are below `n_columns`. Columns of rows may also be `n_columns`, for entries that no query has.
    """
    query, last_seen = np.zeros(n_columns + 1), np.full(n_columns + 1, -1)
    n = len(ends) - 1
    for i in range(len(query_ends) - 1):
        start, end = query_ends[i], query_ends[i + 1]
        for t in range(start, end):
            query[query_columns[t]] = query_values[t]
        for k in range(n):
            total = 0.0
            for t in range(ends[k], ends[k + 1]):
                total += _term(values[t] - query[columns[t]], is_cityblock)
                last_seen[columns[t]] = i * n + k
            for t in range(start, end):
                if last_seen[query_columns[t]] != i * n + k:
                    total += _term(query_values[t], is_cityblock)
            _keep(total, nearest[i])
        for t in range(start, end):
            query[query_columns[t]] = 0


@jit
def _term(lag: float, is_cityblock: bool) -> float:
    return abs(lag) if is_cityblock else lag * lag


@jit
def _keep(found: float, nearest: Matrix) -> None:
    """Insert a distance into the increasing list of the smallest ones, if it is one of them."""
    at = len(nearest) - 1
    if found >= nearest[at]:
        return
    while at > 0 and nearest[at - 1] > found:
        nearest[at] = nearest[at - 1]
        at -= 1
    nearest[at] = found
