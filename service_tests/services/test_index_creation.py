"""Indexes with a target over HTTP: the adviser chooses their bands, and searches find what was wanted."""

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.container import Container
from app.core.errors import InvalidInput
from app.core.progress import Progress
from app.services import index_jobs
from app.services.aliases import AskedAlias
from app.services.indexes import AskedIndex, Indexes, Searching
from app.services.keys import AskedKey
from app.settings import Settings
from app.store.account import Account
from app.store.connection import connect
from app.store.keys import Role
from service_tests.api.routes.indexing import found, upserted
from service_tests.checks import assert_problem, finished, put, put_dataset
from service_tests.keyed import bearer
from service_tests.keyed import made as key_made
from service_tests.running import Running
from service_tests.services.crowds import GMM, service_with

LETTERS = np.load(Path(__file__).parents[2] / "examples" / "letters.npy").astype(np.float64)
ROWS = (LETTERS - LETTERS.mean(axis=0)) / LETTERS.std(axis=0)
HASHES: dict[str, Any] = {"input_dim": 16, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 256}


def asked(name: str, recall: float = 0.9, k: int = 5, **others: Any) -> dict[str, Any]:
    """The body of an index with a target."""
    return {"map": name, "keep": "vectors", "target": {"recall": recall, "k": k, "dataset": name}, **others}


@pytest.fixture
def there(http: httpx.Client, name: str) -> str:
    """The name of a map, and of a dataset of letters without the last three hundred."""
    assert put(http, name, HASHES).status_code == 201
    assert put_dataset(http, name, ROWS[:1700]).status_code == 201
    return name


@pytest.mark.gate
def test_searches_find_what_the_target_wants(http: httpx.Client, there: str) -> None:
    path = f"/v1/indexes/{there}"
    made = http.put(path, json=asked(there))
    assert (made.status_code, made.headers["Location"]) == (201, path), made.text
    record = made.json()
    assert (record["bands"] is None) == (record["banding"] == "scan")
    assert record["serves"]
    assert http.put(path, json=asked(there)).json() == record, "it is found without advice, whatever that would say now"
    for other in (asked(there, recall=0.91), asked(there, keep="codes"), {"map": there}):
        assert_problem(http, http.put(path, json=other), 409, "index-exists")
    upserted(http, path, list(range(1700)), ROWS[:1700])
    queries = ROWS[1700:1800]
    gram = np.array(
        http.post(
            f"/v1/maps/{there}/kernel?exact=true", json={"x": queries.tolist(), "y": ROWS[:1700].tolist()}
        ).json()["exact"]
    )
    near = np.sort(gram, axis=1)[:, -5:]
    results = found(http, path, queries, k=5)
    shares = [(np.array(one["exact"]) >= least - 1e-9).mean() for one, least in zip(results, near[:, 0], strict=True)]
    # Of 100 queries, whose shares have a standard deviation of some .15.
    assert np.mean(shares) > 0.9 - 2 * 0.015
    if record["banding"] == "bands":
        assert np.mean([one["candidates"] for one in results]) < 0.16 * 1700


def test_a_job_makes_it_for_its_owner_where_that_is_wanted(http: httpx.Client, running: Running, there: str) -> None:
    path = f"/v1/indexes/{there}"
    key = key_made(running.socket, AskedKey(name=there, role=Role.write))
    with running.client(**bearer(key.key)) as owner:
        taken = owner.put(path, json=asked(there), params={"ttl": 600}, headers={"Prefer": "respond-async"})
    assert (taken.status_code, taken.headers["Preference-Applied"]) == (202, "respond-async")
    link = taken.json()["job"]
    job = finished(http, httpx.Response(202, headers={"Location": link}))
    assert (job["kind"], job["subject"], job["state"]) == ("put-index", {"index": there}, "succeeded")
    with connect(running.socket, 5) as client:
        assert Account(client).usage(key.id).names == 2, "the index and the job are hers"
    result = http.get(f"{link}/result", follow_redirects=False)
    assert (result.status_code, result.headers["Location"]) == (303, path)
    record = http.get(path).json()
    assert (record["ttl"], record["keep"]) == (600, "vectors")
    again = http.put(path, json=asked(there), params={"ttl": 600}, headers={"Prefer": "respond-async"})
    assert (again.status_code, again.json()["bands"]) == (200, record["bands"])


