"""Jobs that find the duplicates in an index: pairs of vectors, or clusters of them."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import orjson
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from app.core.arrays import Matrix, Whole
from app.core.errors import InvalidInput
from app.core.indexes import labels
from app.core.indexes.banding import Image
from app.core.indexes.duplicates import BYTES_PER_ROW, Duplicates, duplicates
from app.core.indexes.options import DuplicatesOptions
from app.core.indexes.search import nearest
from app.core.model import Described
from app.core.progress import Progress
from app.jobs.jobs import Jobs
from app.jobs.record import JobRecord
from app.services.index_images import Images, id_at
from app.services.index_search import ExactComparison
from app.services.indexes import Indexes, OpenIndex
from app.services.limits import Limits
from app.store.errors import Gone
from app.store.indexes import IndexStore

DUPLICATES = "duplicates"
# Memory for an id: as stored, as a Python object, and in the answer.
_BYTES_PER_ID = 192
# Most pairs that a job looks at one by one, beside the search for clusters.
_MOST_PAIRS = 1_000_000
# Most bytes of the ids of all pairs.
_MOST_BYTES_OF_PAIRS = 1 << 26
# Pairs, or clusters, that are written at a time.
_WRITTEN_AT_ONCE = 100


class Pair(Described):
    """Two vectors that are similar."""

    a: int | str
    """Id of one."""
    b: int | str
    """Id of the other."""
    similarity: float
    """Their similarity as estimated from codes."""
    exact: float | None = None
    """Their exact similarity; present only if they were compared exactly."""


class Cluster(Described):
    """Vectors that are similar."""

    keep: int | str
    """Id of the vector to keep."""
    ids: list[int | str]
    """Ids of all vectors of the cluster, at least two; that of the one to keep is the first."""
    similarity_to_kept: list[float]
    """Similarity of each to the one to keep, which may be as estimated from codes."""


class DuplicatesAnswer(Described):
    """The duplicates in an index."""

    clusters: list[list[int | str] | Cluster] | None = None
    """Clusters of at least two vectors, large ones first. Without `answer` in the request, the ids of each cluster, in
    order. With single linkage, two vectors of a cluster may be less similar, if others connect them.
    """
    pairs: list[Pair] | None = None
    """All pairs; present only for `"answer": "pairs"`."""
    size: int
    """Number of vectors in the index whose tags fit."""
    min_similarity: float
    """Similarity from which pairs count as duplicates, as asked."""
    standard_error: float | None
    """Standard error of similarity estimates at `min_similarity`: pairs within a few standard errors of it may be on
    either side. It is 0 for a similarity of 1, although pairs some 3/s below 1 can be found too, s being the number of
    hashes.
    """
    compared: int
    """Number of comparisons of two vectors. Pairs that were not compared are certain to be less similar, by their
    codes, or were in one cluster already.
    """
    next: str | None
    """Cursor of the next page of the job's result; null on the last one."""


class IndexDuplicates(NamedTuple):
    """Finds duplicates in indexes by jobs, each on `threads` threads."""

    store: IndexStore
    indexes: Indexes
    images: Images
    jobs: Jobs
    limits: Limits
    threads: int

    def submit(self, name: str, options: DuplicatesOptions, owner: str = "") -> JobRecord:
        """Submit a job that finds the duplicates in an index; the job counts towards `owner`'s quota.

        Raises:
            IndexNotFound: there is no such index.
            InvalidInput: the index keeps codes alone, and the options need vectors.
            TooLarge: the work takes more memory than a job may.
            TooManyJobs: the job queue is full.
            QuotaExceeded: there is no room for the job.
        """
        opened = self.indexes.open(name)
        for member, needs_vectors in (("exact", options.exact), ("keep_which", options.keep_which == "longest")):
            if needs_vectors and opened.manifest.keep != "vectors":
                raise InvalidInput(f"{member} needs vectors, and index {name!r} keeps codes alone", f"/{member}")
        per_vector = BYTES_PER_ROW + _BYTES_PER_ID + opened.without_bands().layout.bytes_per_vector
        self.limits.check_job(opened.state.size * per_vector)
        name = opened.manifest.name
        payload = {"index": name, "token": opened.manifest.token, "options": options.model_dump_json()}
        return self.jobs.submit(DUPLICATES, payload, subject={"index": name}, owner=owner)

    def answer(self, payload: Mapping[str, Any], progress: Progress) -> list[bytes]:
        """Compute the pages of the answer of a job, as JSON.

        Raises:
            InvalidInput: the index no longer exists, or more pairs are similar than a job looks at.
        """
        options = DuplicatesOptions.model_validate_json(payload["options"])

        def find(opened: OpenIndex, image: Image) -> list[bytes]:
            compared = ExactComparison(self.store, opened, self.limits, lambda _: None)
            return _Finder(opened, image, options, compared, self.threads, progress).pages()

        return self.images.examine(self.indexes, payload, find, needs_bands=False)


