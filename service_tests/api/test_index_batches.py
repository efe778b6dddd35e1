"""Batches of vectors come in any format, whole or not at all."""

import io
from typing import Any

import httpx
import numpy as np
import pytest
from arro3.core import Array, DataType, Table, fixed_size_list_array
from arro3.io import write_ipc_stream

from app.services.keys import AskedKey
from app.store.keys import Role
from service_tests.api.routes.indexing import GMM, found, made, npz, upserted
from service_tests.checks import ARROW, assert_problem, put, put_dataset
from service_tests.keyed import bearer
from service_tests.keyed import made as key_made
from service_tests.running import Running

ROWS = np.array([[1.0, 2, 0, 0, 3], [1, 2, 0, 0.5, 3], [-1, 0, 4, 1, 0]])


def arrow(**columns: list[int] | list[str] | list[str | None] | list[int | None]) -> bytes:
    """A stream of the rows, beside columns of strings, or of numbers, unsigned ones of 64 bits where they are large."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: Array(column, _type_of(column)) for name, column in columns.items()}
    arrays["v"] = fixed_size_list_array(Array(ROWS.ravel().tolist(), DataType.float64()), 5)
    write_ipc_stream(Table.from_pydict(arrays), buffer, compression=None)
    return buffer.getvalue()


def _type_of(column: list[Any]) -> DataType:
    if isinstance(column[0], str):
        return DataType.utf8()
    return DataType.uint64() if (column[-1] or 0) > 1 << 62 else DataType.int32()


def test_vectors_come_in_any_format(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    bodies = [
        (npz(ids=np.array(["x", "yé", "z"]), vectors=ROWS, tags=np.array(["t", "", "t"])), "application/x-npz"),
        (npz(ids=np.array([1, 2, 3], np.uint8), vectors=ROWS.astype("f4")), "application/x-npz"),
        (arrow(id=["p", "q", "ü"], tag=["t", "u", None]), ARROW),
        (arrow(id=[4, 5, 1 << 63]), ARROW),
    ]
    for body, content_type in bodies:
        answer = http.post(f"{path}/vectors", content=body, headers={"Content-Type": content_type})
        assert (answer.status_code, answer.json()) == (200, {"upserted": 3}), answer.text
    assert put_dataset(http, name, {"vectors": ROWS.tolist()}).status_code == 201
    answer = http.post(f"{path}/vectors", json={"ids": ["d", "e", "f"], "vectors": {"dataset": name}})
    assert answer.json() == {"upserted": 3}
    for row, same in zip(
        ROWS, ({"x", 1, "p", 4, "d"}, {"yé", 2, "q", 5, "e"}, {"z", 3, "ü", 1 << 63, "f"}), strict=True
    ):
        (result,) = found(http, path, [row], k=5)
        assert ({*result["ids"]}, {*result["similarity"]}) == (same, {1.0})
    assert {*found(http, path, ROWS[:1], tag="t")[0]["ids"]} == {"x", "z", "p"}
    upserted(http, path, [], np.empty((0, 5)))


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"vectors": [[1] * 5]}, "/ids"),
        ({"ids": [1], "vectors": [[1] * 4]}, "/vectors/0"),
        ({"ids": [1], "vectors": [[0] * 5]}, "/vectors/0"),
        ({"ids": [1, 2], "vectors": [[1] * 5]}, "/ids"),
        ({"ids": [1, 1], "vectors": [[1] * 5] * 2}, "/ids/1"),
        ({"ids": [1.0], "vectors": [[1] * 5]}, "/ids/0"),
        ({"ids": [1], "vectors": [[1] * 5], "tags": [7]}, "/tags/0"),
        ({"ids": [1], "vectors": [[1] * 5], "tags": []}, "/tags"),
        ({"ids": [1], "vectors": [[1] * 5], "tag": ["a"]}, "/tag"),
    ],
)
def test_a_bad_batch_is_refused_where_it_is_bad_and_nothing_of_it_kept(
    http: httpx.Client, name: str, body: Any, pointer: str
) -> None:
    path = made(http, name)
    good = {"ids": ["good"], "vectors": [[1] * 5]}
    assert http.post(f"{path}/vectors", json=good).is_success
    assert_problem(http, http.post(f"{path}/vectors", json=body), 422, "invalid-input", pointer)
    assert http.get(path).json()["size"] == 1


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (npz(ids=np.array([1.0, 2, 3]), vectors=ROWS), "application/x-npz"),
        (npz(ids=np.array([[1], [2], [3]]), vectors=ROWS), "application/x-npz"),
        (npz(ids=np.arange(3), vectors=ROWS.astype("U8")), "application/x-npz"),
        (npz(ids=np.arange(3), vectors=ROWS, tags=np.arange(3)), "application/x-npz"),
        (npz(vectors=ROWS), "application/x-npz"),
        (arrow(id=[1, 2, 3], tag=[1, 2, 3]), ARROW),
        (arrow(id=[1, 2, None]), ARROW),
    ],
)
def test_ids_and_tags_that_are_none_are_refused_in_every_format(
    http: httpx.Client, name: str, body: bytes, content_type: str
) -> None:
    path = made(http, name)
    answer = http.post(f"{path}/vectors", content=body, headers={"Content-Type": content_type})
    assert_problem(http, answer, 422, "invalid-input")
    assert http.get(path).json()["size"] == 0


def test_too_many_at_once_are_refused(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    body = npz(ids=np.arange(10_001), vectors=np.ones((10_001, 5), np.uint8))
    answer = http.post(f"{path}/vectors", content=body, headers={"Content-Type": "application/x-npz"})
    told = assert_problem(http, answer, 413, "too-large")
    assert (told["limit"], told["value"], told["setting"]) == ("max_index_batch", 10_000, "BOCHNER_MAX_INDEX_BATCH")
    assert http.get(path).json()["size"] == 0


def test_a_batch_past_the_quota_of_its_owner_is_refused_whole(http: httpx.Client, running: Running, name: str) -> None:
    spec = {**GMM, "s": 64}
    assert put(http, name, spec).status_code == 201
    key = key_made(running.socket, AskedKey(name=name, role=Role.write, quota=90_000)).key
    with running.client(**bearer(key)) as owner:
        path = f"/v1/indexes/{name}"
        assert owner.put(path, json={"map": name}).status_code == 201
        upserted(owner, path, [*range(300)], np.ones((300, 5)))
        body = {"ids": [*range(200, 500)], "vectors": np.ones((300, 5)).tolist()}
        told = assert_problem(http, owner.post(f"{path}/vectors", json=body), 507, "quota")
        assert (told["limit"], told["value"]) == ("key_bytes", 90_000)
        assert http.get(path).json()["size"] == 300
        other = key_made(running.socket, AskedKey(name=f"{name}-other", role=Role.write, quota=1000))
        with running.client(**bearer(other.key)) as writer:  # what others have made has no room for it
            told = assert_problem(http, writer.post(f"{path}/vectors", json=body), 507, "quota")
            assert (told["limit"], told["value"]) == ("key_bytes", 1000)
        assert owner.delete(f"{path}/vectors/3").status_code == 204
        assert owner.delete(path).status_code == 204
        assert owner.put(path, json={"map": name}).status_code == 201
        assert owner.post(f"{path}/vectors", json=body).status_code == 200


def test_vectors_keep_their_tags_unless_tags_are_sent(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    upserted(http, path, [1, 2, 3], np.eye(5)[:3], ["a", "a", "a"])
    upserted(http, path, [2, 4], np.eye(5)[3:])
    upserted(http, path, [3], np.eye(5)[2:3], [None])
    (result,) = found(http, path, np.ones((1, 5)), tag="a")
    assert {*result["ids"]} == {1, 2}
    assert http.delete(f"{path}/vectors/1").status_code == 204
    upserted(http, path, [5], np.eye(5)[:1])  # where the last vector was, which had a tag
    (result,) = found(http, path, np.ones((1, 5)), tag="a")
    assert result["ids"] == [2]


def test_all_zero_rows_are_all_named_or_left_out(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    rows = np.eye(5)
    rows[[1, 3]] = 0
    body = {"ids": [10, "b", 12, 13, 14], "vectors": rows.tolist(), "tags": ["a", "a", None, "a", "a"]}
    refused = assert_problem(http, http.post(f"{path}/vectors", json=body), 422, "invalid-input", "/vectors/1")
    assert [one["pointer"] for one in refused["errors"]] == ["/vectors/1", "/vectors/3"]
    left = http.post(f"{path}/vectors?on_zero=skip", json=body).json()
    assert left == {"upserted": 3, "skipped": ["b", 13]}
    (result,) = found(http, path, np.ones((1, 5)), tag="a")
    assert {*result["ids"]} == {10, 14}


def test_vectors_of_more_than_a_megabyte_are_not_kept(http: httpx.Client, name: str) -> None:
    """A deletion writes another vector again: 131,071 entries of single precision are the most."""
    spec = {**GMM, "input_dim": 200_000, "s": 16}
    assert put(http, name, spec).status_code == 201
    path = f"/v1/indexes/{name}"
    assert http.put(path, json={"map": name, "keep": "vectors"}).status_code == 201
    long = {"indices": [*range(131_071)], "values": [0.1] * 131_071}
    body = {"ids": [1, 2, 3], "vectors": [{"indices": [3], "values": [1.0]}, {"indices": [], "values": []}, long]}
    answer = http.post(f"{path}/vectors?on_zero=skip", json=body)
    told = assert_problem(http, answer, 422, "invalid-input", "/vectors/2")
    assert "at most 1048576 bytes in an index that keeps them, got 1572853" in told["detail"]
    long["values"] = [0.5] * 131_071  # in single precision
    assert http.post(f"{path}/vectors?on_zero=skip", json=body).status_code == 200


def test_vectors_that_are_like_others_are_refused(http: httpx.Client, name: str) -> None:
    path, rows = made(http, name, keep="vectors"), [[1.0, 2, 0, 0, 1], [1, 2, 0, 0, 1.01], [-5, 0, 1, 1, 0]]
    body = {"ids": [3, "a", 1], "vectors": rows, "tags": ["x", "y", None]}
    told = {"id": "a", "like": 3, "similarity": 1.0, "exact": pytest.approx(4 / 4.01)}
    for dry in ("true", "false"):
        query = {"unless_similar": "0.9", "dry_run": dry}
        answer = http.post(f"{path}/vectors", json=body, params=query).json()
        answer["refused"][0]["similarity"] = round(answer["refused"][0]["similarity"], 1)
        assert answer == {"upserted": 2, "inserted": [3, 1], "refused": [told]}
        assert http.get(path).json()["size"] == (0 if dry == "true" else 2)
    assert http.post(f"{path}/vectors", json=body, params={"dry_run": "true"}).json() == {"upserted": 3}
    assert http.get(path).json()["size"] == 2
    for bad in ("0", "1.1", "nan", "x"):
        refused = http.post(f"{path}/vectors", json=body, params={"unless_similar": bad})
        assert_problem(http, refused, 422, "invalid-input")


def test_an_index_gets_bands_for_a_similarity(http: httpx.Client, name: str) -> None:
    assert put(http, name, {**GMM, "s": 128}).status_code == 201
    path, target = f"/v1/indexes/{name}", {"min_similarity": 0.8, "recall": 0.95}
    record = http.put(path, json={"map": name, "target": target}).json()
    assert (record["status"], record["banding"], record["serves"]) == ("ready", "bands", True)
    planned = http.post("/v1/bands", json={"hashes": 128, **target}).json()
    assert (planned["bands"], planned["rows_per_band"], planned["serves"]) == (13, 7, True)
    assert planned["recall"] == pytest.approx(1 - (1 - 0.8**7) ** 13)
    assert (record["bands"], record["rows_per_band"]) == (13, 7)
    for point in planned["curve"]:
        assert point["recall"] == pytest.approx(1 - (1 - point["similarity"] ** 7) ** 13)
    assert not http.post("/v1/bands", json={"hashes": 2, "min_similarity": 0.1, "recall": 0.9}).json()["serves"]
    for bad, at in (({"k": 3}, "min_similarity"), ({"dataset": "d"}, "min_similarity")):
        refused = http.put(f"{path}-x", json={"map": name, "target": {**target, **bad}})
        assert_problem(http, refused, 422, "invalid-input", f"/target/{at}")
    refused = http.put(f"{path}-x", json={"map": name, "target": {"recall": 0.9, "k": 3}})
    assert_problem(http, refused, 422, "invalid-input", "/target/dataset")
    assert_problem(http, http.post("/v1/bands", json={"hashes": 0, **target}), 422, "invalid-input", "/hashes")
