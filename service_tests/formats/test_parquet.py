"""Parquet files, by published writers, damaged ones, and those that are made to take memory or time."""

import base64
import io
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from arro3.core import Array, DataType, Field, Schema, Table, struct_array
from arro3.io import write_ipc_stream, write_parquet

from app.core.arrays import Identified, NumberIds, TextIds
from app.core.errors import InvalidInput, TooLarge
from app.formats import parquet
from app.formats.arrow import Arrow
from app.formats.base import Body
from app.formats.parquet import Parquet
from service_tests.checks import JSON, PARQUET, arrow, assert_problem, npy, parquet_of, post, put_dataset
from service_tests.formats.damaged import refusals
from service_tests.running import Running, service
from service_tests.servers import until

ROWS = np.random.default_rng(3).standard_normal((7, 3)).astype(np.float32)
WORDS = TextIds(np.arange(7) + 1, np.frombuffer(b"abcdefg", np.uint8))
MiB = 1 << 20


def wide(n_columns: int, n: int) -> bytes:
    """A file of columns of ones, in the compression that takes most memory to undo."""
    column, sink = Array.from_numpy(np.ones(n)), io.BytesIO()
    write_parquet(Table.from_pydict({str(i): column for i in range(n_columns)}), sink, compression="zstd(1)")
    return sink.getvalue()


def put_parquet(http: httpx.Client, name: str, content: bytes) -> httpx.Response:
    return http.put(f"/v1/datasets/{name}", content=content, headers={"Content-Type": PARQUET})


def read(content: bytes) -> Any:
    return Parquet().matrix(Body(content))


@pytest.mark.parametrize("ids", [WORDS, NumberIds(np.arange(7))])
def test_rows_and_ids_are_those_of_the_file(ids: TextIds | NumberIds) -> None:
    for columns in ({"v": ROWS}, dict(zip("abc", ROWS.T, strict=True))):
        np.testing.assert_array_equal(read(parquet_of(**columns)), ROWS)
        found = read(parquet_of(**columns, ids=ids))
        assert isinstance(found, Identified)
        np.testing.assert_array_equal(found.rows, ROWS)
        assert found.ids.to_list() == ids.to_list()


def test_a_dataset_comes_as_parquet(http: httpx.Client, standing: dict[str, str], name: str) -> None:
    made = put_parquet(http, name, parquet_of(v=ROWS, ids=WORDS))
    assert made.status_code == 201, made.text
    assert (made.json()["shape"], made.json()["dtype"], made.json()["ids"]) == ([7, 3], "float32", "string")
    answer = post(http, f"{standing['phase']}/transform", {"dataset": name}, JSON).json()
    assert answer["ids"] == WORDS.to_list()
    plain = put_parquet(http, f"{name}-plain", parquet_of(v=ROWS)).json()
    assert plain["digest"] == put_dataset(http, f"{name}-npy", ROWS).json()["digest"]


def test_parquet_is_for_datasets_alone(http: httpx.Client, standing: dict[str, str]) -> None:
    answer = http.post(
        f"/v1/maps/{standing['phase']}/transform", content=parquet_of(v=ROWS), headers={"Content-Type": PARQUET}
    )
    assert_problem(http, answer, 415, "unsupported-media-type")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1xxxxPAR1", npy(ROWS), parquet_of(v=ROWS)[:-1]])
def test_what_is_no_parquet_is_refused(http: httpx.Client, name: str, content: bytes) -> None:
    problem = assert_problem(http, put_parquet(http, name, content), 422, "invalid-input")
    assert "is not a Parquet file that can be read" in problem["detail"]
    assert "panicked" not in problem["detail"]


def test_rows_that_are_longer_than_a_dataset_may_be_are_not_unpacked() -> None:
    came = 0

    def check(nbytes: int) -> None:
        nonlocal came
        came = nbytes
        if nbytes > 4 * MiB:
            raise TooLarge("too large", limit="max_dataset_bytes", allowed=4 * MiB, value=nbytes)

    content = parquet_of(v=np.zeros((16 * MiB, 1), np.float32))
    assert len(content) < MiB
    with pytest.raises(TooLarge):
        Parquet().matrix(Body(content, check_rows=check))
    assert came <= 5 * MiB


def test_a_reader_that_takes_too_much_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    content = parquet_of(v=np.random.default_rng(5).standard_normal((4 * MiB, 1)))
    assert read(content).shape == (4 * MiB, 1)
    monkeypatch.setattr(parquet, "_MEMORY_BYTES", -len(content))  # so that there is room for the file, and for no more
    with pytest.raises(InvalidInput, match="damaged, or takes more than"):
        read(content)
    monkeypatch.undo()
    monkeypatch.setattr(parquet, "_WAIT_SECONDS", 0.001)
    with pytest.raises(InvalidInput, match="damaged, or takes more than"):
        read(content)


