"""Tables as people have them: list columns, indexes of pandas, missing values, slices; ids and tags of every kind."""

# ruff: noqa: E501 - a table is a line

import gc
import io
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

import bochner
from bochner_client import Client
from bochner_client.rows import listed
from bochner_client.tables import TableError, as_table
from bochner_client.transformers import FeatureMap
from service_tests.running import Running

pytestmark = pytest.mark.gate
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
LOCAL = bochner.build(
    {
        "input_dim": 2,
        "s": 4,
        "sampler": {"kind": "halton"},
        "kernel": {"kind": "gaussian", "length_scale": 1.0},
        "dtype": "float64",
    }
)
SHUFFLED = pd.DataFrame({"a": [1.0, 3.0, 5.0], "b": [2.0, 4.0, 6.0]}, index=[7, 2, 9])
TENSORS = pa.FixedShapeTensorArray.from_numpy_ndarray(np.array(ROWS))
TABLES: dict[str, Callable[[], Any]] = {
    "lists of polars": lambda: pl.DataFrame({"e": ROWS}),
    "arrays of polars": lambda: pl.DataFrame({"e": ROWS}, schema={"e": pl.Array(pl.Float64, 2)}),
    "series of polars": lambda: pl.Series(ROWS),
    "lists of pyarrow": lambda: pa.table({"e": ROWS}),
    "a column of pyarrow": lambda: pa.chunked_array([pa.array(ROWS[:1]), pa.array(ROWS[1:])]),
    "tensors": lambda: pa.table({"e": TENSORS}),
    "lists of pandas": lambda: pd.DataFrame({"e": ROWS}),
    "arrays of pandas": lambda: pd.DataFrame({"e": [np.array(row) for row in ROWS]}),
    "lists of Arrow in pandas": lambda: pd.DataFrame({"e": pd.array(ROWS, pd.ArrowDtype(pa.list_(pa.float64())))}),
    "an index of pandas": lambda: pa.Table.from_pandas(SHUFFLED),
    "ids": lambda: pl.DataFrame({"id": ["x", "y", "z"], "a": [1, 3, 5], "b": [2.0, 4.0, 6.0]}),
    "ids of pandas": lambda: pd.DataFrame({"id": pd.Categorical(["x", "y", "x"]), "a": [1, 3, 5], "b": [2, 4, 6]}),
    "strings of pandas": lambda: pd.DataFrame({"id": ["x", "y", "z"], "a": [1, 3, 5], "b": [2.0, 4.0, 6.0]}),
    "slices": lambda: pa.table({"a": [9.0, 1, 3, 5, 9], "b": [9, 2, 4, 6, 9]})[1:4],
    "slices of lists": lambda: pa.table({"e": pa.array([[0.0, 0], *ROWS], pa.list_(pa.float64(), 2))})[1:],
    "chunks": lambda: pa.concat_tables([pa.table({"a": [1.0], "b": [2.0]}), pa.table({"a": [3.0, 5], "b": [4.0, 6]})]),
    "batch": lambda: pa.record_batch({"a": [1, 3, 5], "b": [2, 4, 6]}),
    "objects": lambda: pd.DataFrame({"a": pd.Series([1, 3.0, np.int8(5)], dtype=object), "b": [2, 4, 6]}),
    "no rows of objects": lambda: pd.DataFrame({"a": [], "b": []}, dtype=object),
    "no rows of nothing": lambda: pa.table({"id": pa.nulls(0), "a": pa.nulls(0), "b": pa.nulls(0)}),
    "stream": lambda: pa.RecordBatchReader.from_batches(pa.schema({"a": "int8", "b": "int8"}), []),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_are_rows_as_a_whole_and_in_parts(kind: str) -> None:
    table = as_table(TABLES[kind]())
    assert table is not None
    expected = np.array(ROWS)[: 0 if kind.startswith(("no rows", "stream")) else 3]
    assert (table.n, table.d) == expected.shape
    np.testing.assert_array_equal(table.rows(), expected)
    if len(expected):
        np.testing.assert_array_equal(LOCAL.transform(TABLES[kind]()), LOCAL.transform(expected))
    np.testing.assert_array_equal(table.rows(1, 3 if table.n else 1), expected[1:])


def test_the_memory_of_a_table_lives_as_long_as_its_rows() -> None:
    rows = [as_table(pa.table({"e": pa.array([[float(i), i + 1]], pa.list_(pa.float64(), 2))})) for i in range(100)]
    found = [one.rows() for one in rows if one is not None]
    before = pa.total_allocated_bytes()
    del rows
    gc.collect()
    np.testing.assert_array_equal(np.concatenate(found)[:, 1], np.arange(1, 101))
    del found
    gc.collect()
    assert pa.total_allocated_bytes() < before


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pd.DataFrame({"t": pd.to_datetime(["2020-01-01", None])}), "column 't' is datetime64"),
        (pl.DataFrame({"e": [[1.0], [1.0, 2.0]]}), "row 1 has 2 entries; expected 1"),
        (pl.DataFrame({"e": [[1.0], None]}), "row 1 is null"),
        (pd.DataFrame({"e": [[1.0], [1.0, 2.0]]}), "row 1 has"),
        (pl.DataFrame({"e": [[1.0]], "x": [1.0]}), "'e' is large_list of double, and not the only one|'e' is large_list of float64, and"),
        (pa.table({"x": pd.array([2**53 + 1, None], "Int64"), "y": [0.5, 1]}), "'x' has 9007199254740993 in row 0, which float64"),
        (pa.Table.from_pandas(pd.DataFrame({"p": pd.period_range("2020", periods=2)})), "column 'p' is pandas.period"),
        (pa.table({"id": ["a"]}), "none beside 'id'"),
        (pd.DataFrame({"i": pd.interval_range(0, 2)}), "column 'i' is interval"),
        (pl.LazyFrame({"a": [1.0]}), r"got a LazyFrame, whose rows are not there yet: collect\(\) it first"),
    ],
)  # fmt: skip
def test_what_is_no_table_of_numbers_is_refused_by_name(table: Any, said: str) -> None:
    with pytest.raises(TableError, match=said):
        (found := as_table(table)) and found.rows()


