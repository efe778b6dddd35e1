from urllib.parse import quote

import httpx
import numpy as np
import redis

from app.store.indexes import IndexStore
from service_tests.api.routes.indexing import GMM, SIGNED, found, made, upserted
from service_tests.cases import each
from service_tests.checks import assert_problem, keys, put

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


def test_ids_are_numbers_or_strings_and_never_the_same(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    ids = [7, "7", "a/b?c=%20", "..x", "-7", -7, "007", (1 << 64) - 1, "a", "a\n", "\na\0"]
    upserted(http, path, ids, [ROWS[0] + i for i in range(11)])
    assert set(found(http, path, ROWS[:1], k=20)[0]["ids"]) == {*ids}
    for one in (7, "7", "a/b?c=%20", "..x", "-7", "007", "a\n", "\na\0"):
        address = f"{path}/vectors/{quote(str(one), safe='')}"
        params = {"kind": "string"} if one in ("7", "-7") else {}
        assert http.delete(address, params=params).status_code == 204
        assert_problem(http, http.delete(address, params=params), 404, "vector-not-found")
    assert set(found(http, path, ROWS[:1], k=20)[0]["ids"]) == {-7, (1 << 64) - 1, "a"}


def test_a_bad_search_is_refused_where_it_is_bad(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    for body, pointer in (
        ({"k": 3}, "/vectors"),
        ({"vectors": [[1] * 4]}, "/vectors/0"),
        ({"vectors": [[1] * 5], "k": 1001}, "/k"),
        ({"vectors": [[1] * 5], "min_similarity": 2}, "/min_similarity"),
        ({"vectors": [[1] * 5], "exact": True}, "/exact"),
        ({"vectors": [[1] * 5], "tag": ""}, "/tag"),
        ({"vectors": [[1] * 5], "top": 3}, "/top"),
    ):
        assert_problem(http, http.post(f"{path}/search", json=body), 422, "invalid-input", pointer)


def test_an_index_that_cannot_be_is_refused(http: httpx.Client, name: str) -> None:
    gmm, cauchy, wide = f"{name}-gmm", f"{name}-cauchy", f"{name}-wide"
    assert put(http, wide, {**GMM, "s": 65_537}).status_code == 201
    made(http, gmm)
    assert put(http, cauchy, {**SIGNED, "kernel": {"kind": "cauchy", "length_scale": 1.0}, "s": 8}).status_code == 201
    path = f"/v1/indexes/{name}"
    for asked, pointer in (
        ({"map": gmm, "bands": 3}, "/rows_per_band"),
        ({"map": gmm, "bands": 65, "rows_per_band": 1}, "/bands"),
        ({"map": gmm, "keep": "all"}, "/keep"),
        ({"map": cauchy}, ""),
        ({"map": wide}, "/map"),
    ):
        assert_problem(http, http.put(path, json=asked), 422, "invalid-input", pointer)
    assert_problem(http, http.put(path, json={"map": "none"}), 404, "map-not-found")
    for answer in (
        http.get(path),
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


@each(
    ("part", "value"),
    [("codes.1", None), ("codes.1", b"\xff" * 200), ("ids.0", b"\xff" * 200), ("revisions", b""), ("state", None)],
)
def test_what_is_damaged_in_the_store_is_said_to_be(
    http: httpx.Client, store: redis.Redis, name: str, part: str, value: bytes | None
) -> None:
    name += f"-{part}-{len(value or b'')}"
    path = made(http, name, s=16)
    made(http, f"{name}-intact", s=16)
    upserted(http, path, [*range(200)], np.ones((200, 5)))
    (key,) = (key for key in keys(store) if key.endswith(part.encode()) and f":{name}}}".encode() in key)
    store.delete(key)
    if value is not None:
        store.set(key, value)
    assert_problem(http, http.post(f"{path}/search", json={"vectors": [[1] * 5]}), 503, "store-damaged")
    listed = http.get("/v1/indexes", params={"prefix": name}).json()["indexes"]
    assert [one["name"] for one in listed] == [name, f"{name}-intact"][part == "state" :]
    (told,) = IndexStore(store).damages()
    assert f"index {name!r}" in told
    store.delete(key)
    http.delete(path)


def test_bands_of_queries_and_sparse_vectors_made_dense_count(http: httpx.Client, name: str) -> None:
    one = {"indices": [0], "values": [0.5]}
    spec = {"sampler": {"kind": "monte_carlo"}, "kernel": {"kind": "gaussian", "length_scale": 1000.0}}
    for kind, n, fields, index in (
        ("bands", 1, {"input_dim": 1, "s": 65536}, {"bands": 65536, "rows_per_band": 1}),
        ("dense", 2000, {"input_dim": 1_000_000, "s": 1}, {"keep": "vectors"}),
    ):
        path = f"/v1/indexes/{name}-{kind}"
        assert put(http, f"{name}-{kind}", spec | fields).status_code == 201
        http.put(path, json={"map": f"{name}-{kind}"} | index).raise_for_status()
        http.post(f"{path}/vectors", json={"ids": [*range(n)], "vectors": [one] * n}).raise_for_status()
    asked = {"k": 1, "vectors": [one] * 30_000}
    told = assert_problem(http, http.post(f"/v1/indexes/{name}-bands/search", json=asked), 413, "too-large")
    assert told["limit"] == "max_operations"
    path = f"/v1/indexes/{name}-dense/search"
    told = assert_problem(http, http.post(path, json={"k": 400, "vectors": [one]}), 413, "too-large")
    assert told["limit"] == "max_operations"
    (found,) = http.post(path, json={"k": 2, "vectors": [one]}).raise_for_status().json()["results"]
    assert found["exact"] == [1.0, 1.0]


def test_queries_count_however_little_is_found_for_them(http: httpx.Client, name: str) -> None:
    path = made(http, name, keep="vectors")
    upserted(http, path, [1], ROWS[:1])
    body = b'{"vectors":[' + b",".join([b"[1,0,0,0,0]"] * 60_000) + b'],"k":1}'
    answer = http.post(f"{path}/search", content=body, headers={"Content-Type": "application/json"})
    assert assert_problem(http, answer, 413, "too-large")["limit"] == "max_operations"
