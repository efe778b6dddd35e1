"""The rows that are most similar to queries by the exact kernel, and how similar all rows are to them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Matrix, Rows, Whole, row_blocks
from app.core.maps import FeatureMap
from app.core.progress import Progress, packed, unpacked

_BINS = 10_000
# Kernels that are held at a time.
_PAIRS_PER_BLOCK = 1 << 19
_BYTES_PER_PAIR = 40


class Neighbours(NamedTuple):
    """What q queries are like to n rows."""

    slots: Whole
    """Numbers of the k most similar rows, ascending; where the last are equally similar, the first of them, (q, k)."""
    similarities: Matrix
    """The kernels of these, (q, k)."""
    histogram: Whole
    """How many pairs of a query and a row have a kernel in each of as many bins of [0, 1]."""

    @property
    def middles(self) -> Matrix:
        """The middles of the bins."""
        n = len(self.histogram)
        return (np.arange(n) + 0.5) / n


def block_bytes(q: int) -> int:
    """Memory of what is compared at a time with q queries."""
    return _BYTES_PER_PAIR * max(_PAIRS_PER_BLOCK, q)


def true_neighbours(feature_map: FeatureMap, queries: Rows, rows: Rows, k: int, progress: Progress) -> Neighbours:
    """The k rows nearest to each query, of all rows; at least k there are.

    How far the k-th neighbour is depends on how many rows there are. So queries may be a sample, but not the rows.
    """
    q, n = queries.shape[0], rows.shape[0]
    kept = {
        "slots": np.zeros((q, 0), np.int64),
        "similarities": np.zeros((q, 0)),
        "histogram": np.zeros(_BINS, np.int64),
        "done": np.array(0),
    }
    kept |= unpacked(progress.restored())

    def pause() -> None:
        progress.checkpoint(lambda: packed(**kept))

    for block in row_blocks(n, _PAIRS_PER_BLOCK // q, int(kept["done"])):
        progress.report(block.start, n)
        pause()
        found = feature_map.exact_gram(queries, rows[block], pause)
        bins = np.clip((found * _BINS).astype(np.int64), 0, _BINS - 1)
        slots = np.broadcast_to(np.arange(block.start, block.stop), found.shape)
        similarities = np.concatenate([kept["similarities"], found], axis=1)
        both = np.concatenate([kept["slots"], slots], axis=1)
        best = _nearest(similarities, min(k, both.shape[1]))
        kept = {
            "slots": both[best].reshape(q, -1),
            "similarities": similarities[best].reshape(q, -1),
            "histogram": kept["histogram"] + np.bincount(bins.reshape(-1), minlength=_BINS),
            "done": np.array(block.stop),
        }
    progress.report(n, n)
    return Neighbours(kept["slots"], kept["similarities"], kept["histogram"])


def _nearest(similarities: Matrix, k: int) -> NDArray[np.bool_]:
    """Which are the k largest of each row, of equal ones the first: equal rows are in this order by their codes too."""
    m = similarities.shape[1]
    bound = np.partition(similarities, m - k, axis=1)[:, m - k, None]
    above, equal = similarities > bound, similarities == bound
    found: NDArray[np.bool_] = above | equal & (equal.cumsum(axis=1) <= k - above.sum(axis=1, keepdims=True))
    return found
