"""The vectors of an index that are nearest to queries: among all, or among those that share a bucket."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Whole
from app.core.indexes.banding import MANY, Candidates, Codes, bucket_words
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
        buckets = candidates.buckets(np.ascontiguousarray(words[:, i]))
        slots = None
        if buckets.size <= image.size:
            slots = candidates.of(buckets)
            slots = None if len(slots) * MANY > image.size else slots if mask is None else slots[mask[slots]]
        found = nearest(queries[i : i + 1], *given, slots=slots, mask=mask, least=least, threads=threads, pause=pause)
        yield _hits(found.slots[0], found.counts[0], n if slots is None else len(slots))


def _hits(slots: Whole, counts: Whole, candidates: int) -> Hits:
    there = slots >= 0
    return Hits(slots[there], counts[there], candidates)
