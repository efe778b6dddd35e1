"""Landmarks that are centres of clusters, and the distances of rows from centres."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import scipy

from app.core.arrays import Matrix, Rows, Whole, dense, row_blocks
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, ScaledKernel
from app.core.maps.landmarks.selection import base
from app.core.maps.landmarks.selection.base import (
    MOST_COMPARED,
    ROUNDING,
    Run,
    Selected,
    compared_at_once,
    operations_per_row,
    own_values,
    values,
)
from app.core.progress import Progress
from app.core.samplers.base import Rng
from app.core.threads import for_each

# Limits of one part of the work, a tenth of a second or less: differences of entries, kernel values, multiplications.
_DIFFERENCES_PER_PART, _VALUES_PER_PART, _OPERATIONS_PER_PART = 1 << 24, 1 << 17, 1 << 26
# Multiplications for a row and a centre beyond which the centre is long.
_LONG = 1 << 20
# Largest distance: larger ones are cut to it, so that sums of distances stay in the range of float64.
_FARTHEST = 1e290


class Comparison(NamedTuple):
    """Comparison of n rows with k centres."""

    per_part: int
    """Number of rows to compare between two pauses."""
    distances: Callable[[slice], Matrix]
    """Function that returns the distances of some rows from the centres, (rows of the part, k)."""


class ScaledDistances:
    """Distances Σ (δ_j/σ_j)², or Σ |δ_j|/σ_j for kernels of metric cityblock; at most 1e290."""

    def __init__(self, kernel: ScaledKernel, rows: Rows) -> None:
        self._kernel, self._rows = kernel, kernel.scaled_rows(dense(rows))

    def against(self, centres: Rows) -> Comparison:
        """Return a comparison by differences, a bounded number at a time, so that equal rows have distance 0."""
        scaled = self._kernel.scaled_rows(dense(centres))
        metric: Literal["cityblock", "sqeuclidean"] = (
            "cityblock" if self._kernel.metric == "cityblock" else "sqeuclidean"
        )

        def compare(part: slice) -> Matrix:
            found: Matrix = scipy.spatial.distance.cdist(self._rows[part], scaled, metric)
            return np.minimum(found, _FARTHEST, out=found)

        return Comparison(max(1, _DIFFERENCES_PER_PART // int(centres.shape[0] * self._rows.shape[1])), compare)


class KernelDistances:
    """Squared distances in the feature space of the kernel, k(x, x) + k(c, c) − 2 k(x, c); 0 where it is rounding."""

    def __init__(self, kernel: AnyKernel, rows: Rows) -> None:
        self._kernel, self._rows = kernel, rows

    def against(self, centres: Rows) -> Comparison:
        """Return a comparison by kernel values, of a bounded cost at a time."""
        kernel, k, of_centres = self._kernel, int(centres.shape[0]), own_values(self._kernel, centres)
        operations = operations_per_row(kernel, self._rows, centres)
        # A long centre is prepared for each part, so it is the side of which each row is compared with all others.
        are_long = operations > _LONG * k
        if are_long:
            operations = operations_per_row(kernel, centres, self._rows) * k // int(self._rows.shape[0])

        def compare(part: slice) -> Matrix:
            rows = self._rows[part]
            sizes = own_values(kernel, rows)[:, None] + of_centres
            found = sizes - 2 * (values(kernel, centres, rows).T if are_long else values(kernel, rows, centres))
            found[found <= ROUNDING * sizes] = 0
            return found

        return Comparison(max(1, min(_VALUES_PER_PART // k, _OPERATIONS_PER_PART // max(1, operations))), compare)


Distances = ScaledDistances | KernelDistances
"""Distances of rows from centres; clustering minimises their sum over all rows."""


def distances_of(kernel: AnyKernel, rows: Rows) -> Distances:
    """Return distances of scaled rows if the kernel has scales and rows are dense; else distances by kernel values."""
    if isinstance(kernel, ScaledKernel) and isinstance(rows, np.ndarray):
        return ScaledDistances(kernel, rows)
    return KernelDistances(kernel, rows)


_STEPS = 10
# The most rows that are clustered: in all, or for each landmark if that is more; and the most entries of these rows.
_ROWS, _ROWS_PER_LANDMARK, _MOST_ENTRIES = 1 << 14, 16, 1 << 25


def dense_entries(n: int, d: int, s: int, are_sparse: bool) -> int:
    """Return how many entries of rows, (n, d), `select` compares in dense form, in float64, for s landmarks."""
    entries = d * min(n, max(_ROWS, _ROWS_PER_LANDMARK * s))
    if are_sparse:
        return entries if entries <= _MOST_ENTRIES else 0
    return min(entries, max(_MOST_ENTRIES, s * d))


def select(kernel: AnyKernel, rows: Rows, s: int, rng: Rng, progress: Progress, threads: int) -> Selected:
    """Select the centres of s clusters of the rows, by k-means++ and ten of Lloyd's steps, or fewer if nothing changes.

    Source: Zhang, Tsang and Kwok (2008), Improved Nyström low-rank approximation and error analysis; seeds by Arthur
    and Vassilvitskii (2007). Distances are those of `distances_of`. A centre is the mean of its rows, or the median in
    each coordinate if the metric is cityblock. If the kernel refuses the mean, the centre is the row of the cluster
    nearest to all its rows by kernel values. So are all centres of sparse rows that are too long to be made dense.

    A uniform sample is clustered: 2¹⁴ rows or 16 s, whichever is more, with up to 2²⁵ entries, but at least s rows.
    """
    run, stream, n = Run(s, progress, threads, stages=2), base.streams(rng), rows.shape[0]
    entries = rows.shape[1] if isinstance(rows, np.ndarray) else 1 + rows.nnz // n
    most = max(s, min(max(_ROWS, _ROWS_PER_LANDMARK * s), _MOST_ENTRIES // entries))
    sample = rows[np.sort(rng.permutation(n)[:most])]
    if not isinstance(sample, np.ndarray) and sample.shape[0] * sample.shape[1] <= _MOST_ENTRIES:
        sample = sample.toarray()
    distances = distances_of(kernel, sample)
    if "labels" not in run.kept:
        seeds = _seeds(distances, sample, stream, run)
        run.kept = {"step": np.array(0), "labels": _assign(distances, sample[seeds], sample.shape[0], run)}
    _move(kernel, distances, sample, run)
    centres = _centres(kernel, sample, run.kept["labels"], run)
    basis = run.basis(kernel, centres)
    base.take_in_order(basis, run, np.arange(centres.shape[0]), stage=1)
    return base.finish(basis)


def _seeds(distances: Distances, sample: Rows, stream: Callable[[int], Rng], run: Run) -> Whole:
    """Draw the numbers of up to s rows, each in proportion to its distance from the nearest earlier one (k-means++)."""
    n = sample.shape[0]
    seeds: Whole = run.kept.get("seeds", np.empty(0, np.int64))
    nearest: Matrix = run.kept.get("nearest", np.ones(n))
    while len(seeds) < run.s and nearest.any():
        cumulative = np.cumsum(nearest)
        at = stream(len(seeds)).random() * cumulative[-1]
        drawn = min(int(np.searchsorted(cumulative, at, side="right")), n - 1)
        to_drawn = _to_one(distances, sample[drawn : drawn + 1], n, run)
        nearest = np.minimum(nearest, to_drawn) if len(seeds) else to_drawn
        nearest[drawn] = 0
        seeds = np.append(seeds, drawn)
        run.kept.update(seeds=seeds, nearest=nearest)
        run.tell(0, len(seeds), 2 * run.s)
        run.pause()
    return seeds


def _to_one(distances: Distances, centre: Rows, n: int, run: Run) -> Matrix:
    """Compute the distances of all n rows from one centre, (1, d): (n,)."""
    found, comparison = np.empty(n), distances.against(centre)

    def fill(part: slice) -> None:
        found[part] = comparison.distances(part)[:, 0]

    for_each(fill, row_blocks(n, comparison.per_part), run.threads, run.pause)
    return found


def _assign(distances: Distances, centres: Rows, n: int, run: Run) -> Whole:
    """Return the nearest centre of each row, (n,). A centre without rows gets the row farthest from its own centre."""
    k, comparison = centres.shape[0], distances.against(centres)
    labels, cost = np.empty(n, np.int64), np.empty(n)

    def fill(part: slice) -> None:
        to_all = comparison.distances(part)
        labels[part], cost[part] = to_all.argmin(axis=1), to_all.min(axis=1)

    for_each(fill, row_blocks(n, comparison.per_part), run.threads, run.pause)
    counts = np.bincount(labels, minlength=k)
    farthest = iter(np.argsort(-cost, kind="stable"))
    for empty in np.flatnonzero(counts == 0):
        moved = next(row for row in farthest if counts[labels[row]] > 1)
        counts[labels[moved]] -= 1
        labels[moved], counts[empty] = empty, 1
    return labels


def _move(kernel: AnyKernel, distances: Distances, sample: Rows, run: Run) -> None:
    """Do Lloyd's steps, and keep the `labels` in the state."""
    while (step := int(run.kept["step"])) < _STEPS:
        before = run.kept["labels"]
        labels = _assign(distances, _centres(kernel, sample, before, run), sample.shape[0], run)
        step = _STEPS if np.array_equal(labels, before) else step + 1
        run.kept.update(step=np.array(step), labels=labels)
        run.tell(0, _STEPS + step, 2 * _STEPS)
        run.pause()


