"""Contents of requests to an index: vectors to store, options of searches and of searches for duplicates."""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from app.core.arrays import MAX_ID_BYTES, Identified, PostedRows
from app.core.datasets import Reference
from app.core.errors import InvalidInput
from app.core.model import Frozen

CheckCount = Callable[[int], None]
"""Function that receives the number of vectors in a request, and raises TooLarge if there are too many."""


class Batch(NamedTuple):
    """Vectors with ids and tags, all of them unchecked."""

    vectors: PostedRows | Identified | Reference
    ids: Sequence[object] | None
    """None if the ids are part of `vectors`, or if there are none."""
    tags: Sequence[object] | None


MOST_RESULTS = 1000
MOST_PAGED = 10_000
"""Most vectors that are found for a query on all pages."""
MOST_TAGS = 16
"""Most tags of a vector."""


Tag = Annotated[str, Field(min_length=1, max_length=MAX_ID_BYTES)]
_Tags = Annotated[tuple[Tag, ...], Field(max_length=100, fail_fast=True)]


class Filter(Frozen):
    """Which tags a vector must have."""

    all: _Tags = ()
    """Tags that it must have."""
    any: _Tags = ()
    """Tags of which it must have one, if there are any here."""
    none: _Tags = ()
    """Tags that it must not have."""


class BandsOptions(Frozen):
    """The similarities that bands of hashes should find."""

    hashes: Annotated[int, Field(ge=1, le=1 << 16)]
    """Hashes of a set or vector, of any MinHash."""
    min_similarity: Annotated[float, Field(gt=0, le=1)]
    """Similarity of pairs that are to be found: the rate at which their hashes agree."""
    recall: Annotated[float, Field(gt=0, lt=1)] = 0.95
    """Probability with which such a pair is to be found."""


class DuplicatesOptions(Frozen):
    """Which vectors count as duplicates, and what to tell of them."""

    min_similarity: Annotated[float, Field(gt=0, le=1)]
    """Similarity from which two vectors are duplicates."""
    answer: Literal["pairs", "clusters"] | None = None
    """`pairs`: all pairs. `clusters`: clusters with the vector to keep. Without it, the ids of each cluster alone."""
    exact: bool | None = None
    """Compare pairs exactly whose estimates are within three standard errors of `min_similarity`. Without it, where
    `answer` is given and the index keeps vectors.
    """
    linkage: Literal["single", "representative"] = "single"
    """`single`: the vectors of a cluster are linked by pairs, so two of them may be unlike. `representative`: each is
    that similar to the one to keep.
    """
    keep_which: Literal["first", "longest"] = "first"
    """Vector of a cluster to keep: the first id, whole numbers before strings; or the vector with the most entries that
    are not zero, if the index keeps vectors.
    """
    filter: Filter | None = None
    """Tags that the vectors must have; null for all vectors."""
    limit: Annotated[int, Field(ge=1000, le=1_000_000)] | None = None
    """Most pairs or clusters on a page of the answer; without it, all are on one page."""


class CountOptions(Frozen):
    """Which vectors to count."""

    filter: Filter | None = None
    """Tags that the vectors must have; null to count all."""


_Ids = Annotated[tuple[int | str, ...], Field(min_length=1, fail_fast=True)]


class DeleteOptions(Frozen):
    """Which vectors to delete: either `ids` or `filter`."""

    ids: _Ids | None = None
    """Ids of the vectors, each once."""
    filter: Filter | None = None
    """Tags that the vectors have; {} for all vectors, while lists that are all empty are refused."""

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.ids is None) == (self.filter is None):
            raise InvalidInput("expected either ids or a filter", "")
        if self.filter is not None and self.filter.model_fields_set and not any(dict(self.filter).values()):
            raise InvalidInput("expected a tag in the filter, got empty lists; {} deletes all vectors", "/filter")
        return self


class TagChanges(Frozen):
    """Tags to add to vectors, and tags to remove from them."""

    ids: _Ids
    """Ids of the vectors, each once."""
    add_tags: _Tags = ()
    """Tags that the vectors have from then on."""
    remove_tags: _Tags = ()
    """Tags that they do not have from then on, even if they are among `add_tags`."""


class SearchOptions(Frozen):
    """How many vectors to return for each query, and which."""

    k: Annotated[int, Field(ge=1, le=MOST_RESULTS)] = 10
    """Maximum number of vectors returned for each query."""
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
    cursor: Annotated[str, Field(pattern="^[0-9]{1,5}$")] | None = None
    """`next` of the page before: results then go on behind it. Vectors that come and go meanwhile move others, and an
    alias that moves goes on in the other index. Where vectors are compared exactly, the order is that of these
    similarities among each fifty or 5 k candidates.
    """
    filter: Filter | None = None
    """Tags that a vector must have; `tag` is short for one."""
    include: Annotated[tuple[Literal["tags"], ...], Field(max_length=1)] = ()
    """`tags`: results have the tags of the vectors."""
    scan: bool = False
    """Whether to look at the codes of all vectors, although the index has bands."""
    ids: _Ids | None = None
    """Ids of vectors of the index that are the queries, in place of `vectors`. A vector is not among its own results.
    """

    @property
    def wanted(self) -> Filter | None:
        """The tags that a vector must have; None for any."""
        if self.tag is None:
            return self.filter
        given = self.filter or Filter()
        return given.model_copy(update={"all": (*given.all, self.tag)})

    @property
    def first(self) -> int:
        """Number of results on the pages before."""
        return int(self.cursor or 0)

    @property
    def last(self) -> int:
        """Number of results on the pages up to this one."""
        return self.first + self.k


def compared_exactly(k: int) -> int:
    """Return the number of candidates to compare exactly for k results, if an index stores vectors: a multiple of k."""
    return max(5, -(-50 // k)) * k
