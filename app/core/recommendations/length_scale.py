"""Length scales taken from data."""

from enum import StrEnum
from typing import Literal

import numpy as np
import scipy

from app.core.arrays import row_blocks
from app.core.errors import InvalidInput
from app.core.kernels.base import Matrix

_NEIGHBOUR = 10
_ROWS_PER_BLOCK = 500


class Heuristic(StrEnum):
    """How to take one length scale from rows.

    nearest_neighbor: the mean distance of a row to its tenth nearest neighbour, as in the experiments of the papers on
    quasi-Monte Carlo and moment-matched features. median: the median distance of two rows.
    """

    nearest_neighbor = "nearest_neighbor"
    median = "median"


def length_scale(heuristic: Heuristic, rows: Matrix, metric: Literal["euclidean", "cityblock"]) -> float:
    """One length scale for rows (n, d), or for a sample of them, from distances in the metric of a kernel.

    Raises:
        InvalidInput: there are too few rows, or so many equal ones that the distance is 0.
    """
    least = _NEIGHBOUR + 1 if heuristic is Heuristic.nearest_neighbor else 2
    if len(rows) < least:
        raise InvalidInput(
            f"{len(rows)} rows came; length_scale {heuristic.value!r} needs {least} at least", "/kernel/length_scale"
        )
    with np.errstate(over="ignore"):  # refused by name below
        if heuristic is Heuristic.median:
            found = float(np.median(scipy.spatial.distance.pdist(rows, metric)))
        else:
            found = _mean_distance_to_neighbour(rows, metric)
    if not 0 < found < np.inf:
        raise InvalidInput(
            f"length_scale {heuristic.value!r} is {found:g} on these rows; give a number", "/kernel/length_scale"
        )
    return found


def _mean_distance_to_neighbour(rows: Matrix, metric: Literal["euclidean", "cityblock"]) -> float:
    """The mean over the rows of the distance to the tenth nearest other row."""
    total = 0.0  # the least distance of a row, at place 0, is that to itself
    for block in row_blocks(len(rows), _ROWS_PER_BLOCK):
        distances = scipy.spatial.distance.cdist(rows[block], rows, metric)
        total += float(np.partition(distances, _NEIGHBOUR, axis=1)[:, _NEIGHBOUR].sum())
    return total / len(rows)
