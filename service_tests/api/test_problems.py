import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, cast

import httpx
import pytest
import redis

from app.api.access import ROLES
from app.main import create_app
from app.settings import Settings
from app.store.keys import Role
from service_tests.checks import NPY, assert_problem, keys_of, post, put
from service_tests.running import Running

ROWS = {"vectors": [[1, 2, 3]]}


@pytest.fixture
def damaged(http: httpx.Client, store: redis.Redis, name: str, gaussian: dict[str, Any]) -> Iterator[bytes]:
    """A piece of a new map, to be damaged; the map is taken away afterwards, whatever became of it.

    Its seed is its own, so that no equal map is in the memory of the service.
    """
    seed = 1_000_000 + int(name.removeprefix("map-"))
    assert put(http, name, {**gaussian, "seed": seed}).status_code == 201
    yield next(key for key in keys_of(store, name) if b":frequencies:" in key)
    for key in keys_of(store, name):
        store.delete(key)
    store.zrem("bochner:maps", name)


def assert_damaged(http: httpx.Client, name: str, word: str) -> None:
    for answer in (
        post(http, f"{name}/transform", ROWS),
        post(http, f"{name}/transform", ROWS, NPY),
        post(http, f"{name}/kernel", {"x": ROWS["vectors"]}),
        http.get(f"/v1/maps/{name}/frequencies"),
        http.get(f"/v1/maps/{name}/weights"),
    ):
        assert word in assert_problem(http, answer, 503, "store-damaged")["detail"]


def test_a_flipped_bit_in_the_store_gives_a_refusal_and_no_numbers(
    running: Running, http: httpx.Client, store: redis.Redis, name: str, damaged: bytes
) -> None:
    stored = bytearray(cast(bytes, store.get(damaged)))
    stored[5] ^= 4
    store.set(damaged, bytes(stored))
    assert_damaged(http, name, "digest")
    told = float(re.findall(r"\nbochner_store_damaged_total (\S+)", http.get("/metrics").text)[0])
    assert told >= 5
    line = [sys.executable, "-m", "app", "check", "--redis-url", running.socket]
    ended = subprocess.run(line, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert f"frequencies of map {name!r} does not have the digest" in ended.stdout
    assert ended.stdout.endswith(": DELETE it, then PUT it anew\n")
    stored[5] ^= 4
    store.set(damaged, bytes(stored))
    assert post(http, f"{name}/transform", ROWS).status_code == 200


def test_a_manifest_of_a_later_version_gives_a_refusal(
    http: httpx.Client, store: redis.Redis, name: str, gaussian: dict[str, Any], damaged: bytes
) -> None:
    del damaged
    key = f"bochner:{{map:{name}}}:manifest"
    manifest = cast(bytes, store.get(key))
    store.set(key, manifest.replace(b'"schema_version":4', b'"schema_version":5'))
    for answer in (
        http.get(f"/v1/maps/{name}"),
        post(http, f"{name}/transform", ROWS),
        put(http, name, gaussian),
    ):
        assert "schema version 5" in assert_problem(http, answer, 503, "newer-version")["detail"]
    assert len(keys_of(store, name)) == 4
    assert http.get("/v1/maps", params={"prefix": name}).json() == {"maps": [], "next": None}
    assert http.delete(f"/v1/maps/{name}").status_code == 204
    assert keys_of(store, name) == set()


@pytest.mark.parametrize(("error", "status"), [(RuntimeError("secret"), 500), (MemoryError("secret"), 503)])
def test_a_defect_of_the_service_is_a_problem_without_traceback(
    http: httpx.Client, error: Exception, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = create_app(Settings(redis_url="redis://127.0.0.1:1"))
    monkeypatch.setitem(ROLES, "defect", Role.read)

    @application.get("/defect")
    def defect() -> None:
        raise error

    async def answered() -> httpx.Response:
        transport = httpx.ASGITransport(application, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.get("/defect", headers={"X-Request-ID": "mine"})

    answer = asyncio.run(answered())
    assert "secret" not in answer.text
    assert answer.headers["x-request-id"] == "mine"
    document = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, document["status"], document["instance"]) == (status, status, "mine")
    assert http.get(document["type"]).status_code == 200
