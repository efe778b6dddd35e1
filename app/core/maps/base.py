"""What building a map gives, whatever its family."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
"""The frozen arrays of a map by name. They, not the spec, are the truth from then on."""


class Built(NamedTuple):
    """Frozen arrays, how much they make, and what the client should know about them."""

    arrays: Arrays
    n_frequencies: int
    n_output: int
    warnings: tuple[str, ...]
    report: dict[str, float] | None = None
    """Figures of a set that was learned: `objective_start` and `objective_end`, `weight_sum`, `points_kept` and, where
    rows were at hand, `gram_error`; None for all others."""
