"""Puts vectors into indexes, takes them out, and finds the nearest to others."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from app.core.arrays import PostedRows
from app.core.datasets import Reference
from app.core.errors import InvalidInput
from app.core.indexes import labels
from app.core.indexes.banding import Image
from app.core.indexes.kept_rows import kept
from app.core.indexes.options import Batch, CheckCount, SearchOptions
from app.services.cache import latest
from app.services.datasets import Datasets, at_their_datasets
from app.services.errors import VectorNotFound
from app.services.index_images import Images
from app.services.index_search import Result, Search
from app.services.indexes import Indexes, OpenIndex
from app.services.limits import Limits
from app.services.vectors import warnings_of
from app.store.indexes import Entry, IndexFull, IndexStore

Warnings = tuple[str, ...]
"""What is doubtful, a sentence each."""


class IndexVectors:
    """The vectors of indexes. Methods raise what `Indexes.open` raises; a call may use so many `threads`."""

    def __init__(
        self, store: IndexStore, indexes: Indexes, images: Images, datasets: Datasets, limits: Limits, threads: int
    ) -> None:
        self._store, self._indexes, self._images = store, indexes, images
        self._datasets, self._limits, self._threads = datasets, limits, threads

    def upsert(self, name: str, read: Callable[[int, CheckCount], Batch]) -> tuple[int, Warnings]:
        """Put vectors into an index, in the place of those with the same ids; all of them, or none.

        `read` is told the length of a row, and what to ask whether so many vectors may come.

        Returns:
            How many they are, and what is doubtful about their codes.

        Raises:
            InvalidInput: a vector has no codes; ids or tags are none, or not as many; or an id comes twice.
            TooLarge: they are too many at once, or for the memory of a process.
            QuotaExceeded: there is no room for them.
        """
        return latest(lambda: self._upserted(self._indexes.open(name), read))

    def remove(self, name: str, vector_id: int | str) -> None:
        """Take a vector out of an index; VectorNotFound if there is none of this id."""
        written = labels.written(vector_id, "")
        if not latest(lambda: self._store.remove(self._indexes.open(name).manifest, written)):
            raise VectorNotFound(name, vector_id)

    @contextmanager
    def looked_at(self, name: str) -> Iterator[tuple[OpenIndex, Image]]:
        """An index, and all that it holds at one moment of this call; TooLarge if that has no room in the cache."""

        def look() -> tuple[OpenIndex, Image]:
            opened = self._indexes.open(name)
            return opened, looking.enter_context(self._images.looked_at(opened.manifest, opened.state))

        with ExitStack() as looking:
            yield latest(look)

    def search(
        self, name: str, read: Callable[[int], tuple[SearchOptions, PostedRows | Reference]]
    ) -> tuple[list[Result], Warnings]:
        """The nearest vectors to each of some others, see `Search.results`, and what is doubtful about their codes.

        `read` is told the length of a row.

        Raises:
            InvalidInput: a vector has no codes, or exact similarities are wanted where vectors are not kept.
            TooLarge: the work, or what is found, passes a limit.
        """

        def look() -> tuple[list[Result], Warnings]:
            with self.looked_at(name) as (opened, image):
                options, posted = read(opened.feature_map.spec.input_dim)
                given = self._datasets.gated({"vectors": posted}, opened.feature_map.spec.gate)
                with at_their_datasets(given.references):
                    found = Search(self._store, self._limits, opened, image, options, self._threads)
                    return found.results(given.rows["vectors"]), warnings_of(opened.feature_map, given.rows)

        return latest(look)

    def _upserted(self, opened: OpenIndex, read: Callable[[int, CheckCount], Batch]) -> tuple[int, Warnings]:
        feature_map, check = opened.feature_map, self._limits.check_batch
        batch = read(feature_map.spec.input_dim, check)
        given = self._datasets.gated({"vectors": batch.vectors}, feature_map.spec.gate)
        rows = given.rows["vectors"]
        n = int(rows.shape[0])
        check(n)
        if batch.ids is None and "vectors" not in given.ids:
            raise InvalidInput("the member ids is missing: each vector needs an id", "/ids")
        ids = given.ids["vectors"].listed() if batch.ids is None else batch.ids
        for member, came in (("ids", ids), ("tags", batch.tags)):
            if came is not None and len(came) != n:
                raise InvalidInput(f"{len(came)} {member} and {n} vectors came; each vector has one", f"/{member}")
        keys = labels.every_written(ids, "/ids")
        marks = [labels.UNTAGGED] * n if batch.tags is None else labels.marks(batch.tags, "/tags")
        self._limits.check_operations(feature_map.operations(rows), n)
        vectors = kept(rows) if opened.manifest.keep == "vectors" else [b""] * n
        self._limits.check_batch_bytes(sum(map(len, vectors)) + n * opened.layout.code_bytes)
        with at_their_datasets(given.references):
            codes = opened.codes.written(feature_map, rows)
        entries = [
            Entry(key, mark + code.tobytes(), vector)
            for key, mark, code, vector in zip(keys, marks, codes, vectors, strict=True)
        ]
        if entries:
            try:
                self._store.upsert(opened.manifest, entries, self._images.most(opened.manifest))
            except IndexFull as full:
                raise self._images.refusal(opened.manifest, full) from full
        return n, warnings_of(feature_map, given.rows)
