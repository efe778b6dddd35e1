"""Arrow streams over HTTP, by published writers and readers of them."""

import io
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from service_tests.api.test_arrow import FORMS, ROWS, WORDS, post_arrow
from service_tests.checks import array, post_npy

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