def _centres(kernel: AnyKernel, sample: Rows, labels: Whole, run: Run) -> Rows:
    """Compute the centres of the clusters, (k, d), in the dtype of the rows; no cluster is empty."""
    order = np.argsort(labels, kind="stable")
    clusters = np.split(order, np.cumsum(np.bincount(labels))[:-1])
    found = []
    for members in clusters:
        found.append(_centre(kernel, sample[members], run))
        run.pause()
    return base.stack_rows(found)


def _centre(kernel: AnyKernel, members: Rows, run: Run) -> Rows:
    """Compute the centre of one cluster, (1, d)."""
    if members.shape[0] == 1 or not isinstance(members, np.ndarray):
        return _middle(kernel, members, run)
    of = np.median if kernel.metric == "cityblock" else np.mean
    with np.errstate(over="ignore", invalid="ignore"):  # a sum beyond float64 has no mean
        centre = of(dense(members), axis=0, keepdims=True).astype(members.dtype)
    if not np.isfinite(centre).all():
        return _middle(kernel, members, run)
    try:
        return kernel.prepare(centre)
    except InvalidInput:
        return _middle(kernel, members, run)


def _middle(kernel: AnyKernel, members: Rows, run: Run) -> Rows:
    """Return the member nearest to the mean of all, or of 256 of many, in the feature space of the kernel, (1, d)."""
    n = members.shape[0]
    compared = members[np.linspace(0, n - 1, min(n, MOST_COMPARED)).astype(np.int64)]
    cost = np.empty(n)
    for part in row_blocks(n, compared_at_once(kernel, members) ** 2 // MOST_COMPARED):
        rows = members[part]
        cost[part] = own_values(kernel, rows) - 2 * values(kernel, rows, compared).mean(axis=1)
        run.pause()
    middle = int(cost.argmin())
    return members[middle : middle + 1]
