"""The vectors of an index that are nearest to queries: among all, or among those that share a bucket."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Whole
from app.core.indexes.banding import MANY, Candidates, Codes, Words, bucket_words
from app.core.indexes.image import Image, Layout
from app.core.indexes.scanning import nearest
from app.core.progress import Pause, no_pause


class Hits(NamedTuple):
    """What is found for a query, best first."""

    slots: Whole
    counts: Whole
    """In how many codes they agree with the query."""
    candidates: int
    """How many vectors were compared with it."""


def search(
    image: Image,
    layout: Layout,
    queries: Codes,
    k: int,
    least: int = 0,
    mark: np.uint64 | None = None,
    threads: int = 1,
    pause: Pause = no_pause,
) -> Iterator[Hits]:
    """The k vectors that agree in the most codes with each query, packed codes (q, code bytes), one query at a time.

    A query whose buckets have many of the vectors is compared with all of them, in their order, which takes less time.

    Args:
        image: the index.
        layout: how it keeps its vectors.
        queries: their codes.
        k: how many are wanted.
        least: in how many codes they must agree.
        mark: of the tag that they must have; None for any.
        threads: how many may be used.
        pause: called between steps.
    """
    mask: NDArray[np.bool_] | None = None if mark is None else image.marks == mark
    given = (image.codes, layout.s, layout.bits, k)
    n = image.size if mask is None else int(mask.sum())
    if layout.banding is None:
        found = nearest(queries, *given, mask=mask, least=least, threads=threads, pause=pause)
        yield from (_hits(slots, counts, n) for slots, counts in zip(found.slots, found.counts, strict=True))
        return
    candidates, words = Candidates(image.segments, image.size), bucket_words(queries, layout.bits, layout.banding)
    for i in range(len(queries)):
        slots = _slots(candidates, np.ascontiguousarray(words[:, i]), image.size)
        if slots is not None and mask is not None:
            slots = slots[mask[slots]]
        found = nearest(queries[i : i + 1], *given, slots=slots, mask=mask, least=least, threads=threads, pause=pause)
        yield _hits(found.slots[0], found.counts[0], n if slots is None else len(slots))


def _slots(candidates: Candidates, words: Words, size: int) -> Whole | None:
    """The slots in the buckets of a query, whose words are (bands,); None for all slots, where these are many."""
    buckets = candidates.buckets(words)
    if buckets.size > size:
        return None
    slots = candidates.of(buckets)
    return None if len(slots) * MANY > size else slots


def _hits(slots: Whole, counts: Whole, candidates: int) -> Hits:
    there = slots >= 0
    return Hits(slots[there], counts[there], candidates)