def test_what_a_mask_hides_is_missing(running: Running, client: Client) -> None:
    rows = np.ma.masked_array([[1, 2], [3, 4]], [[False, True], [False, False]])
    fitted = FeatureMap(s=4, length_scale=1.0, input={"missing": 0}, url=running.url).fit(rows)
    np.testing.assert_array_equal(fitted.transform(rows), fitted.transform([[1.0, None], [3.0, 4.0]]))
    for masked in (rows, [*rows]):
        np.testing.assert_array_equal(client.transform(fitted.name_, masked), fitted.transform(rows))
        np.testing.assert_array_equal(fitted.transform(masked), fitted.transform(rows))
    missing = pd.DataFrame({"a": pd.Series([1, 3], dtype=object), "b": pd.Series([pd.NA, 4], dtype=object)})
    np.testing.assert_array_equal(client.transform(fitted.name_, missing), fitted.transform(rows))
    with pytest.raises(ValueError, match="expected rows, got an object of type dict"):
        client.transform(fitted.name_, {"a": [1, 2]})  # type: ignore[arg-type]


def test_an_index_of_pandas_is_no_coordinate_wherever_it_comes_in(
    running: Running, http: httpx.Client, client: Client
) -> None:
    assert list(
        FeatureMap(s=4, length_scale=1.0, url=running.url).fit(TABLES["an index of pandas"]()).feature_names_in_
    ) == ["a", "b"]
    body = io.BytesIO()
    SHUFFLED.to_parquet(body)
    digests = {
        client.put_dataset("indexed", SHUFFLED).digest,
        client.put_dataset("indexed", SHUFFLED.to_numpy()).digest,
    }
    kind = {"Content-Type": "application/vnd.apache.parquet"}
    digests.add(http.put("/v1/datasets/indexed", content=body.getvalue(), headers=kind).json()["digest"])
    body = io.BytesIO()
    with pa.ipc.new_stream(body, TABLES["an index of pandas"]().schema) as writer:
        writer.write_table(TABLES["an index of pandas"]())
    kind = {"Content-Type": "application/vnd.apache.arrow.stream"}
    digests.add(http.put("/v1/datasets/indexed", content=body.getvalue(), headers=kind).json()["digest"])
    assert len(digests) == 1
    client.delete_dataset("indexed")


@pytest.mark.parametrize("encoded", [False, True])
def test_ids_and_tags_may_be_dictionaries(http: httpx.Client, client: Client, encoded: bool) -> None:
    client.put_map("gmm", {"input_dim": 2, "s": 16, "sampler": {"kind": "gcws"}, "kernel": {"kind": "gmm"}})
    client.put_index("dictionaries", "gmm")
    ids, tags = pa.array(["b", "a", "c"]), pa.array(["t", None, "t"])
    columns = {"id": ids.dictionary_encode(), "tag": tags.dictionary_encode()} if encoded else {"id": ids, "tag": tags}
    table, body = pa.table({**columns, "a": [1.0, 2.0, 9.0], "b": [5.0, 1.0, 1.0]}), io.BytesIO()
    with pa.ipc.new_stream(body, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    kind = {"Content-Type": "application/vnd.apache.arrow.stream"}
    assert http.post("/v1/indexes/dictionaries/vectors", content=body.getvalue(), headers=kind).json() == {
        "upserted": 3
    }
    assert client.search_index("dictionaries", [[2.0, 1.0]], 3)[0].ids[0] == "a"
    assert sorted(client.search_index("dictionaries", [[2.0, 1.0]], 3, tag="t")[0].ids) == ["b", "c"]
    body = io.BytesIO()
    pq.write_table(table.drop_columns("tag"), body)
    kind = {"Content-Type": "application/vnd.apache.parquet"}
    assert http.put("/v1/datasets/dictionaries", content=body.getvalue(), headers=kind).json()["ids"] == "string"
    client.delete_index("dictionaries")
    client.delete_map("gmm")
    client.delete_dataset("dictionaries")


@pytest.mark.parametrize(
    "values",
    [
        ["a", None], ["a", float("nan")], np.array(["a", None]), pd.Series(["a", None]), pd.Series(["a", pd.NA], dtype="string"),
        pd.Series(["a", None], dtype="category"), pa.array(["a", None]), pa.chunked_array([["a"], [None]]), pl.Series(["a", None]),
        pa.array(["a", None]).dictionary_encode(), iter(["a", None]),
    ],
)  # fmt: skip
def test_tags_come_from_columns_of_every_kind(values: Any) -> None:
    assert listed(values, "tags") == ["a", None]


@pytest.mark.parametrize(
    "values", [[1, 2], range(1, 3), np.array([1, 2], np.uint8), pd.Series([1, 2], dtype="Int64"), pa.array([1, 2]), pl.Series([1, 2])]
)  # fmt: skip
def test_ids_are_numbers_of_python_and_one_string_is_no_list_of_them(values: Any) -> None:
    found = listed(values, "ids")
    assert found == [1, 2]
    assert {type(one) for one in found} == {int}
    with pytest.raises(ValueError, match="expected one of the ids for each vector, got the string 'ab'"):
        listed("ab", "ids")
