"""A search of an index: vectors that agree with a query in the most codes, the best of them compared exactly."""

from typing import Any

import numpy as np

from app.core.arrays import Matrix, Rows
from app.core.errors import InvalidInput
from app.core.indexes import labels
from app.core.indexes.banding import Image
from app.core.indexes.kept_rows import restored
from app.core.indexes.options import SearchOptions
from app.core.indexes.search import Hits, search
from app.services.indexes import OpenIndex
from app.services.limits import Limits
from app.store.errors import StoreDamaged
from app.store.indexes import IndexStore

Result = dict[str, Any]
"""What is found for a query: the members of a `SearchResult`."""

# So many multiplications take as long as comparing a byte of codes, or as finding a vector in a bucket; as telling of
# a query, whatever is found for it; and as asking the store for vectors to compare one with.
_PER_BYTE, _PER_BUCKET, _PER_QUERY, _PER_READING = 2, 40, 200_000, 4_000_000
# Of a query, and of a vector that is found for it, as Python holds them, with an id and three numbers.
_BYTES_PER_QUERY, _BYTES_PER_RESULT = 512, 256
# Of vectors that are read at a time to be compared exactly.
_BYTES_AT_ONCE = 1 << 22


class Search:
    """A search of what an index holds at one moment."""

    def __init__(
        self, store: IndexStore, limits: Limits, opened: OpenIndex, image: Image, options: SearchOptions, threads: int
    ) -> None:
        self._store, self._limits, self._threads = store, limits, threads
        self._opened, self._image, self._options = opened, image, options
        keeps = opened.manifest.keep == "vectors"
        if options.exact and not keeps:
            detail = f"exact came; index {opened.manifest.name!r} keeps codes alone, and no vectors"
            raise InvalidInput(detail, "/exact")
        self._exactly = keeps if options.exact is None else options.exact
        self._spent, self._nbytes = 0, 0

    def results(self, rows: Rows) -> list[Result]:
        """What is found for each row; raises what `IndexVectors.search` raises."""
        opened, image, options = self._opened, self._image, self._options
        n, k = rows.shape[0], options.compared_exactly if self._exactly else options.k
        self._take(n * (_BYTES_PER_QUERY + min(k, image.size) * _BYTES_PER_RESULT))
        self._spend(opened.feature_map.operations(rows), n)
        self._spend((_PER_QUERY + (_PER_READING if self._exactly and image.size else 0)) * n, n)
        if opened.layout.banding is None:
            self._spend(_PER_BYTE * n * image.size * opened.layout.code_bytes, n)
        queries = opened.codes.written(opened.feature_map, rows)
        similarity = options.min_similarity
        least = 0 if similarity is None else opened.codes.least(similarity, self._exactly)
        marked = None if options.tag is None else labels.number(labels.mark(options.tag, "/tag"))
        every = search(image, opened.layout, queries, k, least, marked, self._threads)
        return [self._result(rows[i : i + 1], hits) for i, hits in enumerate(every)]

    def _result(self, row: Rows, hits: Hits) -> Result:
        layout = self._opened.layout
        if layout.banding is not None:
            self._spend(_PER_BUCKET * layout.banding.bands * hits.candidates)
        ids = [self._id(slot) for slot in hits.slots.tolist()]
        similarity, error = self._opened.codes.similarities(hits.counts)
        if not self._exactly:
            return self._written(ids, {"similarity": similarity, "standard_error": error}, hits)
        exact = self._exact(row, ids)
        order = np.argsort(-exact, kind="stable")  # of equal ones, those that agree in more codes
        order = order[exact[order] >= (self._options.min_similarity or -np.inf)][: self._options.k]
        numbers = {"similarity": similarity[order], "standard_error": error[order], "exact": exact[order]}
        return self._written([ids[i] for i in order], numbers, hits)

    def _written(self, ids: list[bytes], numbers: dict[str, Matrix], hits: Hits) -> Result:
        self._take(sum(map(len, ids)))  # some are longer than all else that is told of a vector
        told: Result = {"ids": [labels.read(one) for one in ids]}
        return told | {name: one.tolist() for name, one in numbers.items()} | {"candidates": hits.candidates}

    def _id(self, slot: int) -> bytes:
        block, place = divmod(slot, self._opened.layout.slots_per_block)
        return labels.at(self._image.ids[block], place)

    def _exact(self, row: Rows, ids: list[bytes]) -> Matrix:
        """The similarities of a row with vectors, as they are kept now; NaN with those that are gone."""
        opened, found = self._opened, np.full(len(ids), np.nan)
        kernel, input_dim = opened.feature_map.kernel, opened.feature_map.spec.input_dim
        per_vector = 1 + opened.state.nbytes // max(1, opened.state.size)
        at_once = max(1, _BYTES_AT_ONCE // per_vector)
        for first in range(0, len(ids), at_once):
            stored = self._store.vectors(opened.manifest, ids[first : first + at_once])
            there = [(first + i, one) for i, one in enumerate(stored) if one is not None]
            if there:
                others = self._restored([one for _, one in there], input_dim)
                self._spend(kernel.exact_operations(row, others))
                found[[i for i, _ in there]] = opened.feature_map.exact_gram(row, others)[0]
        return found

    def _restored(self, stored: list[bytes], input_dim: int) -> Rows:
        try:
            return restored(stored, input_dim)
        except (ValueError, IndexError) as error:
            raise StoreDamaged(f"a vector of index {self._opened.manifest.name!r} is not what was kept") from error

    def _take(self, nbytes: int) -> None:
        """Count what is found; TooLarge if it is too much for one answer."""
        self._nbytes += nbytes
        self._limits.check_result(self._nbytes)

    def _spend(self, operations: int, n: int = 0) -> None:
        """Count work; TooLarge if it is too much for one request."""
        self._spent += operations
        self._limits.check_operations(self._spent, n)