def test_a_reason_that_is_longer_than_a_pipe_holds_is_told_in_part() -> None:
    """The schema that the file names has a list, and a long name, where the file has no list."""
    hint, stream, sink = DataType.struct([Field("n" * 100_000, DataType.float64())]), io.BytesIO(), io.BytesIO()
    write_ipc_stream(Table.from_batches([], schema=Schema([Field("x", DataType.list(Field("y", hint)))])), stream)
    column = struct_array([Array.from_numpy(np.ones(3))], fields=[Field("a", DataType.float64())])
    told = {"ARROW:schema": base64.b64encode(stream.getvalue()).decode()}
    write_parquet(Table.from_arrays([column], names=["x"]), sink, skip_arrow_metadata=True, key_value_metadata=told)
    with pytest.raises(InvalidInput, match=r"expected struct got List.*nnn") as caught:
        read(sink.getvalue())
    assert len(caught.value.detail) < 400


def test_lists_of_lists_and_members_are_refused_for_the_schema() -> None:
    inner = DataType.list(Field("y", DataType.float64()))
    for of in (DataType.list(Field("x", inner)), DataType.struct([Field("x", DataType.float64())])):
        sink = io.BytesIO()
        write_parquet(Table.from_batches([], schema=Schema([Field("a", of)])), sink)
        with pytest.raises(InvalidInput, match="column 'a' has structs, or lists of lists"):
            read(sink.getvalue())


def test_five_thousand_columns_are_read_and_too_many_refused_for_the_footer() -> None:
    assert read(wide(5000, 1)).tolist() == [[1.0] * 5000]
    with pytest.raises(InvalidInput, match="it has 9000 columns; 8192 are read at most"):
        read(wide(9000, 1))


@pytest.mark.parametrize("member", ["stream", "file"])
def test_rows_of_a_wider_dtype_than_that_of_most_columns_are_counted_before_they_are_made(member: str) -> None:
    columns = {str(i): np.zeros(4096, np.int8) for i in range(200)} | {"x": np.zeros(4096)}
    counted: list[int] = []

    def check(nbytes: int) -> None:
        counted.append(nbytes)
        if nbytes == 4096 * 201 * 8:
            raise TooLarge("too large", limit="max_dataset_bytes", allowed=0, value=nbytes)

    form, content = (Arrow(), arrow(**columns)) if member == "stream" else (Parquet(), parquet_of(**columns))
    with pytest.raises(TooLarge):
        form.matrix(Body(content, check_rows=check))
    assert len(counted) == 1 or max(counted[:-1]) < 2 * 4096 * 201, "of the stream that the file stands for"


def test_a_reader_that_sleeps_keeps_none_but_files_waiting(
    running: Running, standing: dict[str, str], tmp_path: Path
) -> None:
    content, readers = wide(1000, 1 << 15), list[psutil.Process]()
    options = ("--redis-url", running.socket, "--threads", "1", "--max-requests", "8")
    with service(tmp_path / "data", *options) as narrow, narrow.client() as http, ThreadPoolExecutor() as threads:

        def asleep() -> bool:
            for child in psutil.Process(narrow.process.pid).children(recursive=True):
                with suppress(psutil.Error):  # it has ended
                    if "app.parquet_process" in child.cmdline() and child not in readers:
                        child.suspend()
                        readers.append(child)
                        return True
            return False

        puts = [threads.submit(put_parquet, http, "asleep", content)]
        until(asleep)
        puts.append(threads.submit(put_parquet, http, "waits", content))
        until(lambda: 'bochner_waiting{waits_for="file"} 1.0' in http.get("/metrics").text)
        refused = assert_problem(http, put_parquet(http, "many", content), 503, "overloaded")
        assert refused["detail"].startswith("2 files are being read or wait to be")
        assert post(http, f"{standing['phase']}/transform", {"vectors": [[1, 2, 3]]}).status_code == 200
        readers[0].kill()
        until(asleep)
        readers[1].kill()
        for put in puts:
            assert_problem(http, put.result(), 422, "invalid-input")


@pytest.mark.nightly
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_published_writers_are_read_in_every_compression_and_encoding(codec: str) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    lists = pa.FixedSizeListArray.from_arrays(ROWS.ravel(), 3)
    options: list[dict[str, Any]] = [
        {},
        {"use_dictionary": False, "data_page_version": "2.0", "write_page_checksum": True},
        {"store_schema": False, "row_group_size": 2},
    ]
    for values in (lists, lists.cast(pa.list_(pa.float32()))):
        for option in options:
            sink = io.BytesIO()
            pq.write_table(pa.table({"id": WORDS.to_list(), "v": values}), sink, compression=codec, **option)
            found = read(sink.getvalue())
            np.testing.assert_array_equal(found.rows, ROWS)
            assert found.ids.to_list() == WORDS.to_list()


@pytest.mark.nightly
def test_damaged_files_are_refused_or_read_but_never_fail() -> None:
    assert refusals(read, parquet_of(v=ROWS, ids=WORDS), 60) > 20
