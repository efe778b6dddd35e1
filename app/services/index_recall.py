"""Jobs that measure the recall of an index: what its searches find of what they should."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from app.core.arrays import Matrix, Rows, Whole, row_blocks
from app.core.errors import InvalidInput
from app.core.indexes import labels
from app.core.indexes.banding import Image, bucket_words
from app.core.indexes.options import MOST_RESULTS, SearchOptions, compared_exactly
from app.core.indexes.search import nearest, search
from app.core.model import Described, Frozen
from app.core.progress import Progress
from app.jobs.jobs import Jobs
from app.jobs.record import JobRecord
from app.services.index_images import Images
from app.services.index_search import ExactComparison, Result, Search
from app.services.indexes import Indexes, OpenIndex
from app.services.limits import Limits
from app.store.errors import Gone
from app.store.indexes import IndexStore

RECALL = "recall"
# A standard error takes as many.
_FEWEST_QUERIES = 2
# Queries of one search, and memory for a vector: its id as an object, and its numbers.
_QUERIES_AT_ONCE, _BYTES_PER_VECTOR = 10, 256
# Memory of the row of a query, for each byte that the index takes for a vector.
_ROW_BYTES = 4
# Relative rounding errors of two ways to compute a similarity.
_ROUNDING = 1e-9


class RecallOptions(Frozen):
    """Searches by which recall is measured."""

    k: Annotated[int, Field(ge=1, le=100)] = 10
    """Number of nearest vectors that a search is to find."""
    queries: Annotated[int, Field(ge=_FEWEST_QUERIES, le=1000)] = 100
    """Number of vectors of the index that are the queries, chosen at random. A vector is not among its own results."""
    seed: Annotated[int, Field(ge=0, lt=1 << 64)] = 0
    """Seed of the choice."""


class LostBy(Described):
    """Shares of the nearest vectors that searches do not find, by what loses them."""

    bands: float
    """They share no band with the query."""
    k: float
    """They share one, and their codes put them too far behind; a search for 1,000 vectors would find them."""
    codes: float
    """They share one, and their codes put them behind even those of such a search: the map has too few hashes."""


class RecallAnswer(Described):
    """Recall of an index."""

    recall: float
    """Share of the k nearest vectors that a search finds, on average over the queries. It is lower if many vectors are
    replaced while it is measured, as codes are those of its beginning.
    """
    standard_error: float
    """Standard error of `recall`, from its scatter over the queries."""
    lost_by: LostBy
    """What loses the others; all shares and `recall` add up to 1."""
    compared_with: str
    """`vectors`: the nearest vectors are those of the exact similarities. `codes`: the index keeps codes alone, so that
    they are those that a scan of all codes finds; what codes lose is not known, and counts as 0.
    """
    candidates: float
    """Vectors that a query is compared with, on average."""
    queries: int
    """Number of queries."""
    size: int
    """Number of vectors in the index."""


class IndexRecall(NamedTuple):
    """Measures recall by jobs, each on `threads` threads."""

    store: IndexStore
    indexes: Indexes
    images: Images
    jobs: Jobs
    limits: Limits
    threads: int

    def submit(self, name: str, options: RecallOptions, owner: str = "") -> JobRecord:
        """Submit a job that measures the recall of an index; the job counts towards `owner`'s quota.

        Raises:
            IndexNotFound: there is no such index.
            TooLarge: the work takes more memory than a job may.
            TooManyJobs: the job queue is full.
            QuotaExceeded: there is no room for the job.
        """
        opened = self.indexes.open(name)
        size, nbytes = max(1, opened.state.size), opened.state.nbytes
        of_queries = min(options.queries, size) * _ROW_BYTES * (nbytes // size)
        self.limits.check_job(size * (_BYTES_PER_VECTOR + opened.layout.bytes_per_vector) + of_queries)
        index = opened.manifest.name
        payload = {"index": index, "token": opened.manifest.token, "options": options.model_dump_json()}
        return self.jobs.submit(RECALL, payload, subject={"index": index}, owner=owner)

    def answer(self, payload: Mapping[str, Any], progress: Progress) -> bytes:
        """Return a `RecallAnswer` as JSON; InvalidInput if the index is gone, or has too few vectors."""
        options = RecallOptions.model_validate_json(payload["options"])

        def measure(opened: OpenIndex, image: Image) -> RecallAnswer:
            if image.size <= options.k:
                raise InvalidInput(f"the index has {image.size} vectors; k + 1 are needed at least", "/k")
            return _Audit(self, opened, image, options, progress).answer()

        told = self.images.examine(self.indexes, payload, measure)
        return told.model_dump_json().encode()


class _Audit:
    """Measurement of recall on a snapshot of an index."""

    def __init__(
        self, of: IndexRecall, opened: OpenIndex, image: Image, options: RecallOptions, progress: Progress
    ) -> None:
        self._of, self._opened, self._image, self._options, self._progress = of, opened, image, options, progress
        self._comparison = ExactComparison(of.store, opened, of.limits, lambda _: None)
        self._is_exact = opened.manifest.keep == "vectors"
        self._keys = [*chain.from_iterable(map(labels.every, image.ids))][: image.size]
        n = min(options.queries, image.size)
        chosen = np.sort(np.random.default_rng(options.seed).choice(image.size, n, replace=False)).tolist()
        # Read once: what is deleted while recall is measured stays a query.
        rows = {slot: self._row(self._keys[slot]) for slot in chosen} if self._is_exact else dict.fromkeys(chosen)
        self._rows = {slot: row for slot, row in rows.items() if row is not None or not self._is_exact}
        self._queries = np.array([*self._rows])
        if len(self._queries) < _FEWEST_QUERIES:
            raise Gone

    def _row(self, key: bytes) -> Rows | None:
        with suppress(Gone):
            return self._comparison.row(key)
        return None

    def answer(self) -> RecallAnswer:
        """Return the recall, and what loses the rest."""
        results, (truth, similarity) = self._search(), self._nearest() if self._is_exact else self._nearest_by_codes()
        k, n = self._options.k, len(self._queries)
        found, lost = np.empty(n), dict.fromkeys(LostBy.model_fields, 0)
        for i, result in enumerate(results):
            numbers = np.array(result["exact" if self._is_exact else "similarity"])
            least = similarity[i, -1] - _ROUNDING * abs(similarity[i, -1])
            n_found = min(k, int((numbers >= least).sum()))
            there = {*labels.encode_ids(result["ids"], "")}
            missing = [slot for slot in truth[i].tolist() if self._keys[slot] not in there][: k - n_found]
            found[i] = n_found / k
            for by in self._losses(self._queries[i], missing):
                lost[by] += 1
        return RecallAnswer(
            recall=float(found.mean()),
            standard_error=float(found.std(ddof=1) / np.sqrt(n)),
            lost_by=LostBy(**{by: count / (n * k) for by, count in lost.items()}),
            compared_with="vectors" if self._is_exact else "codes",
            candidates=float(np.mean([one["candidates"] for one in results])),
            queries=n,
            size=self._image.size,
        )

    def _losses(self, query: int, missing: list[int]) -> Iterator[str]:
        """Yield what loses each of some vectors that a query does not find, given their slots."""
        if not missing:
            return
        image, layout = self._image, self._opened.layout
        most = 1 + (compared_exactly(MOST_RESULTS) if self._is_exact else MOST_RESULTS)  # with the query itself
        (hits,) = search(image, layout, image.codes[query, None], most, threads=self._of.threads)
        found = {*hits.slots.tolist()}
        for slot in missing:
            if slot in found:
                yield "k"
            elif layout.banding is None or hits.scanned:
                yield "codes"
            else:
                own, other = bucket_words(image.codes[[query, slot]], layout.s, layout.bits, layout.banding).T
                yield "codes" if (own == other).any() else "bands"

    def _search(self) -> list[Result]:
        """Return the results of the queries, as a client gets them."""
        found, of = list[Result](), self._of
        for part in row_blocks(len(self._queries), _QUERIES_AT_ONCE):
            slots, options = self._queries[part], SearchOptions(k=self._options.k)
            own = [self._keys[slot] for slot in slots]
            search = Search(of.store, of.limits, self._opened, self._image, options, of.threads, own=own)
            found += search.results_by(self._image.codes[slots], [self._rows[slot] for slot in slots])
            self._progress.checkpoint(lambda: b"")
        return found

    def _nearest_by_codes(self) -> tuple[Whole, Matrix]:
        """Return the nearest vectors of each query by all codes, (n, k), and their similarities."""
        law, codes, k = self._opened.codes, self._image.codes, self._options.k
        near = nearest(codes[self._queries], codes, law.s, law.bits, k + 1, threads=self._of.threads)
        slots, counts = np.empty((2, len(self._queries), k), np.int64)
        for i, query in enumerate(self._queries):
            others = np.flatnonzero(near.slots[i] != query)[:k]
            slots[i], counts[i] = near.slots[i, others], near.counts[i, others]
        return slots, law.similarities(counts.reshape(-1))[0].reshape(counts.shape)

    def _nearest(self) -> tuple[Whole, Matrix]:
        """Return the nearest vectors of each query by exact similarities, (n, k), the nearest first, and these."""
        k, n = self._options.k, len(self._queries)
        slots, best = np.zeros((n, k), np.int64), np.full((n, k), -np.inf)
        rows = [row for row in self._rows.values() if row is not None]
        for numbers, others in self._comparison.parts(self._keys):
            part = np.array(numbers)
            for i, row in enumerate(rows):
                every = np.where(part == self._queries[i], -np.inf, self._comparison.compare(row, others)[0])
                both, at = np.concatenate([best[i], every]), np.concatenate([slots[i], part])
                order = np.argsort(-both, kind="stable")[:k]
                best[i], slots[i] = both[order], at[order]
            self._progress.report(int(part[-1]) + 1, len(self._keys))
            self._progress.checkpoint(lambda: b"")
        return slots, best
