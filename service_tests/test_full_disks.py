"""Disks that are full: writes are refused before anything fails, and what is stored is served."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.checks import assert_problem, post, put, put_dataset
from service_tests.running import Running, service
from service_tests.servers import replicas_to_write, until
from service_tests.store.small_disk import fill, small_disk
from service_tests.test_faults import store_pid

MiB = 1 << 20
ROWS = {"vectors": [[0.5, -1.25, 2], [3, 0.1, -0.125]]}
RESERVE = 8 * MiB


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A service whose store has a disk of 64 MiB for itself."""
    with small_disk(tmp_path, 64) as disk, service(disk / "data", "--min-free-bytes", str(RESERVE)) as started:
        yield started


@pytest.fixture
def http(running: Running) -> Iterator[httpx.Client]:
    with running.client() as client:
        yield client


def refused(http: httpx.Client, answer: httpx.Response) -> None:
    document = assert_problem(http, answer, 507, "quota")
    assert (document["limit"], document["value"]) == ("min_free_bytes", RESERVE)
    assert document["setting"] == "BOCHNER_MIN_FREE_BYTES"


@pytest.mark.nightly
def test_a_disk_that_somebody_else_fills_takes_no_reads_down(
    running: Running, http: httpx.Client, gaussian: dict[str, Any]
) -> None:
    assert put(http, "m", gaussian).status_code == 201
    assert put_dataset(http, "d", np.ones((1000, 4))).status_code == 201
    features = post(http, "m/transform", ROWS).json()
    intruder = running.data_dir.parent / "intruder"
    fill(intruder, 0)
    refused(http, put(http, "other", gaussian | {"seed": 9}))
    until(lambda: replicas_to_write(running.socket) == "1")
    assert http.get("/health/ready").status_code == 200
    refused(http, http.delete("/v1/datasets/d"))
    refused(http, put(http, "other", gaussian | {"seed": 9}))
    pid = store_pid(running)
    for _ in range(20):
        assert post(http, "m/transform", ROWS).json() == features
        assert [one["name"] for one in http.get("/v1/maps").json()["maps"]] == ["m"]
    assert "min_free_bytes" in http.get("/v1/info").json()["store"]["warnings"][0]
    assert store_pid(running) == pid, "the server stays"
    intruder.unlink()
    until(lambda: put(http, "other", gaussian | {"seed": 9}).status_code == 201)
    assert http.delete("/v1/datasets/d").status_code == 204
    assert http.get("/health/ready").json() == {"status": "ready"}
    assert http.get("/v1/info").json()["store"]["durability"] == "always"
