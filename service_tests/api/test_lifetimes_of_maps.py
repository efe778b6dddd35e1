"""Maps that are put for a time: what their records tell, what counts as a use, and how they go."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import redis

from app.store.maps import MapManifest
from service_tests.cases import each
from service_tests.checks import NPY, assert_problem, keys_of, post, post_npy

ROWS = {"vectors": [[1, 2, 3], [0, 1, 0.5]]}
TTL = 10_000


def put(http: httpx.Client, name: str, spec: Any, ttl: int | str | None, **headers: str) -> httpx.Response:
    return http.put(f"/v1/maps/{name}", json=spec, params={} if ttl is None else {"ttl": str(ttl)}, headers=headers)


def seconds_left(http: httpx.Client, name: str) -> float:
    expires = datetime.fromisoformat(http.get(f"/v1/maps/{name}").json()["expires_at"])
    return (expires - datetime.now(UTC)).total_seconds()


def age(store: redis.Redis, name: str) -> None:
    """Have a map look as if it had not been used for half of its time."""
    key = f"bochner:{{map:{name}}}:manifest"
    stored = store.get(key)
    assert isinstance(stored, bytes)
    there = MapManifest.parse(stored)
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=TTL // 2)
    older = there.model_copy(update={"expires_at": soon})
    store.set(key, older.stored)
    for one in keys_of(store, name):
        store.expire(one, TTL // 2)


def test_the_last_put_says_how_long_a_map_lives(
    http: httpx.Client, store: redis.Redis, name: str, gaussian: Any
) -> None:
    first = put(http, name, gaussian, TTL)
    for ttl in (5 * TTL, 100):
        again = put(http, name, gaussian, ttl)
        assert (again.status_code, again.json()["ttl"]) == (200, ttl)
        assert ttl - 10 < seconds_left(http, name) <= ttl
        assert all(ttl - 10 < store.ttl(key) <= ttl for key in keys_of(store, name))
        assert again.headers["etag"] == first.headers["etag"]
    for_ever = put(http, name, gaussian, None)
    assert (for_ever.json()["ttl"], for_ever.json()["expires_at"]) == (None, None)
    assert {store.ttl(key) for key in keys_of(store, name)} == {-1}
    other = put(http, name, gaussian | {"seed": 8}, TTL)
    assert_problem(http, other, 409, "map-exists")
    assert http.get(f"/v1/maps/{name}").json()["ttl"] is None


USES: dict[str, Callable[[httpx.Client, str], httpx.Response]] = {
    "transform": lambda http, name: post(http, f"{name}/transform", ROWS),
    "transform of a npy": lambda http, name: post_npy(http, f"{name}/transform", [[1.0, 2.0, 3.0]]),
    "kernel": lambda http, name: post(http, f"{name}/kernel", {"x": ROWS["vectors"]}),
    "a diagnostic": lambda http, name: post(http, f"{name}/diagnostics/gram", ROWS),
    "an array": lambda http, name: http.get(f"/v1/maps/{name}/frequencies", headers={"Accept": NPY}),
    "an export": lambda http, name: http.get(f"/v1/maps/{name}/export?format=npz"),
}
HASH_USES: dict[str, Callable[[httpx.Client, str], httpx.Response]] = {
    "codes": lambda http, name: post(http, f"{name}/codes", ROWS),
    "codes with a parameter": lambda http, name: post(http, f"{name}/codes?encoding=pairs", ROWS),
    "similarity": lambda http, name: post(http, f"{name}/similarity", {"x": [[1, 2, 3]], "y": [[1, 2, 4]]}),
}


@pytest.mark.parametrize("use", [*USES, *HASH_USES])
def test_a_use_lets_a_map_live_on(
    http: httpx.Client, store: redis.Redis, name: str, gaussian: Any, gmm: Any, use: str
) -> None:
    spec, call = (gaussian, USES[use]) if use in USES else (gmm, HASH_USES[use])
    put(http, name, spec, TTL)
    call(http, name)  # it is kept in memory from here on
    age(store, name)
    assert seconds_left(http, name) <= TTL / 2
    answer = call(http, name)
    assert answer.status_code == 200, answer.text
    assert TTL - 10 < seconds_left(http, name) <= TTL
    assert all(TTL - 10 < store.ttl(key) <= TTL for key in keys_of(store, name))


@each("ttl", ["0", "-1", "1.5", "soon", "", "31622401", "1" * 30])
@pytest.mark.usefixtures("nothing_stored")
def test_a_bad_time_to_live_is_refused(http: httpx.Client, name: str, gaussian: Any, ttl: str) -> None:
    problem = assert_problem(http, put(http, name, gaussian, ttl), 422, "invalid-input")
    assert problem["errors"][0]["parameter"] == "ttl"
