import time
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pytest
import redis

from service_tests.api.routes.indexing import SIGNED, found, made, upserted
from service_tests.checks import assert_problem, keys, put
from service_tests.running import Running
from service_tests.servers import until

ROWS = np.array([[1.0, 2, 0, 0, 3], [1, 2, 0, 0.5, 3], [-1, 0, 4, 1, 0]])


def test_an_index_is_made_once_and_told_of(http: httpx.Client, name: str) -> None:
    path = made(http, name, bands=8, rows_per_band=4, keep="vectors")
    asked = {"map": name, "bands": 8, "rows_per_band": 4, "keep": "vectors"}
    again = http.put(path, json=asked)
    assert again.status_code == 200
    record = again.json()
    told = {"map": name, "keep": "vectors", "banding": "bands", "bands": 8, "rows_per_band": 4, "s": 64, "bits": 8}
    assert record.items() >= {**told, "name": name, "size": 0, "bytes": 0, "ttl": None, "expires_at": None}.items()
    upserted(http, path, [1, "1", 2], ROWS)
    now = http.get(path).json()
    assert (now["size"], now["bytes"] > 3 * 64) == (3, True)
    assert now.items() >= (record | {"size": 3, "bytes": now["bytes"]}).items()
    assert http.get("/v1/indexes", params={"prefix": name}).json() == {"indexes": [now], "next": None}
    for other in (asked | {"keep": "codes"}, asked | {"bands": 4}, {"map": name}):
        assert_problem(http, http.put(path, json=other), 409, "index-exists")
    assert http.put(path, json=asked, params={"ttl": 100}).json()["ttl"] == 100
    assert http.put(path, json=asked).json()["expires_at"] is None


def test_pages_of_indexes_go_on(http: httpx.Client, name: str) -> None:
    for i in range(3):
        made(http, f"{name}-{i}")
    first = http.get("/v1/indexes", params={"prefix": name, "limit": 2}).json()
    rest = http.get("/v1/indexes", params={"prefix": name, "limit": 2, "cursor": first["next"]}).json()
    assert [one["name"] for one in first["indexes"] + rest["indexes"]] == [f"{name}-{i}" for i in range(3)]
    assert rest["next"] is None


def test_ids_are_numbers_or_strings_and_never_the_same(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    ids = [7, "7", "a/b?c=%20", "..x", "-7", -7, "007", (1 << 64) - 1, "a", "a\n", "\na\0"]
    upserted(http, path, ids, [ROWS[0] + i for i in range(11)])
    assert set(found(http, path, ROWS[:1], k=20)[0]["ids"]) == {*ids}
    for one in ids:
        (result,) = found(http, path, [ROWS[0] + ids.index(one)], k=1)
        assert (result["ids"], type(result["ids"][0])) == ([one], type(one))
    for one in (7, "7", "a/b?c=%20", "..x", "-7", "007", "a\n", "\na\0"):
        address = f"{path}/vectors/{quote(str(one), safe='')}"
        params = {"kind": "string"} if one in ("7", "-7") else {}
        assert http.delete(address, params=params).status_code == 204
        assert_problem(http, http.delete(address, params=params), 404, "vector-not-found")
    assert set(found(http, path, ROWS[:1], k=20)[0]["ids"]) == {-7, (1 << 64) - 1, "a"}
    assert_problem(http, http.delete(f"{path}/vectors/007?kind=integer"), 422, "invalid-input")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"k": 3}, "/vectors"),
        ({"vectors": [[1] * 4]}, "/vectors/0"),
        ({"vectors": [[0] * 5]}, "/vectors/0"),
        ({"vectors": [[1] * 5], "k": 0}, "/k"),
        ({"vectors": [[1] * 5], "k": 1001}, "/k"),
        ({"vectors": [[1] * 5], "min_similarity": 2}, "/min_similarity"),
        ({"vectors": [[1] * 5], "exact": True}, "/exact"),
        ({"vectors": [[1] * 5], "tag": ""}, "/tag"),
        ({"vectors": [[1] * 5], "seed": 3}, "/seed"),
        ({"vectors": [[1] * 5], "top": 3}, "/top"),
    ],
)
def test_a_bad_search_is_refused_where_it_is_bad(http: httpx.Client, name: str, body: Any, pointer: str) -> None:
    path = made(http, name)
    assert_problem(http, http.post(f"{path}/search", json=body), 422, "invalid-input", pointer)


def test_an_index_that_cannot_be_is_refused(http: httpx.Client, name: str) -> None:
    gmm, cauchy = f"{name}-gmm", f"{name}-cauchy"
    made(http, gmm)
    assert put(http, cauchy, {**SIGNED, "kernel": {"kind": "cauchy", "length_scale": 1.0}, "s": 8}).status_code == 201
    path = f"/v1/indexes/{name}"
    for asked, pointer in (
        ({"map": gmm, "bands": 3}, "/rows_per_band"),
        ({"map": gmm, "rows_per_band": 3}, "/bands"),
        ({"map": gmm, "bands": 65, "rows_per_band": 1}, "/bands"),
        ({"map": gmm, "bands": 0, "rows_per_band": 1}, "/bands"),
        ({"map": gmm, "keep": "all"}, "/keep"),
        ({"map": gmm, "kept": "codes"}, "/kept"),
        ({}, "/map"),
        ({"map": cauchy}, ""),
    ):
        assert_problem(http, http.put(path, json=asked), 422, "invalid-input", pointer)
    assert_problem(http, http.put(path, json={"map": "none"}), 404, "map-not-found")
    assert_problem(http, http.get(path), 404, "index-not-found")
    for answer in (
        http.delete(path),
        http.post(f"{path}/vectors", json={"ids": [1], "vectors": [[1] * 5]}),
        http.post(f"{path}/search", json={"vectors": [[1] * 5]}),
        http.delete(f"{path}/vectors/1"),
    ):
        assert_problem(http, answer, 404, "index-not-found")


