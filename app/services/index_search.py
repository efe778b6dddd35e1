"""Searches of an index: what they cost, the vectors that they find, and their exact similarities."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import orjson

from app.core.arrays import Matrix, Rows, row_blocks
from app.core.errors import InvalidInput
from app.core.indexes import labels
from app.core.indexes.banding import Codes, Image
from app.core.indexes.labels import is_sparse, unpack_rows
from app.core.indexes.options import MOST_PAGED, SearchOptions, compared_exactly
from app.core.indexes.search import MOST_SCANNED, Hits, search
from app.services.errors import VectorNotFound
from app.services.indexes import OpenIndex
from app.services.limits import Limits
from app.store.errors import Gone, StoreDamaged
from app.store.indexes import MARK_BYTES, IndexStore

# Bytes of vectors that one call reads for exact comparison; and bytes of queries, packed.
_BYTES_AT_ONCE = 1 << 22
# Ids that one call looks up.
_IDS_AT_ONCE = 1000
# Bytes of vectors in the form in which they are compared exactly.
_BYTES_COMPARED = 1 << 26

Result = dict[str, Any]
"""Result of one query: the members of a `SearchResult`."""

# Costs, in multiplications: comparing a byte of codes; finding a bucket in a segment; finding a vector in a bucket;
# answering a query, whatever is found; reading from the store the vectors that are compared exactly with a query; and a
# byte of sparse vectors in the form in which they are compared, which may be dense.
_PER_BYTE, _PER_BAND, _PER_BUCKET, _PER_QUERY, _PER_READING, _PER_DENSE_BYTE = 2, 128, 40, 200_000, 4_000_000, 16
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


class Search:
    """Search in a snapshot of an index."""

    def __init__(
        self,
        store: IndexStore,
        limits: Limits,
        opened: OpenIndex,
        image: Image,
        options: SearchOptions,
        threads: int,
        as_text: bool,
    ) -> None:
        self._store, self._limits, self._threads, self._as_text = store, limits, threads, as_text
        self._own: list[bytes] = []
        self._opened, self._image, self._options = opened, image, options
        keeps = opened.manifest.keep == "vectors"
        if options.exact and not keeps:
            raise InvalidInput(f"exact needs vectors, and index {opened.manifest.name!r} keeps codes alone", "/exact")
        self._exactly = keeps if options.exact is None else options.exact
        self._spent, self._nbytes = 0, 0

    def results(self, rows: Rows) -> list[Result]:
        """Return the result of each row; raise what `IndexVectors.search` raises."""
        opened = self._opened
        self._spend(opened.feature_map.operations(rows), rows.shape[0])
        return self._find(
            rows.shape[0], lambda part: opened.codes.pack(opened.feature_map, rows[part]), lambda i: rows[i : i + 1]
        )

    def results_of(self, ids: Sequence[int | str]) -> list[Result]:
        """Return the result of each vector of the index; raise VectorNotFound for an id without one."""
        manifest = self._opened.manifest
        self._own = labels.encode_ids(ids, "/ids")

        def pack(part: slice) -> Codes:
            codes = bytearray()
            for some in row_blocks(part.stop, _IDS_AT_ONCE, part.start):
                found = self._store.rows(manifest, self._own[some])
                if None in found:
                    raise VectorNotFound(manifest.name, ids[some][found.index(None)])
                codes += b"".join(one.row[MARK_BYTES:] for one in found if one is not None)
            return np.frombuffer(codes, np.uint8).reshape(part.stop - part.start, -1)

        def row_of(i: int) -> Rows:
            (stored,) = self._store.vectors(manifest, self._own[i : i + 1], 0)
            if stored is None:
                raise Gone  # it was there for its codes: look again
            self._spend(_PER_STORED_BYTE * len(stored))
            return self._unpack_rows([stored])

        return self._find(len(ids), pack, row_of)

    def _find(self, n: int, pack: Callable[[slice], Codes], row_of: Callable[[int], Rows]) -> list[Result]:
        """Return the results of n queries, given functions for the codes of some and for the row of one."""
        image, options, layout, opened = self._image, self._options, self._opened.layout, self._opened
        if options.first and options.last > MOST_PAGED:
            raise InvalidInput(f"at most {MOST_PAGED} vectors are found on all pages", "/cursor")
        k = options.first + (compared_exactly(options.k) if self._exactly else options.k) + (options.ids is not None)
        wanted = options.wanted
        self._spend(0 if wanted is None else operations_of_filter(image))
        mask = None if wanted is None else labels.fitting(image.marks, image.tags, wanted)
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
            every = search(image, layout, pack(part), k, least, mask, options.scan, self._threads)
            found += [self._result(i, row_of, hits) for i, hits in enumerate(every, part.start)]
        return found

    def _result(self, i: int, row_of: Callable[[int], Rows], hits: Hits) -> Result:
        """Return the result of query i. If the query is a vector of the index, it is left out."""
        layout, options = self._opened.layout, self._options
        if layout.banding is not None:
            self._spend(_PER_BUCKET * layout.banding.bands * hits.candidates)
        places = (divmod(slot, layout.slots_per_block) for slot in hits.slots.tolist())
        ids = [labels.at(self._image.ids[block], place) for block, place in places]
        similarity, error = self._opened.codes.similarities(hits.counts)
        order = np.array([j for j, one in enumerate(ids) if not options.ids or one != self._own[i]], np.intp)
        numbers = {"similarity": similarity, "standard_error": error}
        if self._exactly:
            numbers["exact"] = exact = self._exact(row_of(i), ids)
            order = order[np.argsort(-exact[order], kind="stable")]  # equal ones stay in the order of their codes
            order = order[exact[order] >= (options.min_similarity or -np.inf)]
        order = order[options.first : options.last]
        ids = [ids[j] for j in order]
        self._take(_CHARACTER_BYTES * sum(map(len, ids)))  # some ids are longer than everything else about a vector
        told: Result = {"ids": [labels.read(one, self._as_text) for one in ids]}
        told |= {name: one[order].tolist() for name, one in numbers.items()}
        if "tags" in options.include:
            marks = self._image.marks[hits.slots[order]].tolist()
            texts = [self._image.tags.get(mark, b"") for mark in marks]
            self._take(sum(_BYTES_PER_QUERY + _CHARACTER_BYTES * len(text) for text in texts))
            told["tags"] = [read_tags(*one) for one in zip(marks, texts, strict=True)]
        return told | {"candidates": hits.candidates, "searched": "scan" if hits.scanned else "bands"}

    def _exact(self, row: Rows, ids: list[bytes]) -> Matrix:
        """Return the exact similarities of a row and vectors as stored now; NaN for vectors that no longer exist."""
        opened, found = self._opened, np.full(len(ids), np.nan)
        first, at_once = 0, 1 + _BYTES_AT_ONCE * opened.state.size // max(1, opened.state.nbytes)
        while first < len(ids):
            stored = self._store.vectors(opened.manifest, ids[first : first + at_once], _BYTES_AT_ONCE)
            nbytes = sum(len(one or b"") + len(key) for one, key in zip(stored, ids[first:], strict=False))
            self._spend(_PER_STORED * len(stored) + _PER_STORED_BYTE * nbytes)
            found[first : first + len(stored)] = self._compare(row, stored)
            first, at_once = first + len(stored), 2 * len(stored)
        return found

    def _compare(self, row: Rows, stored: list[bytes | None]) -> Matrix:
        """Return the exact similarities of a row and stored vectors; NaN in the place of None."""
        feature_map, found = self._opened.feature_map, np.full(len(stored), np.nan)
        for sparse in (False, True):
            there = {i: one for i, one in enumerate(stored) if one is not None and is_sparse(one) is sparse}
            if there:
                others = self._unpack_rows([*there.values()])
                nbytes = feature_map.kernel.exact_bytes(row, others)
                self._spend(feature_map.kernel.exact_operations(row, others) + sparse * _PER_DENSE_BYTE * nbytes)
                for part in row_blocks(len(there), _BYTES_COMPARED * len(there) // max(1, nbytes)):
                    found[[*there][part]] = feature_map.exact_gram(row, others[part])[0]
        return found

    def _unpack_rows(self, stored: list[bytes]) -> Rows:
        try:
            return unpack_rows(stored, self._opened.feature_map.spec.input_dim)
        except (ValueError, IndexError) as error:
            raise StoreDamaged(f"a vector of index {self._opened.manifest.name!r} is not what was kept") from error

    def _take(self, nbytes: int) -> None:
        """Count the memory of results; raise TooLarge if it is too much for one answer."""
        self._nbytes += nbytes
        self._limits.check_result(self._nbytes)

    def _spend(self, operations: int, n: int = 0) -> None:
        """Count work; raise TooLarge if it is too much for one request."""
        self._spent += operations
        self._limits.check_operations(self._spent, n)