class _Near(NamedTuple):
    """Rows that are duplicates of one row, (m,)."""

    rows: Whole
    similarity: Matrix
    exact: Matrix
    """NaN for rows that were not compared exactly."""

    @property
    def best(self) -> Matrix:
        """The exact similarities, or the estimates where there are none."""
        return np.where(np.isnan(self.exact), self.similarity, self.exact)


class _Finder:
    """Search for the duplicates among the vectors of a snapshot that fit the options; these are its rows."""

    def __init__(
        self,
        opened: OpenIndex,
        image: Image,
        options: DuplicatesOptions,
        comparison: ExactComparison,
        threads: int,
        progress: Progress,
    ) -> None:
        self._opened, self._image, self._options = opened, image, options
        self._comparison, self._threads, self._progress = comparison, threads, progress
        wanted = options.filter
        mask = None if wanted is None else labels.fitting(image.marks, image.tags, wanted)
        self._slots = np.arange(image.size) if mask is None else np.flatnonzero(mask)
        self._rows = image.codes if mask is None else np.ascontiguousarray(image.codes[self._slots])
        keeps = opened.manifest.keep == "vectors"
        self._exactly = bool(options.answer and keeps) if options.exact is None else options.exact
        self._least = max(1, opened.codes.least(options.min_similarity, self._exactly))
        # Rows that agree in so many codes are duplicates without exact comparison.
        self._sure = 0
        if self._exactly and options.linkage == "single":
            self._sure = opened.codes.surely(options.min_similarity)
        elif self._exactly:  # the most similar one is wanted
            self._sure = opened.codes.s + 1
        self._n_pairs, self._nbytes = 0, 0

    def pages(self) -> list[bytes]:
        """Return the pages of the answer as JSON."""
        options, law = self._options, self._opened.codes
        found = duplicates(self._rows, law.s, law.bits, self._least, self._threads, self._progress)
        _, errors = law.similarities(np.array([law.least(options.min_similarity, is_decided_later=False)]))
        told = {
            "size": len(self._slots),
            "min_similarity": options.min_similarity,
            "standard_error": float(errors[0]),
            "compared": found.compared,
        }
        every: Iterator[Any]
        if options.answer == "pairs":
            name, every = b"pairs", self._pairs(found.clusters())
        else:
            name, every = b"clusters", map(self._cluster, self._split(found))
        pages = [*iter(lambda: _list(islice(every, options.limit)), b"")] or [b""]
        cursors = [*map(str, range(1, len(pages))), None]
        ends = [orjson.dumps(told | {"next": cursor})[1:] for cursor in cursors]
        return [b'{"%b":[%b],%b' % (name, page, end) for page, end in zip(pages, ends, strict=True)]

    def _pairs(self, clusters: Iterable[Whole]) -> Iterator[dict[str, Any]]:
        for rows in clusters:
            for i, near in self._near(rows):
                a = self._key(i)
                for j, similarity, exact in zip(*(one.tolist() for one in near), strict=True):
                    b = self._key(j)
                    self._nbytes += len(a) + len(b)
                    if self._nbytes > _MOST_BYTES_OF_PAIRS:
                        raise InvalidInput("the ids of all pairs take too many bytes for an answer", "/answer")
                    pair = {"a": labels.read(a), "b": labels.read(b), "similarity": similarity}
                    yield pair if np.isnan(exact) else pair | {"exact": exact}

    def _near(self, rows: Whole) -> Iterator[tuple[int, _Near]]:
        """Yield each row with those behind it that are its duplicates."""
        for at, i in enumerate(rows[:-1].tolist()):
            near = self._duplicates_of(i, rows[at + 1 :])
            self._n_pairs += len(near.rows)
            if self._n_pairs > _MOST_PAIRS:
                detail = f"more than {_MOST_PAIRS} pairs are that similar: ask for clusters by representatives"
                raise InvalidInput(detail, "/min_similarity")
            yield i, near

    def _duplicates_of(self, i: int, others: Whole) -> _Near:
        law = self._opened.codes
        near = nearest(self._rows[i : i + 1], self._rows, law.s, law.bits, len(others), others, self._least)
        there = near.slots[0] >= 0
        rows, counts = near.slots[0][there], near.counts[0][there]
        exact = np.full(len(rows), np.nan)
        if (unsure := np.flatnonzero(counts < self._sure)).size:
            exact[unsure] = self._compare(i, rows[unsure])
        fits = (counts >= self._sure) | (exact >= self._options.min_similarity)
        return _Near(rows[fits], law.similarities(counts[fits])[0], exact[fits])

    def _split(self, found: Duplicates) -> list[list[tuple[int, float]]]:
        """Return clusters as they are wanted: the row to keep, then others, each with its similarity to that."""
        clusters: list[list[tuple[int, float]]] = []
        for rows in found.clusters():
            if self._options.linkage == "representative":
                clusters += self._by_representatives(self._in_order(rows))
            else:
                clusters += map(self._with_similarities, self._linked(rows) if self._exactly else [rows])
        return sorted(clusters, key=len, reverse=True)

    def _by_representatives(self, rows: Whole) -> list[list[tuple[int, float]]]:
        """Let each row, in order, join the most similar of the rows to keep, or be kept itself."""
        clusters: dict[int, list[tuple[int, float]]] = {}
        kept = np.empty(len(rows), np.int64)
        for i in rows.tolist():
            near = self._duplicates_of(i, kept[: len(clusters)]) if clusters else None
            if near is not None and len(near.rows):
                best = int(np.argmax(near.best))
                clusters[int(near.rows[best])].append((i, float(near.best[best])))
            else:
                kept[len(clusters)] = i
                clusters[i] = [(i, 1.0)]
        return [one for one in clusters.values() if len(one) > 1]

    def _linked(self, rows: Whole) -> list[Whole]:
        """Return the parts of a cluster that are linked by duplicates, once these are compared exactly."""
        edges = [(i, j) for i, near in self._near(rows) for j in near.rows.tolist()]
        if not edges:
            return []
        a, b = np.searchsorted(rows, np.array(edges)).T
        _, parts = connected_components(coo_array((np.ones(len(a)), (a, b)), shape=(len(rows),) * 2), directed=False)
        return [rows[parts == part] for part in np.flatnonzero(np.bincount(parts) > 1)]

    def _with_similarities(self, rows: Whole) -> list[tuple[int, float]]:
        """Return a cluster in order, with the similarity of each row to the first, which is to be kept."""
        rows = self._in_order(rows)
        if self._options.answer is None:
            return [(i, 1.0) for i in rows.tolist()]
        law = self._opened.codes
        near = nearest(self._rows[rows[0], None], self._rows, law.s, law.bits, len(rows), rows)
        estimates = dict(zip(near.slots[0].tolist(), law.similarities(near.counts[0])[0].tolist(), strict=True))
        similarity = np.array([estimates[i] for i in rows.tolist()])
        if self._exactly:
            exact = self._compare(rows[0], rows)
            similarity = np.where(np.isnan(exact), similarity, exact)
        return [*zip(rows.tolist(), [1.0, *similarity[1:].tolist()], strict=True)]

    def _compare(self, i: int, rows: Whole) -> Matrix:
        """Return exact similarities of a row and others; NaN where there is no vector any more."""
        with suppress(Gone):
            return self._comparison.similarities_of(self._key(i), [self._key(j) for j in rows])
        return np.full(len(rows), np.nan)

    def _in_order(self, rows: Whole) -> Whole:
        """Return rows in the order in which they are to be kept."""
        keys = [self._key(i) for i in rows.tolist()]
        ids = [labels.read(key) for key in keys]
        lengths = self._comparison.lengths(keys) if self._options.keep_which == "longest" else [0] * len(keys)
        return rows[sorted(range(len(keys)), key=lambda at: (-lengths[at], isinstance(ids[at], str), ids[at]))]

    def _cluster(self, members: list[tuple[int, float]]) -> Any:
        ids = [labels.read(self._key(i)) for i, _ in members]
        if self._options.answer is None:
            return ids
        return {"keep": ids[0], "ids": ids, "similarity_to_kept": [similarity for _, similarity in members]}

    def _key(self, row: int) -> bytes:
        return id_at(self._image.ids, int(self._slots[row]))


def _list(items: Iterator[Any]) -> bytes:
    """Return the items of a list as JSON, without brackets.

    Some are written at a time, as all ids of an index take much memory as Python objects, and each text has kilobytes
    besides its own.
    """
    return b",".join(iter(lambda: orjson.dumps([*islice(items, _WRITTEN_AT_ONCE)])[1:-1], b""))
