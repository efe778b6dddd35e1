"""Vectors that are to be put into an index, as they came."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from app.core.arrays import PostedRows
from app.core.datasets import Reference
from app.core.ids import Identified

CheckCount = Callable[[int], None]
"""Is told how many vectors came, and raises TooLarge where they are too many."""


class Batch(NamedTuple):
    """Vectors with ids and tags, none of which has been looked at."""

    vectors: PostedRows | Identified | Reference
    ids: Sequence[object] | None
    """None where they come with the vectors, or not at all."""
    tags: Sequence[object] | None
