import re
from typing import Any

import httpx
import pytest
import redis

from service_tests.checks import JSON, assert_problem, keys, keys_of, put
from service_tests.races import deleted_at_once
from service_tests.running import Running

RECORD = {
    "name": str,
    "status": str,
    "spec": dict,
    "error": type(None),
    "n_frequencies": int,
    "n_output": int,
    "digest": str,
    "bytes": int,
    "created_at": str,
    "ttl": type(None),
    "expires_at": type(None),
    "generator": dict,
    "parameter_stream": type(None),
    "signature": type(None),
    "job": type(None),
    "report": type(None),
    "warnings": list,
}


def test_long_specs_are_shown_as_they_are_listed(http: httpx.Client, name: str) -> None:
    spec = {
        "input_dim": 16,
        "kernel": {"kind": "gaussian", "length_scale": 0.5},
        "sampler": {"kind": "uploaded", "frequencies": [[0.125 * i, 1e-9, 1 / 3, *[0] * 13] for i in range(2000)]},
    }
    created = put(http, name, spec)
    assert created.status_code == 201
    record = http.get(f"/v1/maps/{name}")
    assert record.json() == created.json() == put(http, name, spec).json()
    assert record.headers["etag"] == created.headers["etag"]
    assert http.get(f"/v1/maps?prefix={name}").json() == {"maps": [created.json()], "next": None}
    for known, status in ((record.headers["etag"], 304), ("*", 304), ('"other"', 200)):
        assert http.get(f"/v1/maps/{name}", headers={"If-None-Match": known}).status_code == status


def test_a_new_map_is_created_with_its_record(http: httpx.Client, name: str, gaussian: dict[str, Any]) -> None:
    answer = put(http, name, gaussian)
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/maps/{name}"
    assert answer.headers["content-type"] == JSON
    record = answer.json()
    assert {field: type(value) for field, value in record.items()} == RECORD
    assert answer.headers["etag"] == f'"{record["digest"]}"'
    assert record["name"] == name
    assert record["status"] == "ready"
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
    assert (record["n_frequencies"], record["n_output"]) == (16, 32)
    assert record["bytes"] == 4 * (16 * 3 + 16)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", record["digest"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["created_at"])
    assert set(record["generator"]) == {"bochner", "numpy", "scipy"}
    assert http.get(answer.headers["location"]).json() == record


@pytest.mark.parametrize("form", ["complex", "phase"])
def test_output_columns_follow_the_form(http: httpx.Client, name: str, gaussian: dict[str, Any], form: str) -> None:
    assert put(http, name, {**gaussian, "form": form}).json()["n_output"] == 16


def test_the_record_of_a_hashing_map_names_its_parameter_stream(
    http: httpx.Client, name: str, gmm: dict[str, Any]
) -> None:
    record = put(http, name, gmm).json()
    assert {field: type(value) for field, value in record.items()} == RECORD | {"parameter_stream": int}
    assert record["parameter_stream"] == 1
    assert record["bytes"] == 0
    assert (record["n_frequencies"], record["n_output"]) == (16, 16)
    assert http.get(f"/v1/maps/{name}").json() == record


def test_a_doubtful_spec_is_built_with_a_warning(http: httpx.Client, name: str, gaussian: dict[str, Any]) -> None:
    warnings = put(http, name, {**gaussian, "s": 17}).json()["warnings"]
    assert len(warnings) == 1
    assert "power of two" in warnings[0]


def test_putting_the_same_map_again_changes_nothing(
    http: httpx.Client, store: redis.Redis, name: str, gaussian: dict[str, Any]
) -> None:
    first = put(http, name, gaussian)
    before = keys(store)
    again = put(http, name, gaussian)
    assert again.status_code == 200
    assert again.json() == first.json()
    assert again.headers["etag"] == first.headers["etag"]
    assert "location" not in again.headers
    assert keys(store) == before


@pytest.mark.parametrize(
    "spelling",
    [
        {"kernel": {"kind": "gaussian", "sigma": 2}},
        {"kernel": {"kind": "gaussian", "gamma": 0.125}},
        {"kernel": {"length_scale": 2.0, "kind": "gaussian"}},
        {"form": "cos_sin", "normalize": False, "dtype": "float32"},
        {"sampler": {"kind": "sobol", "scramble": True}},
    ],
)
def test_another_spelling_of_a_map_is_the_same_map(
    http: httpx.Client, name: str, gaussian: dict[str, Any], spelling: dict[str, Any]
) -> None:
    spec = {**gaussian, "kernel": {"kind": "gaussian", "length_scale": 2}}
    assert put(http, name, spec).status_code == 201
    assert put(http, name, {**spec, **spelling}).status_code == 200


