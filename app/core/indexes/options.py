"""What is said of an index in requests: vectors to be put into it, searches, and searches for duplicates."""

from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from app.core.arrays import PostedRows
from app.core.datasets import Reference
from app.core.ids import MAX_ID_BYTES, Identified
from app.core.model import Frozen

CheckCount = Callable[[int], None]
"""Is told how many vectors came, and raises TooLarge where they are too many."""


class Batch(NamedTuple):
    """Vectors with ids and tags, none of which has been looked at."""

    vectors: PostedRows | Identified | Reference
    ids: Sequence[object] | None
    """None where they come with the vectors, or not at all."""
    tags: Sequence[object] | None


MOST_RESULTS = 1000


class DuplicatesOptions(Frozen):
    """Which vectors are duplicates."""

    min_similarity: Annotated[
        float, Field(gt=0, le=1, description="The estimated similarity of two vectors that makes them of one cluster.")
    ]


class SearchOptions(Frozen):
    """How many vectors are wanted for each query, and which."""

    k: Annotated[int, Field(ge=1, le=MOST_RESULTS, description="Most vectors for each query.")] = 10
    min_similarity: (
        Annotated[float, Field(ge=0, le=1, description="The similarity that a vector must have to be found.")] | None
    ) = None
    exact: (
        Annotated[
            bool,
            Field(
                description="Compare the best candidates exactly, five for each that is wanted and at least fifty, and "
                "go by that. Without it, where the index keeps vectors."
            ),
        ]
        | None
    ) = None
    tag: (
        Annotated[str, Field(min_length=1, max_length=MAX_ID_BYTES, description="The tag that a vector must have.")]
        | None
    ) = None

    @property
    def compared_exactly(self) -> int:
        """How many candidates are compared exactly, where some are."""
        return compared_exactly(self.k)


def compared_exactly(k: int) -> int:
    """How many candidates are compared exactly where vectors are kept and k are wanted."""
    return max(50, 5 * k)
