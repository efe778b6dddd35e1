"""What services do to the account of a store: while they live, and when they are killed."""

import json
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

import httpx
import numpy as np
import pytest
import redis

from app.core.maps import family_of
from app.core.spec import MapSpec
from service_tests.checks import put, put_dataset
from service_tests.ledger import assert_true, entries, held, pass_time
from service_tests.running import Running, start, stop
from service_tests.servers import until


def usage(http: httpx.Client) -> tuple[int, int]:
    found = http.get("/v1/info").json()["usage"]
    return found["bytes"], found["names"]


def disturb(running: Running, gaussian: dict[str, Any]) -> None:
    """Create, replace and delete until nobody answers."""
    rows = np.random.default_rng(1).random((200_000, 4))
    with running.client() as http, suppress(httpx.TransportError):
        for number in range(10_000):
            put_dataset(http, "rows", rows[number % 3 :], ttl=100 if number % 2 else None)
            put(http, f"m{number % 5}", gaussian | {"s": 20_000, "seed": number})
            http.put("/v1/maps/waits", json=gaussian | {"seed": number}, headers={"Prefer": "respond-async"})
            for path in ("datasets/rows", f"maps/m{(number + 2) % 5}", "maps/waits"):
                http.delete(f"/v1/{path}")


def promised(store: redis.Redis) -> int:
    """Bytes of the arrays that jobs are to freeze for the maps that wait for them."""
    nbytes = 0
    for key in store.scan_iter(match="bochner:{map:*}:manifest"):
        manifest = json.loads(cast(bytes, store.get(key)))
        if manifest.get("state") == "building":
            piece = key.decode().replace("manifest", f"{manifest['token']}:spec.json:0")
            spec = MapSpec.model_validate_json(cast(bytes, store.get(piece)))
            nbytes += family_of(spec.sampler).frozen_bytes(spec)
    return nbytes


@pytest.mark.parametrize("deaths", [6])
@pytest.mark.nightly
def test_services_killed_in_the_middle_leave_the_account_true(
    tmp_path: Path, gaussian: dict[str, Any], deaths: int
) -> None:
    for death in range(deaths):
        running = start(tmp_path / "data")
        clients = [threading.Thread(target=disturb, args=(running, gaussian)) for _ in range(2)]
        for client in clients:
            client.start()
        time.sleep(0.7 + 0.13 * death)
        running.process.kill()
        running.process.wait(10)
        for client in clients:
            client.join()
        with closing(redis.Redis.from_url(running.socket)) as store:
            until(lambda: len(store.client_list()) == 1)
            kept = entries(store)
            pieces = [key.decode() for key in store.scan_iter(match="bochner:{*}:*:*")]
            unknown = [key for key in pieces if not any(key.startswith(f"{entry}:") for entry in kept)]
            assert not [key for key in unknown if not key.endswith((":record", ":events", ":keys"))]
            nbytes, names, _ = (
                sum(column) if i < 2 else 0 for i, column in enumerate(zip(*kept.values(), strict=True))
            )
            there = held(store)
            assert there.nbytes <= nbytes
            assert there.names <= names
            pass_time(store)
            assert_true(store, promised(store))
    running = start(tmp_path / "data")
    with running.client() as http, closing(redis.Redis.from_url(running.socket)) as store:
        for kind in ("maps", "datasets"):
            for one in http.get(f"/v1/{kind}").json()[kind]:
                assert http.delete(f"/v1/{kind}/{one['name']}").status_code == 204
        assert assert_true(store).nbytes == 0
    stop(running)
