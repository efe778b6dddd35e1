"""The entries of rows for consistent sampling: coordinates that are not zero after the transform, and their logs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Rows, dense
from app.core.compiled import compiled
from app.core.hashing.logarithm import logarithms
from app.core.kernels.gmm import GeneralizedMinMax

Whole = NDArray[np.int64]
Matrix = NDArray[np.float64]


class Entries(NamedTuple):
    """Coordinates that are not zero after the transform, ordered by row and in it by coordinate i."""

    indptr: Whole
    """Row k has the entries indptr[k] … indptr[k + 1] − 1."""
    coordinate: Whole
    logs: Matrix
    """p·log ũ_i."""


def entries(rows: Rows, kernel: GeneralizedMinMax) -> Entries:
    """The entries of rows (n, d) behind the gate; InvalidInput if one minus its centre leaves the range of float64."""
    if kernel.stays_sparse(rows):
        columns, values = rows.indices.astype(np.int64), rows.data.astype(np.float64)
        ends = rows.indptr[1:].astype(np.int64)
    else:
        matrix = kernel.centered(dense(rows))
        n, d = matrix.shape
        columns, values, ends = np.arange(d), matrix.reshape(-1), np.arange(1, n + 1) * d
    indptr = np.zeros(len(ends) + 1, np.int64)
    coordinate, logs = np.empty(values.shape, np.int64), np.empty(values.shape)
    _fill(columns, values, ends, indptr, coordinate, logs)
    found = logs[: indptr[-1]]
    logarithms(found, found)
    found *= kernel.p
    return Entries(indptr, coordinate[: indptr[-1]], found)


@compiled
def _fill(columns: Whole, values: Matrix, ends: Whole, indptr: Whole, coordinate: Whole, magnitude: Matrix) -> None:
    """Compact what is not zero of rows whose values stand one after the other, each row up to its one of `ends`.

    `columns` are those of the values, or of the first row only where all have the same. Of each entry, `coordinate`
    receives 2·column, plus 1 for a negative value, and `magnitude` |value|; `indptr`, (rows + 1,), where rows begin.
    """
    found = 0
    k = 0
    same = columns.shape[0] < values.shape[0]
    for row in range(ends.shape[0]):
        start = k if same else 0
        while k < ends[row]:
            # Written always and kept if not zero: without a branch, as the sign of a value cannot be foreseen.
            coordinate[found] = 2 * columns[k - start] + (values[k] < 0)
            magnitude[found] = abs(values[k])
            found += values[k] != 0
            k += 1
        indptr[row + 1] = found
