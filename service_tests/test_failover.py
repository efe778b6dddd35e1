"""Services on a cluster, and on a primary that sentinels watch over: primaries are killed while clients write."""

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from app.store.connection import connect
from service_tests.checks import assert_problem, post, put
from service_tests.clusters import Node, cluster, sentinels
from service_tests.running import service
from service_tests.servers import access_list, until

pytestmark = pytest.mark.gate
CONFIRMED = ("--store-replicas", "1", "--store-timeout", "3")


def fails_over(
    home: Path, url: str, spec: dict[str, Any], primary: Callable[[], Node | None], settle: Callable[[], None]
) -> None:
    """Kill a primary under a client that puts maps; it comes back as a replica of the one that takes its place.

    All that was acknowledged must be there then, and what was not, refused as it should be.
    """
    acknowledged: list[str] = []
    refused: list[httpx.Response] = []
    end = threading.Event()

    def load() -> None:
        with running.client() as http:
            while not end.is_set():
                name = f"load-{len(acknowledged) + len(refused)}"
                answer = put(http, name, spec)
                if answer.status_code == 201:
                    acknowledged.append(name)
                else:
                    refused.append(answer)

    settle()
    with service(home / "data", "--redis-url", url, *CONFIRMED) as running, running.client() as http:
        loading = threading.Thread(target=load)
        loading.start()
        try:
            until(lambda: len(acknowledged) > 5)
            killed = primary()
            assert killed is not None
            killed.kill()
            n = len(acknowledged)
            # Its replica may take its place before anything is refused.
            until(lambda: refused or len(acknowledged) > n + 100)
            killed.start()
            settle()
            n = len(acknowledged)
            until(lambda: len(acknowledged) > n + 20)
        finally:
            end.set()
            loading.join()
        until(lambda: http.get("/health/ready").json() == {"status": "ready"})
        for answer in refused:
            assert_problem(http, answer, 503, "store-unavailable")
            assert int(answer.headers["retry-after"]) >= 1
        for name in acknowledged:
            answer = post(http, f"{name}/transform", {"vectors": [[1, 2, 3]]})
            assert answer.status_code == 200, (name, answer.text)


def test_a_killed_primary_of_a_cluster_takes_nothing_along(tmp_path: Path, gaussian: dict[str, Any]) -> None:
    """The cluster grants the service the commands of the example, and no others."""
    acl = access_list(tmp_path, "drawn")
    acl.write_text(acl.read_text().replace("user default off", "user default on nopass"))
    with cluster(tmp_path, options=("--aclfile", str(acl))) as nodes:
        url = nodes.url.replace("//", "//bochner:drawn@")
        fails_over(tmp_path, url, gaussian, lambda: nodes.primaries()[1], nodes.settle)


@pytest.mark.nightly
def test_a_killed_primary_of_sentinels_takes_nothing_along(tmp_path: Path, gaussian: dict[str, Any]) -> None:
    with sentinels(tmp_path) as watched:
        fails_over(tmp_path, watched.url, gaussian, watched.primary, watched.settle)


@pytest.mark.parametrize("replicas", [0, 1])
def test_a_reply_that_comes_late_is_not_taken_for_another(tmp_path: Path, replicas: int) -> None:
    """The primary that sentinels name pauses for longer than a call may take."""
    with sentinels(tmp_path) as watched, connect(watched.url, 0.5, replicas=replicas) as client:
        for i in range(20):
            client.set(f"k{i}", i)
        client.wait(1, 5000)
        primary = watched.primary()
        assert primary is not None
        primary.kill(signal.SIGSTOP)
        with pytest.raises(redis.TimeoutError):
            client.get("k0")
        primary.kill(signal.SIGCONT)

        def are_there() -> bool:
            with suppress(redis.RedisError):
                found: object = client.mget([f"k{i}" for i in range(20)])
            return found == [b"%d" % i for i in range(20)]
            return False

        until(are_there)
        assert [client.get(f"k{i}") for i in range(20)] == [b"%d" % i for i in range(20)]
