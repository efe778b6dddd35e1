"""Services on a cluster, and on a primary that sentinels watch over: primaries are killed while clients write."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from service_tests.checks import assert_problem, post, put
from service_tests.clusters import Cluster, Node, cluster, sentinels
from service_tests.running import Running, service
from service_tests.servers import access_list, until

pytestmark = pytest.mark.gate
ROWS = {"vectors": [[1, 2, 3]]}
USER = "bochner:drawn@"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that grants the service the commands of the example, and no others."""
    home = tmp_path_factory.mktemp("cluster")
    acl = access_list(home, "drawn")
    acl.write_text(acl.read_text().replace("user default off", "user default on nopass"))
    with cluster(home, options=("--aclfile", str(acl))) as here:
        yield here


@pytest.fixture(scope="module")
def running(nodes: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    options = ("--redis-url", nodes.url.replace("//", f"//{USER}"), "--store-replicas", "1", "--store-timeout", "3")
    with service(tmp_path_factory.mktemp("service") / "data", *options, "--job-workers", "1") as here:
        yield here


class Load:
    """A client that puts one map after the other until it is told to stop, and notes what it was answered."""

    def __init__(self, running: Running, spec: dict[str, Any]) -> None:
        self._running, self._spec = running, spec
        self.acknowledged: list[str] = []
        self.refused: list[httpx.Response] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with self._running.client() as http:
            i = 0
            while not self._stop.is_set():
                i += 1
                answer = put(http, f"load-{i}", self._spec | {"seed": i})
                if answer.status_code == 201:
                    self.acknowledged.append(f"load-{i}")
                else:
                    self.refused.append(answer)


@contextmanager
def load(running: Running, spec: dict[str, Any]) -> Iterator[Load]:
    made = Load(running, spec)
    try:
        yield made
    finally:
        made.end()


def assert_nothing_lost(http: httpx.Client, made: Load) -> None:
    """All that was acknowledged is there, and what was not was refused as it should be."""
    for answer in made.refused:
        assert_problem(http, answer, 503, "store-unavailable")
        assert int(answer.headers["retry-after"]) >= 1
    for name in made.acknowledged:
        answer = post(http, f"{name}/transform", ROWS)
        assert answer.status_code == 200, (name, answer.text)


def fails_over(http: httpx.Client, made: Load, primary: Callable[[], Node], settle: Callable[[], None]) -> None:
    """Kill a primary under load; it comes back as a replica of the one that takes its place."""
    until(lambda: len(made.acknowledged) > 5)
    killed = primary()
    killed.kill()
    until(lambda: len(made.refused) > 0)
    killed.start()
    settle()
    n = len(made.acknowledged)
    until(lambda: len(made.acknowledged) > n + 20)
    made.end()
    until(lambda: http.get("/health/ready").json() == {"status": "ready"})
    assert_nothing_lost(http, made)


def answered(call: Callable[..., httpx.Response], *args: Any, **options: Any) -> httpx.Response:
    """The answer to a request that is sent again where it is a 503: a busy machine may keep a node silent."""
    answer = call(*args, **options)
    deadline = time.monotonic() + 120
    while answer.status_code == 503 and time.monotonic() < deadline:
        time.sleep(0.1)
        answer = call(*args, **options)
    return answer


def test_a_killed_primary_of_a_cluster_takes_nothing_along(
    nodes: Cluster, running: Running, gaussian: dict[str, Any]
) -> None:
    nodes.settle()
    with running.client() as http, load(running, gaussian) as made:
        fails_over(http, made, lambda: nodes.primaries()[1], nodes.settle)


@pytest.mark.nightly
def test_a_killed_primary_of_sentinels_takes_nothing_along(tmp_path: Path, gaussian: dict[str, Any]) -> None:
    with sentinels(tmp_path) as watched:
        options = ("--redis-url", watched.url, "--store-replicas", "1", "--store-timeout", "3")
        with service(tmp_path / "data", *options) as running, running.client() as http:
            assert http.get("/v1/info").json()["store"]["topology"] == "sentinel"

            def primary() -> Node:
                found = watched.primary()
                assert found is not None
                return found

            with load(running, gaussian) as made:
                fails_over(http, made, primary, watched.settle)