def test_a_map_with_indexes_stays_until_they_are_gone(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    made(http, f"{name}-2")
    assert http.put(f"/v1/indexes/{name}-3", json={"map": name}).status_code == 201
    told = assert_problem(http, http.delete(f"/v1/maps/{name}"), 409, "map-in-use")
    assert told["indexes"] == [name, f"{name}-3"]
    assert http.delete(path).status_code == 204
    assert assert_problem(http, http.delete(f"/v1/maps/{name}"), 409, "map-in-use")["indexes"] == [f"{name}-3"]
    assert http.delete(f"/v1/indexes/{name}-3").status_code == 204
    assert http.delete(f"/v1/maps/{name}").status_code == 204


def test_a_map_does_not_expire_while_an_index_is_over_it(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    spec = http.get(f"/v1/maps/{name}").json()["spec"]
    assert put(http, f"{name}?ttl=100", spec).status_code == 200
    record = http.get(f"/v1/maps/{name}").json()
    assert (record["ttl"], record["expires_at"]) == (100, None)
    assert http.delete(path).status_code == 204
    assert http.get(f"/v1/maps/{name}").json()["expires_at"] is not None


def test_nothing_is_left_of_a_deleted_index(http: httpx.Client, running: Running, name: str) -> None:

    with redis.Redis.from_url(running.socket) as store:
        path = made(http, name, keep="vectors")
        upserted(http, path, [*range(300), *map(str, range(300))], [ROWS[0] + i for i in range(600)], ["t"] * 600)
        assert http.delete(f"{path}/vectors/7").status_code == 204
        assert len([key for key in keys(store) if f":{name}}}".encode() in key]) > 100
        assert http.delete(path).status_code == 204
        assert http.delete(f"/v1/maps/{name}").status_code == 204
        assert not [key for key in keys(store) if f":{name}}}".encode() in key]


@pytest.mark.parametrize("part", ["codes.1", "ids.0", "ids.1", "revisions", "state"])
@pytest.mark.parametrize("value", [None, b"", b"\xff" * 200])
def test_what_is_damaged_in_the_store_is_said_to_be(
    http: httpx.Client, running: Running, name: str, part: str, value: bytes | None
) -> None:
    path = made(http, name, s=16)
    upserted(http, path, [*range(200)], np.ones((200, 5)))
    with redis.Redis.from_url(running.socket) as store:
        (key,) = (key for key in keys(store) if key.endswith(part.encode()) and f":{name}}}".encode() in key)
        store.delete(key)
        if value is not None:
            store.set(key, value)
        answer = http.post(f"{path}/search", json={"vectors": [[1] * 5]})
        assert_problem(
            http, answer, 503, "store-unavailable" if part == "state" and value is not None else "store-damaged"
        )
        store.delete(key)
    http.delete(path)


def test_a_vector_that_is_damaged_in_the_store_is_said_to_be(http: httpx.Client, running: Running, name: str) -> None:
    path = made(http, name, keep="vectors")
    upserted(http, path, [1], ROWS[:1])
    with redis.Redis.from_url(running.socket) as store:
        (key,) = (key for key in keys(store) if key.endswith(b"vectors.0") and f":{name}}}".encode() in key)
        for value in (b"", b"\0abc", b"\2\1\2\3\4\5", b"\2" + b"\7" * 8):
            store.hset(key, "0", value)
            answer = http.post(f"{path}/search", json={"vectors": [[1] * 5]})
            assert_problem(http, answer, 503, "store-damaged")


def test_queries_count_however_little_is_found_for_them(http: httpx.Client, name: str) -> None:
    path = made(http, name, keep="vectors")
    upserted(http, path, [1], ROWS[:1])
    body = b'{"vectors":[' + b",".join([b"[1,0,0,0,0]"] * 60_000) + b'],"k":1}'
    answer = http.post(f"{path}/search", content=body, headers={"Content-Type": "application/json"})
    assert assert_problem(http, answer, 413, "too-large")["limit"] == "max_operations"


@pytest.mark.nightly
def test_long_ids_count_in_the_length_of_an_answer(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    upserted(http, path, [f"{i}".rjust(1024) for i in range(1000)], [[1] * 5] * 1000)
    for n, status in ((20, 200), (300, 413)):
        answer = http.post(f"{path}/search", json={"vectors": [[1] * 5] * n, "k": 1000})
        assert answer.status_code == status
    assert assert_problem(http, answer, 413, "too-large")["limit"] == "max_result_bytes"


@pytest.mark.nightly
def test_an_index_goes_by_itself_when_it_is_not_used(http: httpx.Client, running: Running, name: str) -> None:
    path = made(http, name, ttl=1, keep="vectors")
    upserted(http, path, [*range(200)], np.ones((200, 5)))
    until(lambda: http.get(path).status_code == 404)  # which is no use
    assert_problem(http, http.post(f"{path}/search", json={"vectors": [[1] * 5]}), 404, "index-not-found")
    with redis.Redis.from_url(running.socket) as store:
        until(lambda: not [key for key in keys(store) if f"{{index:{name}}}".encode() in key])
    assert http.put(path, json={"map": name}).json()["size"] == 0


@pytest.mark.nightly
def test_a_use_lets_an_index_live_on(http: httpx.Client, name: str) -> None:
    path = made(http, name, ttl=2)
    upserted(http, path, [1], [[1] * 5])
    end = time.monotonic() + 3
    while time.monotonic() < end:
        assert len(found(http, path, [[1] * 5])[0]["ids"]) == 1
        time.sleep(0.2)
