"""Arrow streams over HTTP, by published writers and readers of them."""

import io
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from service_tests.api.test_arrow import FORMS, ROWS, WORDS, post_arrow
from service_tests.checks import ARROW, array, assert_problem, post_npy
from service_tests.costs import MB, Sent, cost
from service_tests.running import Running

Table = Any
"""A table of pyarrow."""
Writer = Callable[[Table], bytes]


def by_pyarrow(table: Table, per_batch: int = 3) -> bytes:
    """A stream of several batches, as pyarrow writes it."""
    ipc = pytest.importorskip("pyarrow.ipc")
    sink = io.BytesIO()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=per_batch)
    return sink.getvalue()


def by_polars(table: Table) -> bytes:
    """A stream as polars writes it, in which strings are views."""
    polars = pytest.importorskip("polars")
    sink = io.BytesIO()
    polars.from_arrow(table).write_ipc_stream(sink)
    return sink.getvalue()


def table_of(rows: NDArray[Any], **columns: Any) -> Table:
    """A table of lists in a column `v`, and other columns in front of it."""
    pa = pytest.importorskip("pyarrow")
    lists = pa.FixedSizeListArray.from_arrays(rows.reshape(-1), rows.shape[1])
    return pa.table({**columns, "v": lists})


@pytest.mark.nightly
@pytest.mark.parametrize("write", [by_pyarrow, by_polars])
@pytest.mark.parametrize("form", FORMS)
def test_published_writers_and_readers_get_the_features(
    http: httpx.Client, standing: dict[str, str], write: Writer, form: str
) -> None:
    pa, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    path = f"{standing[form]}/transform"
    expected = array(post_npy(http, path, ROWS))
    answer = post_arrow(http, path, write(table_of(ROWS, id=WORDS)))
    assert answer.status_code == 200, answer.text
    found = pa.ipc.open_stream(answer.content).read_all()
    found.validate(full=True)
    assert found.column_names == ["id", "features"]
    assert found["id"].to_pylist() == WORDS
    frame = polars.read_ipc_stream(io.BytesIO(answer.content))
    assert frame["id"].to_list() == WORDS
    if expected.dtype.kind == "c":
        parts = [found["features"].combine_chunks().field(part).flatten().to_numpy() for part in ("real", "imag")]
        numbers = (parts[0] + 1j * parts[1]).reshape(expected.shape).astype(expected.dtype)
        assert frame["features"].struct.field("imag").to_numpy().shape == expected.shape
    else:
        numbers = found["features"].combine_chunks().flatten().to_numpy().reshape(expected.shape)
        np.testing.assert_array_equal(frame["features"].to_numpy(), expected)
    assert numbers.dtype == expected.dtype
    np.testing.assert_array_equal(numbers, expected)


@pytest.mark.nightly
@pytest.mark.parametrize("write", [by_pyarrow, by_polars])
def test_every_layout_of_published_writers_is_read(http: httpx.Client, standing: dict[str, str], write: Writer) -> None:
    pa = pytest.importorskip("pyarrow")
    path = f"{standing['phase']}/transform"
    expected = array(post_npy(http, path, ROWS))
    lists = table_of(ROWS)["v"].combine_chunks()
    tables = [
        pa.table({"v": lists.cast(pa.list_(pa.float64()))}),
        pa.table({"v": lists.cast(pa.large_list(pa.float32()))}),
        pa.table({"v": pa.concat_arrays([lists, lists])}).slice(7, 7),
        pa.table(dict(zip("abc", ROWS.T.astype("f8"), strict=True))),
        pa.table({"a": ROWS[:, 0], "b": ROWS[:, 1].astype("f8"), "c": ROWS[:, 2]}),
    ]
    for words in (WORDS, [word * 9 for word in WORDS]):
        texts = pa.string(), pa.large_string(), pa.string_view()
        tables += [pa.table({"v": lists, "id": pa.array(words, text)}) for text in texts]
    kinds = "int8", "uint8", "int16", "uint32", "int64", "uint64"
    tables += [pa.table({"id": pa.array(range(7), kind), "v": lists}) for kind in kinds]
    for table in tables:
        answer = post_arrow(http, path, write(table))
        assert answer.status_code == 200, (table.schema, answer.text)
        found = pa.ipc.open_stream(answer.content).read_all()
        numbers = found["features"].combine_chunks().flatten().to_numpy().reshape(expected.shape)
        np.testing.assert_array_equal(numbers, expected)
        if "id" in table.column_names:
            assert found["id"].to_pylist() == table["id"].to_pylist()