def test_an_index_is_over_the_map_that_was_measured_though_its_alias_moves(
    http: httpx.Client, running: Running, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert put(http, f"{there}-other", HASHES | {"seed": 9}).status_code == 201
    service = Container(Settings(redis_url=running.socket))
    name, searching = f"{there}-alias", index_jobs._searching

    def move(to: str) -> None:
        service.aliases.put(name, AskedAlias(map=to))

    def search_and_move(*given: Any) -> Searching:
        move(f"{there}-other")
        return searching(*given)

    move(there)
    wanted = AskedIndex.model_validate(asked(there, keep="codes", map=name))
    monkeypatch.setattr(index_jobs, "_searching", search_and_move)
    record, is_new = service.index_creation.create(f"{there}-1", wanted, None, "", Progress())
    assert (record.map, is_new) == (there, True)
    move(there)
    record, _ = service.index_creation.create(f"{there}-2", wanted, None, "", None)
    move(f"{there}-other")
    job = finished(http, httpx.Response(202, headers={"Location": record.job or ""}))
    assert (job["state"], http.get(f"/v1/indexes/{there}-2").json()["map"]) == ("succeeded", there)


def test_bands_of_a_map_that_was_replaced_are_not_those_of_an_index(
    http: httpx.Client, running: Running, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, searching = f"{there}-replaced", index_jobs._searching
    assert put(http, name, HASHES).status_code == 201

    def search_and_replace(*given: Any) -> Searching:
        found = searching(*given)
        assert http.delete(f"/v1/maps/{name}").status_code == 204
        assert put(http, name, HASHES | {"seed": 9}).status_code == 201
        return found

    monkeypatch.setattr(index_jobs, "_searching", search_and_replace)
    service, wanted = Container(Settings(redis_url=running.socket)), AskedIndex.model_validate(asked(there, map=name))
    with pytest.raises(InvalidInput, match="was replaced while bands were measured"):
        service.index_creation.create(f"{there}-3", wanted, None, "", Progress())
    assert http.get(f"/v1/indexes/{there}-3").status_code == 404
    assert http.delete(f"/v1/maps/{name}").status_code == 204, "nothing refers to it"


def test_an_index_is_over_a_map_and_not_over_an_alias_that_has_taken_its_name(
    http: httpx.Client, running: Running, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, resolve = f"{there}-renamed", Indexes.resolve
    assert put(http, name, HASHES).status_code == 201

    def resolve_first(indexes: Indexes, given: AskedIndex) -> AskedIndex:
        found = resolve(indexes, given)
        if http.delete(f"/v1/maps/{name}").status_code == 204:
            assert http.put(f"/v1/aliases/{name}", json={"map": there}).status_code == 201
        return found

    monkeypatch.setattr(Indexes, "resolve", resolve_first)
    service = Container(Settings(redis_url=running.socket))
    record, _ = service.indexes.create(f"{there}-4", AskedIndex(map=name), None)
    assert record.map == there


@pytest.mark.parametrize("prefer", ["wait=60", "respond-async"])
def test_a_target_that_nothing_reaches_makes_an_index_that_says_so(http: httpx.Client, there: str, prefer: str) -> None:
    """The same whether a job looks for bands or not."""
    assert put(http, f"{there}-short", {**HASHES, "s": 16}).status_code == 201
    path, target = f"/v1/indexes/{there}", {"recall": 0.99, "k": 5, "dataset": there}
    body = {"map": f"{there}-short", "target": target}
    advice = http.post("/v1/indexes/advice", json={"map": f"{there}-short", **target}, headers={"Prefer": "wait=60"})
    assert (advice.json()["best"], advice.json()["serves"]) == ("scan", False)
    taken = http.put(path, json=body, headers={"Prefer": prefer})
    if prefer == "respond-async":
        finished(http, httpx.Response(202, headers={"Location": taken.json()["job"]}))
    record = http.get(path).json()
    assert (record["status"], record["banding"], record["serves"]) == ("ready", "scan", False)


@pytest.mark.usefixtures("client")
def test_what_is_deleted_as_soon_as_it_is_made_stays_deleted(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reply of the first try is lost; others find what it has made, and delete it; then it is tried again."""
    service = service_with(store_url, GMM)
    for store, script, delete in (
        (service.indexes._store, "_create", lambda: service.indexes.delete("j")),
        (service.aliases._every["map"].store, "_put_alias", lambda: service.aliases.delete("a")),
    ):
        run = getattr(store, script)

        def twice(run: Any = run, delete: Any = delete, **given: Any) -> Any:
            run(**given)
            delete()
            return run(**given)

        monkeypatch.setattr(store, script, twice)
    made, is_new = service.indexes.create("j", AskedIndex(map="m"), None)
    assert (made.name, made.size, is_new) == ("j", 0, True)
    assert service.aliases.put("a", AskedAlias(map="m"))[1]
    assert [one.name for one in service.indexes.list("", None, 9).indexes] == ["i"]
    assert service.aliases.list("", None, 9).aliases == []
    service.indexes.delete("i")
    service.maps.delete("m")


@pytest.mark.usefixtures("client")
def test_a_map_can_be_deleted_as_soon_as_its_index_has_expired(store_url: str) -> None:
    service = service_with(store_url, GMM)
    with connect(store_url, 5) as client:
        client.delete("bochner:{index:i}:manifest")
    service.maps.delete("m")
