"""Services and stores that are killed: nothing acknowledged is lost, nothing half made is left."""

import os
import signal
import threading
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
import redis

from app.jobs.scripts import QUEUE
from app.store.account import UNCOMMITTED_TTL
from service_tests.cases import few_and_many
from service_tests.checks import NPY, keys_of, post, post_npy, put, put_dataset
from service_tests.jobs.site import kill, lives
from service_tests.running import Running, service, start, stop
from service_tests.servers import answers, until

ROWS = {"vectors": [[0.5, -1.25, 2], [3, 0.1, -0.125]]}


def store_pid(running: Running) -> int:
    with closing(redis.Redis.from_url(running.socket)) as store:
        return int(store.info("server")["process_id"])


def kill_service(running: Running) -> None:
    running.process.kill()
    running.process.wait(10)


def outputs(http: httpx.Client) -> list[bytes]:
    """Features, codes and records, as bytes."""
    features = post(http, "fourier/transform", ROWS, NPY)
    codes = post(http, "hashes/codes?encoding=pairs", ROWS, NPY)
    records = [http.get(f"/v1/maps/{name}") for name in ("fourier", "hashes")]
    assert [answer.status_code for answer in (features, codes, *records)] == [200] * 4
    return [answer.content for answer in (features, codes, *records)]


@pytest.mark.gate
def test_what_is_stored_survives_the_death_of_service_and_store(
    tmp_path: Path, gaussian: dict[str, Any], gmm: dict[str, Any]
) -> None:
    """Bit for bit, datasets as the features of a map of float64 show; the last of each is put the moment before."""
    rows = np.random.default_rng(1).normal(size=(70_000, 3))
    sample = {"vectors": {"dataset": "rows", "rows": 500, "seed": 3}}
    running = start(tmp_path / "data")
    with running.client() as http:
        assert put(http, "fourier", {**gaussian, "dtype": "float64"}).status_code == 201
        assert put(http, "hashes", gmm).status_code == 201
        assert put_dataset(http, "rows", rows).status_code == 201
        before = [*outputs(http), post(http, "fourier/transform", sample, NPY).content]
        assert put_dataset(http, "short", rows[:9], ttl=1).status_code == 201
        record = put_dataset(http, "long", rows, ttl=999).json()
        assert put(http, "last", {**gaussian, "form": "phase"}).status_code == 201
    pid = store_pid(running)
    running.process.kill()
    os.kill(pid, signal.SIGKILL)
    running.process.wait(10)
    with service(tmp_path / "data") as again, again.client() as http:
        assert store_pid(again) != pid
        assert [*outputs(http), post(http, "fourier/transform", sample, NPY).content] == before
        assert put(http, "last", {**gaussian, "form": "phase"}).status_code == 200
        assert post(http, "last/transform", ROWS).status_code == 200
        every = post(http, "fourier/transform", {"vectors": {"dataset": "rows"}}, NPY)
        assert every.content == post_npy(http, "fourier/transform", rows, NPY).content
        assert put_dataset(http, "rows", rows).status_code == 200
        assert http.get("/v1/datasets/long").json() == record
        until(lambda: http.get("/v1/datasets/short").status_code == 404)


@pytest.mark.parametrize("deaths", few_and_many(2, 60))
@pytest.mark.gate
def test_a_creator_killed_in_the_middle_leaves_no_dataset(tmp_path: Path, deaths: int) -> None:
    """Whenever it is killed, the dataset is there whole or not at all, and what is left of it expires."""
    rows = np.random.default_rng(1).normal(size=(1_000_000, 4))
    running = start(tmp_path / "data")
    pid = store_pid(running)

    def send(name: str) -> None:
        with running.client() as http, suppress(httpx.TransportError):
            put_dataset(http, name, rows)

    for death in range(deaths):
        name = f"rows-{death}"
        sender = threading.Thread(target=send, args=(name,))
        sender.start()
        with closing(redis.Redis.from_url(running.socket)) as store:
            until(partial(keys_of, store, name, "dataset"))
            time.sleep(0.06 * death)
            kill_service(running)
            sender.join()
            if not store.exists(f"bochner:{{dataset:{name}}}:manifest"):
                assert all(0 < store.ttl(key) <= UNCOMMITTED_TTL for key in keys_of(store, name, "dataset"))
        running = start(tmp_path / "data")
        with running.client() as http:
            assert store_pid(running) == pid
            found = http.get(f"/v1/datasets/{name}")
            assert found.status_code in (200, 404)
            assert put_dataset(http, name, rows).status_code == (200 if found.status_code == 200 else 201)
            assert http.delete(f"/v1/datasets/{name}").status_code == 204
    stop(running)


@pytest.mark.gate
@pytest.mark.parametrize("deaths", few_and_many(2, 200))
def test_a_service_outlives_its_store_and_meanwhile_answers_503(
    tmp_path: Path, gaussian: dict[str, Any], gmm: dict[str, Any], deaths: int
) -> None:
    with service(tmp_path / "data") as running, running.client() as http:
        put(http, "fourier", gaussian)
        put(http, "hashes", gmm)
        before = outputs(http)
        seen = set()
        for death in range(deaths):
            pid = store_pid(running)
            os.kill(pid, signal.SIGKILL)
            while not answers(running.socket) or store_pid(running) == pid:
                seen.add(post(http, "fourier/transform", ROWS).status_code)
            until(lambda: http.get("/health/ready").status_code == 200)
            assert outputs(http) == before
            assert put(http, f"new-{death}", gaussian).status_code == 201
        assert seen <= {200, 503}


@pytest.mark.nightly
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP], ids=["the store is killed", "the store hangs"])
def test_a_job_worker_ends_when_its_service_and_store_end_together(tmp_path: Path, end: signal.Signals) -> None:
    """Nobody would end it otherwise, as the next service starts a worker of its own."""
    running = start(tmp_path / "data", "--job-workers", "1", "--store-timeout", "60")
    (worker,) = (child for child in psutil.Process(running.process.pid).children() if "worker" in child.cmdline())
    with closing(redis.Redis.from_url(running.socket)) as store:
        until(lambda: bool(store.exists(QUEUE)))  # it is at work
    pid = store_pid(running)
    os.kill(pid, end)
    kill_service(running)
    try:
        until(lambda: not lives(worker))  # four on an idle machine; a call to the store may take sixty
    finally:
        kill(worker)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.gate
def test_a_service_that_is_told_to_stop_takes_its_store_along(tmp_path: Path) -> None:
    running = start(tmp_path / "data")
    pid = store_pid(running)
    running.process.send_signal(signal.SIGINT)
    running.process.wait(30)
    assert not answers(running.socket)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
