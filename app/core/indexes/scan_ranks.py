"""At which place neighbours stand when rows are ordered by how many hashes agree: what a scan of codes finds."""

import numpy as np

from app.core.arrays import Matrix, Whole
from app.core.indexes.equal_runs import HashBytes
from app.core.indexes.hashed_rows import packed_codes
from app.core.indexes.scanning import nearest
from app.core.progress import Pause

# Queries whose ranks are looked for at a time.
_QUERIES_PER_BLOCK = 64


def most_depth(k: int, n: int) -> int:
    """The most rows that are compared exactly after a search for the k nearest of n, in what is tried."""
    return min(n, max(20 * k, 500))


def ranks(
    queries: HashBytes, rows: HashBytes, bits: int, neighbours: Whole, depth: int, threads: int, pause: Pause
) -> Whole:
    """The place of each neighbour, from 0 on, (q, k), among the rows whose codes agree most; `depth` for a later one.

    Args:
        queries: their codes, (q, s).
        rows: codes of all rows, (n, s).
        bits: how many of each hash are compared.
        neighbours: slots of each query's neighbours, (q, k).
        depth: how many rows a search looks at.
        threads: how many share the rows.
        pause: called between parts of the work.
    """
    s = rows.shape[1]
    asked, codes = packed_codes(queries, bits), packed_codes(rows, bits)
    found = np.full(neighbours.shape, depth, np.int64)
    for start in range(0, len(queries), _QUERIES_PER_BLOCK):
        some = slice(start, start + _QUERIES_PER_BLOCK)
        slots = nearest(asked[some], codes, s, bits, depth, threads=threads, pause=pause).slots
        for i, (of_query, wanted) in enumerate(zip(slots, neighbours[some], strict=True), start):
            order = np.argsort(of_query, kind="stable")
            at = np.searchsorted(of_query, wanted, sorter=order)
            at = order[np.minimum(at, len(order) - 1)]
            found[i] = np.where(of_query[at] == wanted, at, depth)
    return found


def found_by_depth(places: Whole, depth: int) -> Matrix:
    """The share of each query's neighbours that stand before place 1, 2, … `depth`, (q, depth)."""
    q, k = places.shape
    counts = np.zeros((q, depth + 1))
    np.add.at(counts, (np.arange(q)[:, None], places), 1)
    shares: Matrix = counts[:, :depth].cumsum(axis=1) / k
    return shares
