"""Build context of a map: threads, progress, rows of datasets, and what its frequencies are used for."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from app.core.arrays import Matrix, Rows
from app.core.errors import InvalidInput
from app.core.progress import Progress

RowsOf = Callable[[str, str], Rows]
"""Function that returns a dataset's rows, from its name and the pointer to it in the spec; InvalidInput if absent."""


def no_rows(dataset: str, pointer: str) -> Rows:
    """Raise InvalidInput: no datasets are available in this build context."""
    raise InvalidInput(f"dataset {dataset!r} is not at hand where this map is built; a box can be given", pointer)


class Use(NamedTuple):
    """Features that a map computes from its frequencies; the defaults stand for real features in float64."""

    dtype: np.dtype[Any] = np.dtype(np.float64)
    """Dtype in which the map reads rows and stores its frozen arrays."""
    is_complex: bool = False
    """Whether the form is `complex`: an imaginary part of k̂ then counts as error, as the kernel has none."""
    normalize: bool = False
    """Whether feature rows are scaled to unit norm."""

    def round_entries(self, entries: Matrix) -> Matrix:
        """Return the entries rounded to the map's dtype; entries outside its range stay, as the map refuses them."""
        with np.errstate(over="ignore"):
            rounded: Matrix = entries.astype(self.dtype).astype(np.float64)
        np.copyto(rounded, entries, where=~np.isfinite(rounded))
        return rounded

    def scale_weights(self, weights: Matrix) -> Matrix:
        """Return the weights that inner products of the features use.

        If features are normalised, these are the weights over their sum: all rows of cosines and sines have the same
        norm.
        """
        return weights / weights.sum() if self.normalize else weights


class Building(NamedTuple):
    """Build context of a map; by default one thread, no observer of the progress, and no datasets."""

    threads: int = 1
    """Number of threads that a build may use; the result does not depend on it."""
    progress: Progress = Progress()
    """Receives the progress and states of the build, and returns the state to resume from."""
    rows: RowsOf = no_rows
    use: Use = Use()
    """Features that the frequency set is for; sets are judged, and may be learned, by the errors of these features."""
