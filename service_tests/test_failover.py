"""Services on a cluster, and on a primary that sentinels watch over: primaries are killed while clients write."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.store.connection import connect
from app.store.keys import KeyStore, Role, drawn
from service_tests.checks import RESPOND_ASYNC, assert_problem, post, put, put_dataset
from service_tests.clusters import Cluster, Node, Pair, cluster, sentinels
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


def admin_key(nodes: Cluster) -> str:
    made = drawn("ops", Role.admin, None, None, None)
    with connect(nodes.url, 5) as client:
        KeyStore(client, 9).create(made.key)
    return made.text


@pytest.mark.nightly
def test_a_cluster_keeps_maps_datasets_jobs_and_keys(
    nodes: Cluster, running: Running, gaussian: dict[str, Any]
) -> None:
    with running.client() as http:
        store = http.get("/v1/info").json()["store"]
        assert [store[name] for name in ("topology", "primaries", "replicas", "confirmed_by")] == ["cluster", 3, 1, 1]
        for i in range(12):
            assert answered(put, http, f"m{i}", gaussian).status_code in (200, 201)
            assert answered(put, http, f"m{i}", gaussian).status_code == 200
            assert answered(put_dataset, http, f"d{i}", [[1, 2, 3]]).status_code in (200, 201)
            body = {"vectors": {"dataset": f"d{i}"}}
            assert answered(post, http, f"m{i}/transform", body).status_code == 200
        for names, path in (("maps", "/v1/maps?prefix=m"), ("datasets", "/v1/datasets")):
            listed = answered(http.get, path)
            found = [one["name"] for one in listed.json()[names]]
            assert found == sorted(f"{names[0]}{i}" for i in range(12))
        for i in range(3):
            path = f"/v1/maps/j{i}"
            answer = answered(http.put, path, json=gaussian, headers=RESPOND_ASYNC)
            assert answer.status_code == 202
            job = answer.json()["job"]
            until(lambda job=job: answered(http.get, job).json()["state"] == "succeeded")  # type: ignore[misc]
            events = answered(http.get, f"{job}/events")
            assert '"succeeded"' in events.text
            assert answered(post, http, f"j{i}/transform", ROWS).status_code == 200
        with running.client(Authorization=f"Bearer {admin_key(nodes)}") as admin:
            until(lambda: admin.get("/v1/keys").status_code == 200)
            key = answered(admin.post, "/v1/keys", json={"name": "k", "role": "read", "rate": 100})
            assert key.status_code == 201
            with running.client(Authorization=f"Bearer {key.json()['key']}") as other:
                assert answered(other.get, "/v1/maps/m1").status_code == 200
                assert answered(other.delete, "/v1/maps/m1").status_code == 403
            assert answered(admin.delete, f"/v1/keys/{key.json()['id']}").status_code in (204, 404)
        for i in range(12):
            assert answered(http.delete, f"/v1/maps/m{i}").status_code in (204, 404)
            assert answered(http.get, f"/v1/maps/m{i}").status_code == 404


def test_a_killed_primary_of_a_cluster_takes_nothing_along(
    nodes: Cluster, running: Running, gaussian: dict[str, Any]
) -> None:
    nodes.settle()
    with running.client() as http, load(running, gaussian) as made:
        fails_over(http, made, lambda: nodes.primaries()[1], nodes.settle)


@pytest.mark.nightly
def test_a_primary_that_stands_still_refuses_no_longer_than_the_timeout_and_others_serve(
    nodes: Cluster, running: Running, gaussian: dict[str, Any]
) -> None:
    nodes.settle()
    with running.client() as http:
        names = [f"s{i}" for i in range(12)]
        for name in names:
            assert answered(put, http, name, gaussian).status_code in (200, 201)
        stopped = nodes.primaries()[2]
        stopped.kill(signal.SIGSTOP)
        began = time.monotonic()
        answers = {name: post(http, f"{name}/transform", ROWS) for name in names}
        assert {200} < {answer.status_code for answer in answers.values()} | {503}
        stopped.kill(signal.SIGCONT)
        assert time.monotonic() - began < 60
        nodes.settle()
        until(lambda: {post(http, f"{name}/transform", ROWS).status_code for name in names} == {200})


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


@pytest.mark.nightly
def test_a_service_on_a_replica_serves_what_is_there_and_makes_nothing(
    tmp_path: Path, gaussian: dict[str, Any]
) -> None:
    pair = Pair(tmp_path)
    try:
        with service(tmp_path / "a", "--redis-url", pair.url) as running, running.client() as http:
            assert put(http, "m", gaussian | {"seed": 3}).status_code == 201
            assert http.put("/v1/maps/l?ttl=80", json=gaussian).status_code == 201
            features, put_at = post(http, "m/transform", ROWS).content, time.monotonic()
        of_replica = f"redis://127.0.0.1:{pair.replica.port}/0"
        with service(tmp_path / "b", "--redis-url", of_replica) as running, running.client() as http:
            ready = http.get("/health/ready").json()
            assert ready == {"status": "ready", "warnings": ["the store is a replica, which takes no writes"]}
            assert post(http, "m/transform", ROWS).content == features
            time.sleep(max(0, put_at + 80 / 16 + 1 - time.monotonic()))  # from then on a use is to be noted
            assert post(http, "l/transform", ROWS).status_code == 200
            assert "the use of map 'l' is not noted" in next(tmp_path.glob("b.*.log")).read_text()
            for refused in (put(http, "n", gaussian), http.delete("/v1/maps/m")):
                document = assert_problem(http, refused, 503, "store-unavailable")
                assert document["detail"] == "the store is a replica, which takes no writes"
    finally:
        pair.close()
