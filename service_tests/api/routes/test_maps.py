import re
from typing import Any

import httpx
import redis

from service_tests.checks import JSON, assert_problem, keys, keys_of, put
from service_tests.races import deleted_at_once
from service_tests.running import Running


def test_a_doubtful_spec_is_built_with_a_warning(http: httpx.Client, name: str, gaussian: dict[str, Any]) -> None:
    warnings = put(http, name, {**gaussian, "s": 17}).json()["warnings"]
    assert len(warnings) == 1
    assert "power of two" in warnings[0]


def test_the_list_goes_on_from_page_to_page(http: httpx.Client, name: str, gmm: dict[str, Any]) -> None:
    names = [f"{name}.{letter}" for letter in "CaB_-z"]
    for one in names:
        assert put(http, one, gmm).status_code == 201
    query = {"prefix": f"{name}.", "limit": "3"}
    first = http.get("/v1/maps", params=query).json()
    assert set(first) == {"maps", "next"}
    last = http.get("/v1/maps", params={**query, "cursor": first["next"]}).json()
    assert [record["name"] for record in first["maps"] + last["maps"]] == sorted(names)
    assert last["next"] is None, "a full last page is the last"
    assert http.get(f"/v1/maps/{names[0]}").json() in first["maps"] + last["maps"]


def test_a_list_may_be_empty(http: httpx.Client) -> None:
    for query in ({"prefix": "no-such-map"}, {"cursor": "~"}, {"prefix": "\0"}, {"prefix": "é"}):
        assert http.get("/v1/maps", params=query).json() == {"maps": [], "next": None}


def test_a_deleted_map_leaves_nothing(
    http: httpx.Client, store: redis.Redis, name: str, gaussian: dict[str, Any]
) -> None:
    before = keys(store)
    assert put(http, name, gaussian).status_code == 201
    assert keys_of(store, name)
    deleted = http.delete(f"/v1/maps/{name}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert keys(store) == before | {b"bochner:maps"}
    assert store.zscore("bochner:maps", name) is None
    assert_problem(http, http.delete(f"/v1/maps/{name}"), 404, "map-not-found")


def test_of_many_deletes_at_once_one_succeeds(
    running: Running, http: httpx.Client, name: str, gaussian: dict[str, Any]
) -> None:
    assert put(http, name, gaussian).status_code == 201
    assert deleted_at_once(running, f"/v1/maps/{name}") == [204] + [404] * 15


def test_a_new_map_is_created_with_its_record_and_putting_it_again_changes_nothing(
    http: httpx.Client, store: redis.Redis, name: str, gaussian: dict[str, Any]
) -> None:
    answer = put(http, name, gaussian)
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/maps/{name}"
    assert answer.headers["content-type"] == JSON
    record = answer.json()
    assert answer.headers["etag"] == f'"{record["digest"]}"'
    assert (record["name"], record["status"]) == (name, "ready")
    assert record["spec"] == {
        "input_dim": 3,
        "kernel": {"kind": "gaussian", "length_scale": 1.5},
        "sampler": {"kind": "sobol", "scramble": True},
        "s": 16,
        "seed": 7,
        "form": "cos_sin",
        "normalize": False,
        "dtype": "float32",
    }
    assert (record["n_frequencies"], record["n_output"], record["bytes"]) == (16, 32, 4 * (16 * 3 + 16))
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", record["digest"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["created_at"])
    assert set(record["generator"]) == {"bochner", "numpy", "scipy"}
    assert http.get(answer.headers["location"]).json() == record
    before = keys(store)
    again = put(http, name, gaussian)
    assert again.status_code == 200
    assert again.json() == record
    assert again.headers["etag"] == answer.headers["etag"]
    assert "location" not in again.headers
    for other in ({"seed": 8}, {"s": 32}, {"form": "phase"}, {"dtype": "float64"}, {"sampler": {"kind": "halton"}}):
        assert_problem(http, put(http, name, {**gaussian, **other}), 409, "map-exists")
    assert keys(store) == before
    assert http.get(f"/v1/maps/{name}").json() == record
