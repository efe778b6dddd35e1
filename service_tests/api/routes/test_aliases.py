"""Aliases stand for maps and indexes wherever these are named."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.api.routes.indexing import GMM, found, made, upserted
from service_tests.checks import assert_problem, finished, put, put_dataset
from service_tests.races import at_once

ROWS = np.array([[1.0, 2, 0, 0, 3], [1, 2, 0, 0.5, 3], [1, 0, 4, 1, 0]])


def test_an_alias_of_a_map_moves_at_once(http: httpx.Client, name: str) -> None:
    maps, path = [f"{name}-{seed}" for seed in (1, 2)], f"/v1/aliases/{name}"
    for seed, one in enumerate(maps):
        assert put(http, one, GMM | {"s": 16, "seed": seed}).status_code == 201
    codes = [http.post(f"/v1/maps/{one}/codes", json={"vectors": ROWS.tolist()}).json() for one in maps]
    put_first = http.put(path, json={"map": maps[0]})
    first = put_first.json()
    assert (put_first.status_code, put_first.headers["Location"]) == (201, path)
    assert first.items() >= {"name": name, "map": maps[0], "index": None}.items()
    assert put_first.headers["ETag"] == f'"{first["digest"]}"'
    again = http.put(path, json={"map": maps[0]})
    assert (again.status_code, again.json()) == (200, first)
    for _ in range(2):  # the second time from memory
        assert http.post(f"/v1/maps/{name}/codes", json={"vectors": ROWS.tolist()}).json() == codes[0]
    assert http.get(f"/v1/maps/{name}").json()["name"] == maps[0]
    assert http.get(f"/v2/models/{name}/ready").json()["ready"]
    other = {"If-Match": '"sha256:other"'}
    assert_problem(http, http.put(path, json={"map": maps[1]}, headers=other), 412, "precondition-failed")
    moved = http.put(path, json={"map": maps[1]}, headers={"If-Match": put_first.headers["ETag"]})
    assert (moved.status_code, moved.json()["map"]) == (200, maps[1])
    assert http.post(f"/v1/maps/{name}/codes", json={"vectors": ROWS.tolist()}).json() == codes[1]
    assert_problem(
        http, http.put(path, json={"map": maps[0]}, headers={"If-None-Match": "*"}), 412, "precondition-failed"
    )
    assert http.get(path, headers={"If-None-Match": moved.headers["ETag"]}).status_code == 304
    refused = http.delete(f"/v1/maps/{maps[1]}")
    assert_problem(http, refused, 409, "map-in-use")
    assert refused.json()["aliases"] == [name]
    assert http.delete(f"/v1/maps/{maps[0]}").status_code == 204
    assert http.delete(path).status_code == 204
    assert_problem(http, http.get(path), 404, "alias-not-found")
    assert_problem(http, http.delete(path), 404, "alias-not-found")
    assert_problem(http, http.get(f"/v1/maps/{name}"), 404, "map-not-found")
    assert http.delete(f"/v1/maps/{maps[1]}").status_code == 204


def test_an_alias_of_an_index_moves_at_once(http: httpx.Client, name: str) -> None:
    one, two = made(http, f"{name}-1"), made(http, f"{name}-2", keep="vectors")
    alias, path = f"/v1/aliases/{name}", f"/v1/indexes/{name}"
    assert http.put(alias, json={"index": f"{name}-1"}).status_code == 201
    upserted(http, path, [1, 2], ROWS[:2])
    assert http.get(path).json() == http.get(one).json()
    assert found(http, path, ROWS[:1], k=1)[0]["ids"] == [1]
    assert http.put(alias, json={"index": f"{name}-2"}).status_code == 200
    assert found(http, path, ROWS[:1], k=1)[0]["ids"] == []
    upserted(http, path, [3], ROWS[:1])
    assert found(http, two, ROWS[:1], k=1)[0]["ids"] == [3]
    answer = http.delete(two)
    assert_problem(http, answer, 409, "index-in-use")
    assert answer.json()["aliases"] == [name]
    assert http.delete(one).status_code == 204
    assert http.delete(f"{path}/vectors/3").status_code == 204
    assert_problem(http, http.put(alias, json={"map": f"{name}-2"}), 409, "index-exists")
    assert http.delete(alias).status_code == 204
    assert http.delete(two).status_code == 204


def test_a_name_is_an_alias_of_one_kind(http: httpx.Client, name: str) -> None:
    made(http, name)
    path, first = f"/v1/aliases/{name}-alias", {"If-None-Match": "*"}
    for _ in range(20):
        answers = at_once(2, lambda i: http.put(path, json={("map", "index")[i]: name}, headers=first))
        assert sorted(one.status_code for one in answers)[0] == 201, [one.text for one in answers]
        assert sorted(one.status_code for one in answers)[1] in (409, 412)
        made_of = next(one.json() for one in answers if one.status_code == 201)
        assert http.get(path).json() == made_of
        assert http.delete(path).status_code == 204
        assert_problem(http, http.get(path), 404, "alias-not-found")
    for kind in ("maps", "indexes"):  # nothing is left that refers to them
        assert_problem(
            http, http.get(f"/v1/{kind}/{name}-alias"), 404, f"{kind.removesuffix('s').removesuffix('e')}-not-found"
        )
    assert http.delete(f"/v1/indexes/{name}").status_code == 204
    assert http.delete(f"/v1/maps/{name}").status_code == 204


def test_names_are_shared(http: httpx.Client, name: str) -> None:
    index = made(http, name)
    assert http.put(f"/v1/aliases/{name}-m", json={"map": name}).status_code == 201
    assert http.put(f"/v1/aliases/{name}-i", json={"index": name}).status_code == 201
    for alias, kind in (("-m", "map"), ("-i", "index")):
        plural = {"map": "maps", "index": "indexes"}[kind]
        body: Any = GMM | {"s": 8} if kind == "map" else {"map": name}
        assert_problem(http, http.put(f"/v1/aliases/{name}", json={kind: name}), 409, f"{kind}-exists")
        assert_problem(http, http.put(f"/v1/{plural}/{name}{alias}", json=body), 409, f"{kind}-exists")
        assert_problem(http, http.delete(f"/v1/{plural}/{name}{alias}"), 409, f"{kind}-exists")
    # An index is over the map itself, which no move of the alias changes.
    over = http.put(f"{index}-over", json={"map": f"{name}-m"})
    assert (over.status_code, over.json()["map"]) == (201, name)
    assert http.put(f"{index}-over", json={"map": name}).status_code == 200
    chained = http.put(f"/v1/aliases/{name}-2", json={"index": f"{name}-i"})
    assert chained.json()["index"] == name
    page = http.get("/v1/aliases", params={"prefix": f"{name}-", "limit": 2}).json()
    rest = http.get("/v1/aliases", params={"prefix": f"{name}-", "limit": 2, "cursor": page["next"]}).json()
    assert [one["name"] for one in page["aliases"] + rest["aliases"]] == [f"{name}-{end}" for end in ("2", "i", "m")]
    assert rest["next"] is None


@pytest.mark.usefixtures("nothing_stored")
def test_what_an_alias_cannot_stand_for(http: httpx.Client, name: str) -> None:
    path = f"/v1/aliases/{name}"
    for body, pointer in (({}, ""), ({"map": "m", "index": "i"}, ""), ({"map": "a/b"}, "/map"), ({"to": "m"}, "/to")):
        assert_problem(http, http.put(path, json=body), 422, "invalid-input", pointer)
    for kind in ("map", "index"):
        assert_problem(http, http.put(path, json={kind: f"{name}-none"}), 404, f"{kind}-not-found")


def test_a_job_goes_on_with_what_the_alias_stood_for(http: httpx.Client, name: str) -> None:
    for seed in (1, 2):
        made(http, f"{name}-{seed}", of=GMM | {"seed": seed})
    for kind, alias in (("index", name), ("map", f"{name}-map")):
        assert http.put(f"/v1/aliases/{alias}", json={kind: f"{name}-1"}).status_code == 201
    upserted(http, f"/v1/indexes/{name}", [1, 2], ROWS[[0, 0]])
    assert put_dataset(http, name, np.abs(np.random.default_rng(3).normal(size=(200, 5)))).status_code == 201
    job = {"Prefer": "respond-async"}
    asked = [
        http.post(f"/v1/indexes/{name}/duplicates", json={"min_similarity": 0.9}, headers=job),
        http.post(
            "/v1/indexes/advice", json={"map": f"{name}-map", "dataset": name, "recall": 0.5, "k": 1}, headers=job
        ),
        http.post(f"/v1/maps/{name}-map/diagnostics/gram", json={"vectors": ROWS.tolist()}, headers=job),
    ]
    for kind, alias in (("index", name), ("map", f"{name}-map")):
        assert http.put(f"/v1/aliases/{alias}", json={kind: f"{name}-2"}).status_code == 200
    assert [one.status_code for one in asked] == [202] * 3
    ended = [finished(http, one) for one in asked]
    assert [one["state"] for one in ended] == ["succeeded"] * 3
    assert [one["subject"].get("index", one["subject"].get("map")) for one in ended] == [f"{name}-1"] * 3
    assert http.get(f"{asked[0].headers['Location']}/result").json()["clusters"] == [[1, 2]]
