"""Copies of indexes and measurements of recall over HTTP."""

import httpx
import numpy as np
import pytest

from service_tests.api.routes.indexing import GMM, found, made, upserted
from service_tests.checks import assert_problem, finished

ROWS = np.random.default_rng(4).gamma(2, size=(60, 5))
WAIT = {"Prefer": "wait=60"}


def test_a_copy_is_searched_like_the_index(http: httpx.Client, name: str) -> None:
    path = made(http, name, keep="vectors")
    upserted(http, path, [*range(60)], ROWS, [["a", "b"] if i % 2 else [] for i in range(60)])
    asked = {"from": name, "bands": 8, "rows_per_band": 1}
    answer = http.post(f"{path}-copy/copy", json=asked, params={"ttl": 500}, headers=WAIT)
    assert answer.status_code == 202
    job = answer.json()
    assert (job["kind"], job["state"], job["result"]) == ("copy-index", "succeeded", f"/v1/indexes/{name}-copy")
    assert job["subject"] == {"index": f"{name}-copy", "from": name}
    copy = http.get(f"{path}-copy").json()
    assert (copy["size"], copy["bands"], copy["keep"], copy["ttl"]) == (60, 8, "vectors", 500)
    options = {"k": 60, "scan": True, "include": ["tags"]}
    same, wanted = (found(http, at, ROWS[:3], **options) for at in (f"{path}-copy", path))
    for one, other in zip(same, wanted, strict=True):
        assert {*one["ids"]} == {*range(60)}
        assert [one[what] for what in ("exact", "tags")] == [other[what] for what in ("exact", "tags")]
    for onto in ("-copy", ""):  # changes made there later would be undone
        assert_problem(http, http.post(f"{path}{onto}/copy", json=asked), 409, "index-exists")
    assert http.put(f"{path}-empty", json={"map": name, "keep": "vectors"}).status_code == 201
    into = http.post(f"{path}-empty/copy", json={"from": name}, headers={"Prefer": "respond-async"})
    assert finished(http, into)["state"] == "succeeded"
    assert_problem(http, http.post(f"{path}-copy/copy", json={"from": name}), 409, "index-exists")
    assert_problem(http, http.post(f"{path}-new/copy", json={"from": f"{name}-none"}), 404, "index-not-found")
    for body, pointer in (({}, "/from"), ({"from": name, "bands": 0}, "/bands"), ({"from": name, "keep": ""}, "/keep")):
        assert_problem(http, http.post(f"{path}-new/copy", json=body), 422, "invalid-input", pointer)
    assert_problem(http, http.get(f"{path}-new"), 404, "index-not-found")


def test_a_copy_that_fails_tells_why(http: httpx.Client, name: str) -> None:
    signed = GMM | {"kernel": {"kind": "gaussian", "length_scale": 3.0}, "sampler": {"kind": "monte_carlo"}}
    path = made(http, name, of=signed, keep="vectors")
    upserted(http, path, ["one", "zero"], [ROWS[0], [0] * 5])
    made(http, f"{name}-gmm")
    job = http.post(f"{path}-copy/copy", json={"from": name, "map": f"{name}-gmm"}, headers=WAIT).json()
    assert job["state"] == "failed"
    assert "'zero' is all zero" in job["error"]["detail"]


def test_recall_is_measured(http: httpx.Client, name: str) -> None:
    path = made(http, name, keep="vectors", bands=3, rows_per_band=8)
    upserted(http, path, [*range(60)], ROWS)
    answer = http.post(f"{path}/recall", json={"k": 2, "queries": 50}, headers=WAIT)
    assert answer.status_code == 200
    told = answer.json()
    assert (told["queries"], told["size"], told["compared_with"]) == (50, 60, "vectors")
    assert told["recall"] + sum(told["lost_by"].values()) == pytest.approx(1)
    assert 0 < told["recall"] < 1
    for body, pointer in (({"k": 0}, "/k"), ({"queries": 1}, "/queries"), ({"seed": -1}, "/seed"), ({"of": 1}, "/of")):
        assert_problem(http, http.post(f"{path}/recall", json=body), 422, "invalid-input", pointer)
    few = http.post(f"{path}/recall", json={"k": 60}, headers=WAIT).json()
    assert (few["state"], few["error"]["pointer"]) == ("failed", "/k")
