"""Searches of an index: what they cost, the vectors that they find, and their exact similarities."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import orjson

from app.core.arrays import Matrix, Rows, Whole, row_blocks
from app.core.errors import InvalidInput
from app.core.indexes import labels
from app.core.indexes.banding import Codes, Image
from app.core.indexes.labels import is_sparse, unpack_rows
from app.core.indexes.options import MOST_PAGED, SearchOptions, compared_exactly
from app.core.indexes.search import MOST_SCANNED, Chosen, Hits, nearest, search
from app.core.progress import Pause, no_pause
from app.services.errors import VectorNotFound
from app.services.index_images import id_at
from app.services.indexes import OpenIndex
from app.services.limits import Limits
from app.store.errors import Gone, StoreDamaged
from app.store.indexes import BLOCK, MOST_VECTORS, IndexStore

# Bytes of vectors that one call reads for exact comparison; and bytes of queries, packed.
_BYTES_AT_ONCE = 1 << 22
# Ids that one call looks up.
_IDS_AT_ONCE = 1000
# Bytes of vectors in the form in which they are compared exactly.
_BYTES_COMPARED = 1 << 26

# Rows of a batch that are compared with others together; by how many times more pairs, where that is still faster; and
# the cost of sorting a pair, in multiplications.
_ROWS_AT_ONCE, _MORE_AT_ONCE, _PER_PAIR = 32, 16, 100
# Most candidates of all queries that are looked at together, and by how many times more are compared exactly where none
# of those before is similar enough.
_MOST_HITS, _WIDER = 1 << 20, 16

Result = dict[str, Any]
"""Result of one query: the members of a `SearchResult`."""
Compare = Callable[[int, list[bytes]], Matrix]
"""Function that returns the exact similarities of a query, by its number, and vectors."""

# Costs, in multiplications: comparing a byte of codes; finding a bucket in a segment; finding a vector in a bucket;
# answering a query, whatever is found; reading from the store the vectors that are compared exactly with a query.
_PER_BYTE, _PER_BAND, _PER_BUCKET, _PER_QUERY, _PER_READING = 2, 128, 40, 200_000, 4_000_000
# A byte of vectors in the form in which they are compared: of vectors in that form, and of sparse ones made dense.
_PER_DENSE_BYTE, _PER_SPARSE_BYTE = 2, 16
# Reading and unpacking a stored vector, and a byte of it or of its id, which is slow for long vectors.
_PER_STORED, _PER_STORED_BYTE = 80_000, 256
# And looking at a set of tags, and at a byte of its text.
_PER_SET, _PER_TAG_BYTE = 10_000, 200
# Memory for a query, and for a vector that is found, as Python objects with an id and three numbers.
_BYTES_PER_QUERY, _BYTES_PER_RESULT = 512, 256
# Most bytes of one character of an id in JSON.
_CHARACTER_BYTES = 6


def operations_of_filter(image: Image) -> int:
    """Return what it costs to look at the tags of all vectors, in multiplications."""
    return _PER_SET * len(image.tags) + _PER_TAG_BYTE * sum(map(len, image.tags.values()))


def read_tags(mark: int, text: bytes | None) -> list[str] | None:
    """Return the tags of a vector; None if an earlier version has stored their mark alone."""
    return orjson.loads(text) if text else None if mark else []


class ExactComparison:
    """Exact comparison of rows with the vectors that an index keeps; `spend` counts the work, in multiplications."""

    def __init__(self, store: IndexStore, opened: OpenIndex, limits: Limits, spend: Callable[[int], None]) -> None:
        self._store, self._opened, self._limits, self._spend = store, opened, limits, spend

    def row(self, key: bytes) -> Rows:
        """Return the vector with an id; raise Gone if it has been removed: look again."""
        (stored,) = self._store.vectors(self._opened.manifest, [key], 0)
        if stored is None:
            raise Gone
        self._spend(_PER_STORED_BYTE * len(stored))
        return self._unpack_rows([stored])

    def similarities_of(self, key: bytes, ids: list[bytes]) -> Matrix:
        """Return the exact similarities of the vector with an id and others, as `similarities` does.

        It is read together with the others, or with the first of them, so that no upsert comes between. Raises Gone if
        it has been removed: look again.
        """
        found, row = np.full(1 + len(ids), np.nan), None
        for numbers, rows in self.parts([key, *ids]):
            if row is None and numbers[0] == 0:
                row = rows[:1]
            if row is None:
                break
            found[numbers] = self.compare(row, rows)[0]
        if row is None:
            raise Gone
        return found[1:]

    def similarities(self, row: Rows, ids: list[bytes]) -> Matrix:
        """Return the exact similarities of a row and vectors as stored now; NaN for vectors that no longer exist."""
        found = np.full(len(ids), np.nan)
        for numbers, rows in self.parts(ids):
            found[numbers] = self.compare(row, rows)[0]
        return found

    def parts(self, ids: list[bytes]) -> Iterator[tuple[list[int], Rows]]:
        """Yield the vectors with some ids, some at a time, each time with the numbers of their ids.

        Vectors that no longer exist are left out. Those of a time are all dense, or all sparse; the first vector is in
        the first part.
        """
        first = 0
        for stored in self._read(ids):
            parts = dict[bool, dict[int, bytes]]()
            for i, one in enumerate(stored, first):
                if one is not None:
                    parts.setdefault(is_sparse(one), {})[i] = one
            for there in parts.values():
                yield [*there], self._unpack_rows([*there.values()])
            first += len(stored)

    def lengths(self, ids: list[bytes]) -> list[int]:
        """Return how many entries of each vector, as stored now, are not zero; −1 for vectors that no longer exist."""
        every = (one for stored in self._read(ids) for one in stored)
        return [-1 if one is None else _n_entries(self._unpack_rows([one])) for one in every]

    def _read(self, ids: list[bytes]) -> Iterator[list[bytes | None]]:
        """Yield the stored vectors with some ids, some at a time."""
        first = 0
        while some := ids[first : first + MOST_VECTORS]:
            stored = self._store.vectors(self._opened.manifest, some, _BYTES_AT_ONCE)
            nbytes = sum(len(one or b"") + len(key) for one, key in zip(stored, some, strict=False))
            self._spend(_PER_STORED * len(stored) + _PER_STORED_BYTE * nbytes)
            first += len(stored)
            yield stored

    def compare(self, rows: Rows, others: Rows) -> Matrix:
        """Return the exact similarities of some rows and others, (n, m); TooLarge if two rows take too much memory."""
        kernel, found = self._opened.feature_map.kernel, np.empty((rows.shape[0], others.shape[0]))
        per_row, per_other = self._bytes_per_row(rows), self._bytes_per_row(others)
        self._limits.check_result(per_row + per_other)
        per_byte = _PER_DENSE_BYTE if isinstance(others, np.ndarray) or kernel.compares_sparse else _PER_SPARSE_BYTE
        for some in row_blocks(rows.shape[0], _BYTES_COMPARED // per_row):
            for part in row_blocks(others.shape[0], _BYTES_COMPARED // per_other):
                x, y = rows[some], others[part]
                self._spend(kernel.exact_operations(x, y) + per_byte * kernel.exact_bytes(x, y))
                found[some, part] = self._opened.feature_map.exact_gram(x, y)
        return found

    def _bytes_per_row(self, rows: Rows) -> int:
        """Return the bytes of a row in the form in which it is compared, on average."""
        return max(1, int(self._opened.feature_map.kernel.exact_bytes(rows, rows) // max(1, 2 * rows.shape[0])))

    def compare_near(self, rows: Rows, some: Whole, near: Whole) -> Matrix:
        """Return the exact similarities of some rows and rows near to each, (n, k).

        Both are given by their numbers; in `near`, (n, k), −1 stands for none, whose similarity is −∞.
        """
        found, is_there = np.full(near.shape, -np.inf), near >= 0
        every = np.unique(near[is_there])
        if len(some) * len(every) > _MORE_AT_ONCE * is_there.sum():
            for i in np.flatnonzero(is_there.any(axis=1)):
                there = near[i, is_there[i]]
                found[i, is_there[i]] = self.compare(rows[some[i] : some[i] + 1], rows[there])[0]
            return found
        at_once = max(len(some), _BYTES_AT_ONCE // self._bytes_per_row(rows))
        parts = [self.compare(rows[some], rows[every[part]]) for part in row_blocks(len(every), at_once)]
        if parts:
            found[is_there] = np.hstack(parts)[np.nonzero(is_there)[0], np.searchsorted(every, near[is_there])]
        return found

    def _unpack_rows(self, stored: list[bytes]) -> Rows:
        try:
            return unpack_rows(stored, self._opened.feature_map.spec.input_dim)
        except (ValueError, IndexError) as error:
            raise StoreDamaged(f"a vector of index {self._opened.manifest.name!r} is not what was kept") from error


def _slots_in(image: Image, keys: Sequence[bytes], now: Sequence[int]) -> list[int]:
    """Return the slots of ids in a snapshot, given those that they have now; Gone if it lacks one: look again."""
    found = dict(zip(keys, now, strict=True))
    moved = {key for key, slot in found.items() if slot >= image.size or id_at(image.ids, slot) != key}
    for number in reversed(range(len(image.ids))):  # a vector moves from the last slot
        if moved:
            there = {key: slot for slot, key in enumerate(labels.every(image.ids[number]), BLOCK * number)}
            found |= {key: there[key] for key in moved & there.keys()}
            moved -= there.keys()
    if moved:
        raise Gone
    return [found[key] for key in keys]


def _n_entries(rows: Rows) -> int:
    return int(np.count_nonzero(rows if isinstance(rows, np.ndarray) else rows.data))


class _Work:
    """Work of a search; apart from it, so that no cycle of references keeps its snapshot in memory."""

    def __init__(self, limits: Limits, pause: Pause) -> None:
        self._limits, self._pause, self._spent = limits, pause, 0

    def spend(self, operations: int, n: int = 0) -> None:
        """Count work, and pause; raise TooLarge if it is too much for one request."""
        self._pause()
        self._spent += operations
        self._limits.check_operations(self._spent, n)


class Search:
    """Search in a snapshot of an index.

    Args:
        own: the id of each query, if these are vectors of the index; a vector is not among its own results.
        among: which vectors may be found, (n,), if the options have no filter; None for all.
        pause: called between steps.
    """

    def __init__(
        self,
        store: IndexStore,
        limits: Limits,
        opened: OpenIndex,
        image: Image,
        options: SearchOptions,
        threads: int,
        as_text: bool = False,
        own: Sequence[bytes] = (),
        among: Chosen | None = None,
        pause: Pause = no_pause,
    ) -> None:
        self._pause = pause
        self._store, self._limits, self._threads, self._as_text = store, limits, threads, as_text
        self._own, self._among = own, among
        self._opened, self._image, self._options = opened, image, options
        keeps = opened.manifest.keep == "vectors"
        if options.exact and not keeps:
            raise InvalidInput(f"exact needs vectors, and index {opened.manifest.name!r} keeps codes alone", "/exact")
        self._exactly = keeps if options.exact is None else options.exact
        self._nbytes, self._spend = 0, _Work(limits, pause).spend
        self._comparison = ExactComparison(store, opened, limits, self._spend)
        self.has_more = False
        """Whether a query may have results behind those of this page."""
        self._full = list[int]()
        """Queries with as many candidates as are compared exactly."""
        # Candidates of a query, in the order of their codes, that the results of this page are taken from. If they are
        # compared exactly, several pages are taken from the same ones, so that none comes twice.
        at_once = compared_exactly(options.k) if self._exactly else options.k
        first = options.first // at_once * at_once
        self._window = slice(first, first + at_once)

    def results(self, rows: Rows) -> list[Result]:
        """Return the result of each row; raise what `IndexVectors.search` raises."""
        opened = self._opened
        self._spend(opened.feature_map.code_operations(rows), rows.shape[0])
        return self._find(
            rows.shape[0],
            lambda part: opened.codes.pack(opened.feature_map, rows[part], self._pause),
            lambda i, ids: self._comparison.similarities(rows[i : i + 1], ids),
        )

    def most_similar(self, rows: Rows, of: Whole, codes: Codes) -> dict[int, Result]:
        """Return the most similar vector of each query that has one, given its row, rows[of[i]], and its codes.

        The options have `k` = 1.
        Where vectors are compared exactly, more of them are until one is found, or none is left that may be similar.
        """
        found, own, left, width = dict[int, Result](), self._own, np.arange(len(codes)), self._window.stop
        while len(left):
            again = list[int]()
            for part in row_blocks(len(left), max(1, _MOST_HITS // width)):
                some = left[part]
                self._own, self._window = [own[i] for i in some], slice(0, width)
                self._nbytes, self._full = 0, []
                results = self._results_with(rows, of[some], codes[some])
                found |= {int(i): one for i, one in zip(some, results, strict=True) if one["ids"]}
                again += [int(some[i]) for i in self._full if int(some[i]) not in found]
            left, width = np.array(again, np.intp), _WIDER * width
        return found

    def _results_with(self, rows: Rows, of: Whole, codes: Codes) -> list[Result]:
        compare = self._comparison.similarities
        return self._find(len(codes), lambda part: codes[part], lambda i, ids: compare(rows[of[i] : of[i] + 1], ids))

    def alike(self, rows: Rows, of: Whole, codes: Codes) -> dict[int, tuple[int, dict[str, float]]]:
        """Find the queries, given as `most_similar` takes them, that are like an earlier one that is not such itself.

        Returns:
            For each, by its number: the number of the earlier row that is most similar, and numbers as in a result.
        """
        law, least_similarity = self._opened.codes, self._options.min_similarity or 0.0
        least = law.least(least_similarity, self._exactly)
        self._spend(_PER_BYTE * len(codes) * codes.size, len(codes))
        near = nearest(codes, codes, law.s, law.bits, 2, least=least, threads=self._threads)
        found = dict[int, tuple[int, dict[str, float]]]()
        is_kept = np.zeros(len(codes), bool)
        left = np.flatnonzero((near.counts >= 0).sum(axis=1) > 1)  # all others are near to themselves alone
        for part in row_blocks(len(left), _ROWS_AT_ONCE):
            some = left[part]
            others = np.append(np.flatnonzero(is_kept), some)
            self._spend(len(some) * len(others) * (_PER_BYTE * codes.shape[1] + _PER_PAIR))
            slots, counts = nearest(codes[some], codes, law.s, law.bits, len(others), others, least, self._threads)
            slots = np.where(slots < some[:, None], slots, -1)
            closeness = np.where(slots >= 0, counts, -np.inf)
            if self._exactly:
                closeness = self._comparison.compare_near(rows, of[some], np.where(slots >= 0, of[slots], -1))
                closeness[~(closeness >= least_similarity)] = -np.inf
            for i, those, close, count in zip(some.tolist(), slots, closeness, counts, strict=True):
                close[~is_kept[those]] = -np.inf
                best = int(np.argmax(close))
                is_kept[i] = close[best] == -np.inf
                if not is_kept[i]:
                    numbers = {"similarity": float(law.similarities(count[best])[0])}
                    found[i] = int(those[best]), numbers | ({"exact": float(close[best])} if self._exactly else {})
        return found

    def results_of(self, ids: Sequence[int | str]) -> list[Result]:
        """Return the result of each vector of the index; raise VectorNotFound for an id without one."""
        manifest = self._opened.manifest
        self._own = labels.encode_ids(ids, "/ids")

        def pack(part: slice) -> Codes:
            slots = list[int]()
            for some in row_blocks(part.stop, _IDS_AT_ONCE, part.start):
                found = self._store.slots(manifest, self._own[some])
                if -1 in found:
                    raise VectorNotFound(manifest.name, ids[some][found.index(-1)])
                slots += found
            # Codes of the snapshot, like those that they are compared with.
            return self._image.codes[_slots_in(self._image, self._own[part], slots)]

        return self._find(len(ids), pack, lambda i, others: self._comparison.similarities_of(self._own[i], others))

    def results_by(self, codes: Codes, rows: Sequence[Rows | None]) -> list[Result]:
        """Return the results of the queries that are `own`, given their codes, and their rows if these are compared."""
        compare = self._comparison.similarities
        return self._find(len(codes), lambda part: codes[part], lambda i, ids: compare(cast(Rows, rows[i]), ids))

    def _find(self, n: int, pack: Callable[[slice], Codes], compare: Compare) -> list[Result]:
        """Return the results of n queries, given functions for the codes of some and the exact comparison of one."""
        image, options, layout, opened = self._image, self._options, self._opened.layout, self._opened
        if options.first and options.last > MOST_PAGED:
            raise InvalidInput(f"at most {MOST_PAGED} vectors are found on all pages", "/cursor")
        k = self._window.stop + bool(self._own)
        wanted, mask = options.wanted, self._among
        if wanted is not None:
            self._spend(operations_of_filter(image))
            mask = labels.fitting(image.marks, image.tags, wanted)
        self._take(n * (_BYTES_PER_QUERY + min(k, image.size) * _BYTES_PER_RESULT))
        self._spend((_PER_QUERY + (_PER_READING if self._exactly and image.size else 0)) * n, n)
        bands = 0 if layout.banding is None else layout.banding.bands
        scanned = image.size * layout.code_bytes
        if bands and not options.scan:  # of the vectors that a mask allows, all may be scanned
            scanned = 0 if mask is None else min(MOST_SCANNED, int(mask.sum()) * layout.code_bytes)
        self._spend((_PER_BAND * bands * len(image.segments) + _PER_BYTE * scanned) * n, n)
        similarity = options.min_similarity
        least = 0 if similarity is None else opened.codes.least(similarity, self._exactly)
        found = []
        for part in row_blocks(n, _BYTES_AT_ONCE // (layout.code_bytes + 2 * bands)):
            # All pages of a search look at the same vectors, if the buckets hold enough for the first.
            enough = self._window.stop - self._window.start + bool(self._own)
            every = search(image, layout, pack(part), k, least, mask, options.scan, self._threads, enough=enough)
            found += [self._result(i, compare, hits) for i, hits in enumerate(every, part.start)]
        return found

    def _result(self, i: int, compare: Compare, hits: Hits) -> Result:
        """Return the result of query i. If the query is a vector of the index, it is left out."""
        layout, options = self._opened.layout, self._options
        if layout.banding is not None and not options.scan:
            self._spend(_PER_BUCKET * layout.banding.bands * hits.candidates)
        ids = [id_at(self._image.ids, slot) for slot in hits.slots.tolist()]
        every = [j for j, one in enumerate(ids) if not self._own or one != self._own[i]]
        chosen, ids = np.array(every[self._window], np.intp), [ids[j] for j in every[self._window]]
        similarity, error = self._opened.codes.similarities(hits.counts[chosen])
        numbers, order = {"similarity": similarity, "standard_error": error}, np.arange(len(chosen))
        if self._exactly:
            numbers["exact"] = exact = compare(i, ids)
            order = np.argsort(-exact, kind="stable")  # equal ones stay in the order of their codes
            order = order[exact[order] >= (options.min_similarity or -np.inf)]
        order = order[options.first - self._window.start : options.last - self._window.start]
        if len(every) >= self._window.stop:
            self._full.append(i)
        self.has_more |= len(order) == options.k or len(every) >= self._window.stop
        ids = [ids[j] for j in order]
        self._take(_CHARACTER_BYTES * sum(map(len, ids)))  # some ids are longer than everything else about a vector
        told: Result = {"ids": [labels.read(one, self._as_text) for one in ids]}
        told |= {name: one[order].tolist() for name, one in numbers.items()}
        if "tags" in options.include:
            marks = self._image.marks[hits.slots[chosen[order]]].tolist()
            texts = [self._image.tags.get(mark, b"") for mark in marks]
            self._take(sum(_BYTES_PER_QUERY + _CHARACTER_BYTES * len(text) for text in texts))
            told["tags"] = [read_tags(*one) for one in zip(marks, texts, strict=True)]
        return told | {"candidates": hits.candidates, "searched": "scan" if hits.scanned else "bands"}

    def _take(self, nbytes: int) -> None:
        """Count the memory of results; raise TooLarge if it is too much for one answer."""
        self._nbytes += nbytes
        self._limits.check_result(self._nbytes)
