"""Parquet files, by published writers, damaged ones, and those that are made to take memory or time."""

import io
from typing import Any

import httpx
import numpy as np
import pytest
from arro3.io import read_ipc_stream, write_parquet

from app.core.errors import InvalidInput, TooLarge
from app.core.ids import Identified, NumberIds, TextIds
from app.formats import parquet
from app.formats.base import Body
from app.formats.parquet import Parquet
from service_tests.checks import JSON, PARQUET, arrow, assert_problem, npy, post, put_dataset
from service_tests.costs import MB, Sent, cost
from service_tests.running import Running

ROWS = np.random.default_rng(3).standard_normal((7, 3)).astype(np.float32)
WORDS = TextIds(np.arange(7) + 1, np.frombuffer(b"abcdefg", np.uint8))
MiB = 1 << 20


def parquet_of(**columns: Any) -> bytes:
    sink = io.BytesIO()
    write_parquet(read_ipc_stream(io.BytesIO(arrow(**columns))), sink)
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
        assert found.ids.listed() == ids.listed()


def test_a_dataset_comes_as_parquet(http: httpx.Client, standing: dict[str, str], name: str) -> None:
    made = put_parquet(http, name, parquet_of(v=ROWS, ids=WORDS))
    assert made.status_code == 201, made.text
    assert (made.json()["shape"], made.json()["dtype"], made.json()["ids"]) == ([7, 3], "float32", "string")
    answer = post(http, f"{standing['phase']}/transform", {"dataset": name}, JSON).json()
    assert answer["ids"] == WORDS.listed()
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


def test_columns_are_refused_by_name(http: httpx.Client, name: str) -> None:
    problem = assert_problem(http, put_parquet(http, name, parquet_of(v=ROWS, w=ROWS)), 422, "invalid-input")
    assert "column 'v' is fixed_size_list of float32, and not the only one" in problem["detail"]


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


@pytest.mark.nightly
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_published_writers_are_read_in_every_compression_and_encoding(
    http: httpx.Client, name: str, codec: str
) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    polars = pytest.importorskip("polars")
    words = WORDS.listed()
    lists = pa.FixedSizeListArray.from_arrays(ROWS.ravel(), 3)
    tables = [
        pa.table({"id": words, "v": lists}),
        pa.table({"id": words, "v": lists.cast(pa.list_(pa.float32()))}),
        pa.table({"id": words, **dict(zip("abc", ROWS.T, strict=True))}),
    ]
    options: list[dict[str, Any]] = [
        {},
        {"use_dictionary": False, "data_page_version": "2.0", "write_page_checksum": True},
        {"store_schema": False, "row_group_size": 2},
    ]
    digests = set()
    for i, table in enumerate(tables):
        for j, option in enumerate(options):
            sink = io.BytesIO()
            pq.write_table(table, sink, compression=codec, **option)
            made = put_parquet(http, f"{name}-{i}-{j}", sink.getvalue())
            assert made.status_code == 201, made.text
            digests.add(made.json()["digest"])
        if codec not in ("none", "brotli"):
            sink = io.BytesIO()
            polars.from_arrow(table).write_parquet(sink, compression=codec)
            digests.add(put_parquet(http, f"{name}-{i}-polars", sink.getvalue()).json()["digest"])
    assert len(digests) == 1, "they are the same rows with the same ids"


@pytest.mark.nightly
def test_hostile_files_are_refused_or_kept_and_take_no_memory(http: httpx.Client, running: Running) -> None:
    """Files of pyarrow of which some bytes are changed, so that they announce any length."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(4)
    goods = []
    for option in ({}, {"use_dictionary": False, "compression": "none"}, {"compression": "gzip"}):
        sink = io.BytesIO()
        table = pa.table({"id": WORDS.listed(), "v": pa.FixedSizeListArray.from_arrays(ROWS.ravel(), 3)})
        pq.write_table(table, sink, **option)
        goods.append(sink.getvalue())
    statuses: list[int] = []

    def send(client: httpx.Client) -> Sent:
        for _ in range(60):
            bad = bytearray(goods[rng.integers(len(goods))])
            for place in rng.integers(0, len(bad), rng.integers(1, 5)):
                bad[place] = rng.choice(np.array([0, 1, 127, 128, 255, rng.integers(0, 256)]))
            statuses.append(put_parquet(client, "hostile", bytes(bad)).status_code)
        return Sent(200, 0, 0)

    found = cost(running, send)
    http.delete("/v1/datasets/hostile")
    assert {*statuses} <= {200, 201, 409, 413, 422}
    assert statuses.count(422) > 20
    assert found.peak < 32 * MB