@pytest.mark.nightly
def test_what_is_not_read_of_published_writers_is_refused_by_name(http: httpx.Client, standing: dict[str, str]) -> None:
    pa = pytest.importorskip("pyarrow")
    path, lists = f"{standing['phase']}/transform", table_of(ROWS)["v"].combine_chunks()
    refused = {
        "column 'id' is a dictionary of utf8": pa.table({"id": pa.array(WORDS).dictionary_encode(), "v": lists}),
        "column 'v' is list of float32, and not the only one": pa.table(
            {"v": lists.cast(pa.list_(pa.float32())), "x": range(7)}
        ),
        "column 'name' is utf8, and not": pa.table({"name": WORDS, "v": lists}),
        "column 'v' is bool": pa.table({"v": [True] * 7}),
        "column 'v' is decimal": pa.table({"v": pa.array(range(7)).cast(pa.decimal128(20))}),
        "column 'v' is timestamp": pa.table({"v": pa.array(range(7), pa.timestamp("s"))}),
        "column 'v' is struct": pa.table({"v": [{"a": 1}] * 7}),
        "column 'v' is fixed_size_list of fixed_size_list": table_of(np.ones((7, 3))).set_column(
            0, "v", pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(np.ones(42), 3), 2)
        ),
        "row 1 has no id": pa.table({"id": ["a", None, *WORDS[2:]], "v": lists}),
        "row 2 is null": pa.table({"v": pa.array([[1.0, 2.0, 3.0]] * 2 + [None], pa.list_(pa.float32(), 3))}),
        "row 4 has 2 entries; 3 are wanted": pa.table({"v": [[1.0, 2.0, 3.0]] * 4 + [[1.0, 2.0]]}),
        "row 2, column 1 is missing": pa.table({"v": [[1.0, 2.0, 3.0]] * 2 + [[1.0, None, 3.0]]}),
        "rows have 2 entries; this map takes 3": pa.table({"a": [1.0], "b": [2.0]}),
    }
    for complaint, table in refused.items():
        problem = assert_problem(http, post_arrow(http, path, by_pyarrow(table)), 422, "invalid-input")
        assert complaint in problem["detail"]
    lists_table = table_of(ROWS)
    for codec in ("zstd", "lz4"):
        sink = io.BytesIO()
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_stream(sink, lists_table.schema, options=options) as writer:
            writer.write_table(lists_table)
        problem = assert_problem(http, post_arrow(http, path, sink.getvalue()), 422, "invalid-input")
        assert f"compressed with {codec.upper()}" in problem["detail"]
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, lists_table.schema) as writer:
        writer.write_table(lists_table)
    problem = assert_problem(http, post_arrow(http, path, sink.getvalue()), 422, "invalid-input")
    assert "an Arrow file came" in problem["detail"]


@pytest.mark.nightly
def test_hostile_streams_are_refused_or_answered_and_take_no_memory(
    http: httpx.Client, running: Running, standing: dict[str, str]
) -> None:
    """Streams of pyarrow and polars, of which some bytes are changed."""
    rng = np.random.default_rng(4)
    goods = [write(table_of(ROWS, id=ids)) for write in (by_pyarrow, by_polars) for ids in (WORDS, range(7))]
    statuses: list[int] = []

    def send(client: httpx.Client) -> Sent:
        for _ in range(1500):
            bad = bytearray(goods[rng.integers(len(goods))])
            for place in rng.integers(0, len(bad), rng.integers(1, 5)):
                bad[place] = rng.choice(np.array([0, 1, 127, 128, 255, rng.integers(0, 256)]))
            path = [f"/v1/maps/{standing['phase']}/transform", "/v1/datasets/hostile"][rng.integers(2)]
            answer = client.request(
                "PUT" if "datasets" in path else "POST", path, content=bytes(bad), headers={"Content-Type": ARROW}
            )
            statuses.append(answer.status_code)
        return Sent(200, 0, 0)

    found = cost(running, send)
    http.delete("/v1/datasets/hostile")
    assert {*statuses} <= {200, 201, 409, 413, 422}
    assert statuses.count(422) > 300
    assert found.peak < 32 * MB


@pytest.mark.nightly
def test_long_answers_come_in_batches_of_bounded_memory(http: httpx.Client, running: Running, name: str) -> None:
    pa = pytest.importorskip("pyarrow")
    spec = {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "sobol"}, "s": 512}
    assert http.put(f"/v1/maps/{name}", json={**spec, "form": "complex"}).status_code == 201
    body = by_pyarrow(table_of(np.resize(ROWS, (50_000, 3)), id=range(50_000)), 9000)
    n = batches = 0

    def send(client: httpx.Client) -> Sent:
        nonlocal n, batches
        headers = {"Content-Type": ARROW}
        with client.stream("POST", f"/v1/maps/{name}/transform", content=body, headers=headers) as answer:
            assert answer.status_code == 200
            for batch in pa.ipc.open_stream(io.BufferedReader(Pieces(answer.iter_raw()))):
                assert batch["id"].to_pylist() == [*range(n, n + len(batch))]
                n, batches = n + len(batch), batches + 1
        return Sent(200, len(body), n * 512 * 8)

    found = cost(running, send)
    assert n == 50_000
    assert batches > 10
    assert found.peak < 80 * MB, "of an answer of 205 MB"


class Pieces(io.RawIOBase):
    """A file of what comes."""

    def __init__(self, coming: Iterator[bytes]) -> None:
        self._coming, self._left = coming, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._left = self._left or next(self._coming, b"")
        n = min(len(buffer), len(self._left))
        buffer[:n], self._left = self._left[:n], self._left[n:]
        return n
