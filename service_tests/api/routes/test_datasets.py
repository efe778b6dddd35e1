import re
from datetime import datetime
from operator import sub
from typing import Any

import httpx
import numpy as np
import pytest
import redis

from service_tests.cases import each
from service_tests.checks import ARROW, JSON, PARQUET, arrow, assert_problem, keys, keys_of, parquet_of, put_dataset
from service_tests.metered import samples, value
from service_tests.servers import until

ROWS = [[1, -2.5, 3], [4, 0, 3]]
SPARSE = {"input_dim": 3, "vectors": [{"indices": [0, 1], "values": [1, -2.5]}, {"indices": [2], "values": [4]}]}


def test_sparse_rows_are_kept_as_such(http: httpx.Client, name: str) -> None:
    record = put_dataset(http, name, SPARSE).json()
    assert (record["shape"], record["dtype"], record["sparse"]) == ([2, 3], "float64", True)
    assert record["column_ranges"] == [[0, 1], [-2.5, 0], [0, 4]]
    huge = {"input_dim": 1 << 31, "vectors": [{"indices": [5, (1 << 31) - 1], "values": [1, 2]}]}
    record = put_dataset(http, f"{name}-huge", huge).json()
    assert (record["shape"], record["column_ranges"]) == ([1, 1 << 31], None)


@each(
    ("came", "kept", "order"),
    [("<f4", "float32", "C"), ("<f8", "float64", "F"), (">f4", "float32", "F"), ("<i4", "float64", "C")],
)
def test_an_npy_keeps_its_precision(http: httpx.Client, name: str, came: str, kept: str, order: Any) -> None:
    rows, name = [[0.1, 2], [3, 4]], f"{name}-{came[1:]}-{order}"
    record = put_dataset(http, name, np.array(rows).astype(came, order=order)).json()
    assert record["dtype"] == kept
    assert record["column_ranges"] == [[float(np.array(0.1).astype(came)), 3], [2, 4]]
    assert put_dataset(http, name, np.array(rows).astype(came).astype(kept)).status_code == 200


def test_a_dataset_lives_as_long_as_was_said_last(http: httpx.Client, store: redis.Redis, name: str) -> None:
    def seconds(record: Any) -> float:
        return (datetime.fromisoformat(record["expires_at"]) - datetime.fromisoformat(record["created_at"])).seconds

    assert seconds(put_dataset(http, name, ROWS, ttl=1000).json()) == 1000
    longer = put_dataset(http, name, ROWS, ttl=5000)
    assert longer.status_code == 200
    assert 5000 <= seconds(longer.json()) < 5010
    assert all(4900 < store.ttl(key) <= 5000 for key in keys_of(store, name, "dataset"))
    assert put_dataset(http, name, ROWS).json()["expires_at"] is None
    put_dataset(http, name, ROWS, ttl=1)
    until(lambda: http.get(f"/v1/datasets/{name}").status_code == 404)
    assert_problem(http, http.get(f"/v1/datasets/{name}"), 404, "dataset-not-found")
    assert http.get("/v1/datasets", params={"prefix": name}).json()["datasets"] == []
    assert not keys_of(store, name, "dataset")
    assert put_dataset(http, name, [[1]]).status_code == 201


def test_a_deleted_dataset_leaves_nothing(http: httpx.Client, store: redis.Redis, name: str) -> None:
    before = keys(store)
    assert put_dataset(http, name, ROWS).status_code == 201
    deleted = http.delete(f"/v1/datasets/{name}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert keys(store) | {b"bochner:datasets"} == before | {b"bochner:datasets"}
    assert_problem(http, http.delete(f"/v1/datasets/{name}"), 404, "dataset-not-found")


@each("rows", [[], b"{", np.ones((0, 3)), np.ones(3), np.ones((2, 2), complex), np.array([[np.inf]])])
@pytest.mark.usefixtures("nothing_stored")
def test_what_can_be_no_dataset_is_refused(http: httpx.Client, name: str, rows: Any) -> None:
    assert_problem(http, put_dataset(http, name, rows), 422, "invalid-input")


@pytest.mark.usefixtures("nothing_stored")
def test_other_refusals_are_those_of_vectors(http: httpx.Client, name: str) -> None:
    path = f"/v1/datasets/{name}"
    text = http.put(path, content=b"1,2", headers={"Content-Type": "text/csv"})
    assert "pandas" in assert_problem(http, text, 415, "unsupported-media-type")["detail"]
    large = put_dataset(http, name, np.ones((1000, 251)))
    assert assert_problem(http, large, 413, "too-large")["setting"] == "BOCHNER_MAX_BODY_BYTES"
    assert_problem(http, put_dataset(http, "a b", ROWS), 422, "invalid-input")
    assert_problem(http, http.post(path), 405, "method-not-allowed")


def test_a_new_dataset_is_created_with_its_record_and_putting_it_again_changes_nothing(
    http: httpx.Client, store: redis.Redis, name: str
) -> None:
    answer = put_dataset(http, name, ROWS)
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/datasets/{name}"
    assert answer.headers["content-type"] == JSON
    record = answer.json()
    assert (record["name"], record["shape"], record["dtype"], record["sparse"]) == (name, [2, 3], "float64", False)
    assert record["column_ranges"] == [[1, 4], [-2.5, 0], [3, 3]]
    assert record["bytes"] == 8 * (6 + 6)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", record["digest"])
    assert http.get(answer.headers["location"]).json() == record
    before = keys(store)
    again = put_dataset(http, name, ROWS)
    assert (again.status_code, again.json()) == (200, record)
    assert "location" not in again.headers
    for other in (ROWS[:1], [[1, -2.5, 3], [4, 0, 2]], SPARSE, np.array(ROWS, np.float32)):
        problem = assert_problem(http, put_dataset(http, name, other), 409, "dataset-exists")
        assert record["digest"] in problem["detail"]
    assert keys(store) == before
    assert http.get(f"/v1/datasets/{name}").json() == record
    without_ranges = {member: value for member, value in record.items() if member != "column_ranges"}
    listed = http.get("/v1/datasets", params={"prefix": name, "limit": 1}).json()
    assert listed == {"datasets": [without_ranges], "next": None}


@pytest.mark.parametrize("kind", ["compute", "file"])
def test_rows_that_are_read_do_not_wait_for_another_turn_to_be_stored(http: httpx.Client, name: str, kind: str) -> None:
    columns = {"a": np.ones(3), "b": np.arange(3.0)}
    content, media = (arrow(**columns), ARROW) if kind == "compute" else (parquet_of(**columns), PARQUET)
    before = samples(http)
    assert http.put(f"/v1/datasets/{name}", content=content, headers={"Content-Type": media}).status_code == 201
    after = samples(http)
    for one in ("compute", "file"):
        turns = (value(found, "bochner_waited_seconds_count", waits_for=one) for found in (after, before))
        assert sub(*turns) == (one == kind)
