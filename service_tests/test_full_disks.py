"""Disks that are full: writes are refused before anything fails, and what is stored is served."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import redis

from service_tests.checks import assert_problem, post, put, put_dataset
from service_tests.running import Running, service
from service_tests.servers import until
from service_tests.store.small_disk import fill, small_disk
from service_tests.test_faults import store_pid

MiB = 1 << 20
ROWS = {"vectors": [[0.5, -1.25, 2], [3, 0.1, -0.125]]}
RESERVE = 8 * MiB


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A service whose store has a disk of 64 MiB for itself."""
    with (
        small_disk(tmp_path, 64) as disk,
        service(disk / "data", "--min-free-bytes", str(RESERVE)) as started,
    ):
        yield started


@pytest.fixture
def http(running: Running) -> Iterator[httpx.Client]:
    with running.client() as client:
        yield client


def rows(megabytes: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(int(megabytes * MiB / 32), 4))


def takes(http: httpx.Client, name: str, numbers: np.ndarray) -> bool:
    return put_dataset(http, name, numbers).status_code == 201


def refuses_all(running: Running) -> bool:
    """Whether the server has been told to take no writes at all."""
    with redis.Redis.from_url(running.socket, decode_responses=True) as store:
        return bool(store.config_get("min-replicas-to-write")["min-replicas-to-write"] == "1")


def served(http: httpx.Client, features: Any) -> None:
    """What was stored answers as ever."""
    assert post(http, "m/transform", ROWS).json() == features
    assert http.get("/v1/maps/m").status_code == 200
    assert len(http.get("/v1/maps").json()["maps"]) >= 1


def refused(http: httpx.Client, answer: httpx.Response) -> None:
    document = assert_problem(http, answer, 507, "quota")
    assert (document["limit"], document["value"]) == ("min_free_bytes", RESERVE)
    assert document["setting"] == "BOCHNER_MIN_FREE_BYTES"


@pytest.mark.nightly
def test_a_store_that_fills_its_disk_refuses_and_goes_on(
    running: Running, http: httpx.Client, gaussian: dict[str, Any]
) -> None:
    assert put(http, "m", gaussian).status_code == 201
    features = post(http, "m/transform", ROWS).json()
    pid = store_pid(running)
    answers = [put_dataset(http, f"d{i}", rows(3, i)) for i in range(20)]
    assert {answer.status_code for answer in answers} == {201, 507}
    kept = [f"d{i}" for i, answer in enumerate(answers) if answer.status_code == 201]
    refused(http, answers[-1])
    served(http, features)
    ready = http.get("/health/ready")
    assert ready.status_code == 200
    for _ in range(3):
        assert put(http, "n", gaussian | {"seed": 8}).status_code in (201, 200, 507)
    # Whoever deletes has the room again, also where the file must be written anew for it.
    for turn in range(3):
        assert http.delete(f"/v1/datasets/{kept[-1]}").status_code == 204
        until(partial(takes, http, kept[-1], rows(3, turn)))
    served(http, features)
    assert store_pid(running) == pid, "no server has ended"


@pytest.mark.nightly
@pytest.mark.parametrize("leave", [0, 300_000])
def test_a_disk_that_somebody_else_fills_takes_no_reads_down(
    running: Running, http: httpx.Client, gaussian: dict[str, Any], leave: int
) -> None:
    assert put(http, "m", gaussian).status_code == 201
    assert put_dataset(http, "d", rows(1)).status_code == 201
    features = post(http, "m/transform", ROWS).json()
    intruder = running.data_dir.parent / "intruder"
    fill(intruder, leave)
    refused(http, put(http, "other", gaussian | {"seed": 9}))
    until(partial(refuses_all, running))
    assert http.get("/health/ready").status_code == 200
    refused(http, http.delete("/v1/datasets/d"))
    refused(http, put(http, "other", gaussian | {"seed": 9}))
    pid = store_pid(running)
    for _ in range(20):
        served(http, features)
    assert "min_free_bytes" in http.get("/v1/info").json()["store"]["warnings"][0]
    assert store_pid(running) == pid, "the server stays"
    intruder.unlink()
    until(lambda: put(http, "other", gaussian | {"seed": 9}).status_code == 201)
    assert http.delete("/v1/datasets/d").status_code == 204
    assert http.get("/health/ready").json() == {"status": "ready"}
    assert http.get("/v1/info").json()["store"]["durability"] == "always"