def test_another_map_does_not_get_a_name_that_is_taken(
    http: httpx.Client, store: redis.Redis, name: str, gaussian: dict[str, Any]
) -> None:
    first = put(http, name, gaussian).json()
    before = keys(store)
    for other in ({"seed": 8}, {"s": 32}, {"form": "phase"}, {"dtype": "float64"}, {"sampler": {"kind": "halton"}}):
        assert_problem(http, put(http, name, {**gaussian, **other}), 409, "map-exists")
    assert keys(store) == before
    assert http.get(f"/v1/maps/{name}").json() == first


def test_digests_are_equal_for_equal_maps_only(http: httpx.Client, name: str, gaussian: dict[str, Any]) -> None:
    specs = [gaussian, gaussian, {**gaussian, "seed": 8}, {**gaussian, "form": "phase"}]
    digests = [put(http, f"{name}-{i}", spec).json()["digest"] for i, spec in enumerate(specs)]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_who_knows_the_record_is_not_sent_it_again(http: httpx.Client, standing: dict[str, str]) -> None:
    path = f"/v1/maps/{standing['gmm']}"
    etag = http.get(path).headers["etag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = http.get(path, headers={"If-None-Match": known})
        assert answer.status_code == 304
        assert answer.content == b""
        assert answer.headers["etag"] == etag
    assert http.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_the_list_goes_on_from_page_to_page(http: httpx.Client, name: str, gmm: dict[str, Any]) -> None:
    names = [f"{name}.{letter}" for letter in "CaB_-z0"]
    for one in names:
        assert put(http, one, gmm).status_code == 201
    found: list[str] = []
    cursor: dict[str, str] = {}
    pages = 0
    while True:
        page = http.get("/v1/maps", params={"prefix": f"{name}.", "limit": 3, **cursor}).json()
        assert set(page) == {"maps", "next"}
        found += [record["name"] for record in page["maps"]]
        pages += 1
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert found == sorted(names)
    assert pages == 3
    record = http.get(f"/v1/maps/{names[0]}").json()
    assert record in http.get("/v1/maps", params={"prefix": f"{name}."}).json()["maps"]


def test_a_full_last_page_is_the_last(http: httpx.Client, name: str, gmm: dict[str, Any]) -> None:
    for letter in "ab":
        put(http, f"{name}.{letter}", gmm)
    assert http.get("/v1/maps", params={"prefix": f"{name}.", "limit": 2}).json()["next"] is None


@pytest.mark.parametrize("query", [{"prefix": "no-such-map"}, {"cursor": "~"}, {"prefix": "\0"}, {"prefix": "é"}])
def test_a_list_may_be_empty(http: httpx.Client, query: dict[str, str]) -> None:
    assert http.get("/v1/maps", params=query).json() == {"maps": [], "next": None}


@pytest.mark.parametrize("spec", ["gaussian", "gmm"])
def test_a_deleted_map_leaves_nothing(
    http: httpx.Client, store: redis.Redis, name: str, spec: str, request: pytest.FixtureRequest
) -> None:
    before = keys(store)
    assert put(http, name, request.getfixturevalue(spec)).status_code == 201
    assert keys_of(store, name)
    deleted = http.delete(f"/v1/maps/{name}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert keys(store) == before | {b"bochner:maps"}
    assert store.zscore("bochner:maps", name) is None
    assert_problem(http, http.delete(f"/v1/maps/{name}"), 404, "map-not-found")
    assert_problem(http, http.get(f"/v1/maps/{name}"), 404, "map-not-found")


def test_the_longest_and_oddest_names_serve(http: httpx.Client, gmm: dict[str, Any]) -> None:
    for name in ("0", "Z" * 128, "a.b_c-D.", "a..b"):
        answer = put(http, name, gmm)
        assert answer.status_code == 201
        assert http.get(answer.headers["location"]).json()["name"] == name
        assert http.delete(f"/v1/maps/{name}").status_code == 204


@pytest.mark.parametrize("prefer", ["", "respond-async"])
def test_of_many_deletes_at_once_one_succeeds(
    running: Running, http: httpx.Client, name: str, gaussian: dict[str, Any], prefer: str
) -> None:
    for _ in range(3):
        assert http.put(f"/v1/maps/{name}", json=gaussian, headers={"Prefer": prefer}).is_success
        assert deleted_at_once(running, f"/v1/maps/{name}") == [204] + [404] * 15
