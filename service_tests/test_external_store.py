"""A store that the operator names: what it must be like, and how it may go and come."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from service_tests.checks import assert_problem, post, put, put_dataset
from service_tests.running import Running, service, start, stop
from service_tests.servers import EVERY_WRITE, VOLATILE, access_list, until, valkey

ROWS = {"vectors": [[1, 2, 3]]}


@contextmanager
def not_ready(tmp_path: Path, url: str, *options: str) -> Iterator[tuple[Running, httpx.Client]]:
    """A service that is live, warmed up or not, and need not be ready."""
    running = start(tmp_path / "data", "--redis-url", url, *options, until="/health/live")
    try:
        with running.client() as http:
            yield running, http
    finally:
        stop(running)


@pytest.mark.nightly
def test_the_commands_that_the_example_grants_are_enough(tmp_path: Path, gaussian: dict[str, Any]) -> None:
    """The file refuses all others, so a command that the service came to need is missed here."""
    acl = access_list(tmp_path, "drawn")
    rules = acl.read_text().replace("user default off", "user default on nopass ~* &* +@all").splitlines()
    acl.write_text("\n".join(rules) + "\n")
    with valkey(tmp_path, *EVERY_WRITE, "--aclfile", str(acl)) as url:
        granted = url.replace("unix://", "unix://bochner:drawn@")
        with service(tmp_path / "data", "--redis-url", granted) as running, running.client() as http:
            assert put(http, "m", gaussian).status_code == 201
            assert put_dataset(http, "d", [[1, 2, 3]], ttl=1).status_code == 201
            assert put_dataset(http, "d", [[1, 2, 3]], ttl=1).status_code == 200
            assert put_dataset(http, "e", [[1, 2, 3]]).status_code == 201
            assert post(http, "m/transform", {"vectors": {"dataset": "e"}}).status_code == 200
            until(lambda: len(http.get("/v1/datasets").json()["datasets"]) == 1)
            with redis.Redis.from_url(url) as store:
                assert store.zrange("bochner:datasets", 0, -1) == [b"e"]
                assert store.acl_log() == []
            assert len(http.get("/v1/maps").json()["maps"]) == 1
            assert http.delete("/v1/maps/m").status_code == http.delete("/v1/datasets/e").status_code == 204


def test_a_store_that_may_lose_maps_gets_none(tmp_path: Path, gaussian: dict[str, Any]) -> None:
    with valkey(tmp_path, *VOLATILE) as url, not_ready(tmp_path, url) as (_, http):
        assert http.get("/health/live").status_code == 200
        document = assert_problem(http, http.get("/health/ready"), 503, "store-unavailable")
        assert "nothing on disk" in document["detail"]
        assert "BOCHNER_ALLOW_VOLATILE_STORE" in document["detail"]
        assert "nothing on disk" in assert_problem(http, put(http, "m", gaussian), 503, "store-unavailable")["detail"]
        assert http.get("/v1/info").json()["store"]["durability"] == "volatile"


@pytest.mark.nightly
def test_without_its_store_the_service_is_live_and_refuses_and_recovers(
    tmp_path: Path, gaussian: dict[str, Any]
) -> None:
    with not_ready(tmp_path, f"unix://{tmp_path}/valkey.sock") as (running, http):
        assert http.get("/health/live").status_code == 200
        for answer in (http.get("/health/ready"), http.get("/v1/maps"), put(http, "m", gaussian)):
            assert_problem(http, answer, 503, "store-unavailable")
        assert http.get("/v1/catalog").status_code == 200
        with valkey(tmp_path, *EVERY_WRITE):
            until(lambda: http.get("/health/ready").status_code == 200)
            assert put(http, "m", gaussian).status_code == 201
            features = post(http, "m/transform", ROWS).json()
        assert_problem(http, post(http, "m/transform", ROWS), 503, "store-unavailable")
        with valkey(tmp_path, *EVERY_WRITE):
            until(lambda: post(http, "m/transform", ROWS).status_code == 200)
            assert post(http, "m/transform", ROWS).json() == features
        assert not running.data_dir.exists(), "a private store was started beside the one that was named"


@pytest.mark.nightly
def test_a_store_that_comes_back_empty_is_not_ready_until_somebody_says_so(
    tmp_path: Path, gaussian: dict[str, Any]
) -> None:
    with (
        valkey(tmp_path, *EVERY_WRITE) as url,
        service(tmp_path / "data", "--redis-url", url) as running,
        running.client() as http,
        redis.Redis.from_url(url) as store,
    ):
        assert put(http, "m", gaussian).status_code == 201
        store.flushall()
        assert_problem(http, http.get("/health/ready"), 503, "store-unavailable")
        for answer in (http.get("/v1/maps/m"), http.get("/v1/jobs"), put(http, "m", gaussian)):
            detail = assert_problem(http, answer, 503, "store-unavailable")["detail"]
            assert "came back without what it held" in detail
        assert store.dbsize() == 0
        command = [sys.executable, "-m", "app", "accept-store", "--redis-url", url]
        subprocess.run(command, check=True, capture_output=True)
        assert http.get("/health/ready").status_code == 200
        assert_problem(http, http.get("/v1/maps/m"), 404, "map-not-found")
        assert put(http, "m", gaussian).status_code == 201
