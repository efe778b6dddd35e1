"""The surroundings of the building of a map: threads, progress, the rows of datasets, and what the set is for."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from app.core.arrays import Matrix, Rows
from app.core.errors import InvalidInput
from app.core.progress import Progress

RowsOf = Callable[[str, str], Rows]
"""Gives the rows of a dataset, from its name and where the spec names it; InvalidInput if there is no such dataset."""


def no_rows(dataset: str, pointer: str) -> Rows:
    """Refuse a dataset where there are none."""
    raise InvalidInput(f"dataset {dataset!r} is not at hand where this map is built; a box can be given", pointer)


class Use(NamedTuple):
    """The features that a map makes of its frequencies; as it is here, real ones in float64."""

    dtype: np.dtype[Any] = np.dtype(np.float64)
    """In which it reads rows and freezes frequencies."""
    is_complex: bool = False
    """Whether its form is complex, so that an imaginary part of k̂, which the kernel has not, is error too."""
    normalize: bool = False
    """Whether feature rows are scaled to unit norm."""

    def round_entries(self, entries: Matrix) -> Matrix:
        """Entries as the map has them. Those beyond its range stay: it refuses them by name."""
        with np.errstate(over="ignore"):
            rounded: Matrix = entries.astype(self.dtype).astype(np.float64)
        return np.where(np.isfinite(rounded), rounded, entries)

    def scale_weights(self, weights: Matrix) -> Matrix:
        """Weights as inner products of the features have them, where norms of cosines and sines are one for all."""
        return weights / weights.sum() if self.normalize else weights


class Building(NamedTuple):
    """The surroundings of a build; as they are here, those of plain use."""

    threads: int = 1
    """How many a build may use; what it makes does not depend on it."""
    progress: Progress = Progress()
    """Takes its progress and states, and gives back the state to go on from."""
    rows: RowsOf = no_rows
    use: Use = Use()
    """The features that the set is for: by their errors sets are judged, and may be learned."""
