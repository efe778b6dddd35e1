import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import numpy as np
import pytest
import redis

from app.store.account import Account, Entry
from app.store.errors import QuotaExceeded
from app.store.keys import Role
from service_tests.checks import RESPOND_ASYNC, assert_problem, put, put_dataset
from service_tests.keyed import Keyed, assert_unauthorized, bearer, keyed, secret_of
from service_tests.running import service
from service_tests.servers import until


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    options = ("--require-keys", "true", "--max-keys", "8", "--log-probes", "false")
    with service(tmp_path_factory.mktemp("keys") / "data", *options) as running:
        yield keyed(running)


@pytest.fixture
def admin(here: Keyed) -> Iterator[httpx.Client]:
    """A client of an administrator; the keys that it makes are gone afterwards."""
    with here.client(Role.admin) as client:
        yield client
        for one in client.get("/v1/keys").json()["keys"]:
            if not one["name"].startswith("the-"):
                assert client.delete(f"/v1/keys/{one['id']}").status_code == 204


def test_the_log_says_when_the_service_was_ready_and_has_no_probes(here: Keyed, admin: httpx.Client) -> None:
    assert admin.get("/health/ready").status_code == admin.get("/metrics").status_code == 200
    assert admin.get("/v1/maps/none").status_code == 404
    (log,) = here.running.data_dir.parent.glob("*.log")
    until(lambda: "/v1/maps/none" in log.read_text() and "ready after" in log.read_text())
    assert not re.search(r'"GET /(health/ready|metrics) HTTP/1.1" 200', log.read_text())


def test_a_key_that_cannot_be_is_refused(admin: httpx.Client) -> None:
    before = admin.get("/v1/keys").json()
    for change, pointer in (
        ({"role": "owner"}, "/role"),
        ({"name": "<script>"}, "/name"),
        ({"rate": 0}, "/rate"),
        ({"burst": 5}, "/burst"),
        ({"key": "mine"}, "/key"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"expires_at": "2100-01-01T00:00:00"}, "/expires_at"),
    ):
        answer = admin.post("/v1/keys", json={"name": "k", "role": "read", **change})
        assert_problem(admin, answer, 422, "invalid-input", pointer)
    for media_type in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ):  # forms of other pages
        answer = admin.post("/v1/keys", content=b'{"name":"k","role":"admin"}', headers={"Content-Type": media_type})
        assert_problem(admin, answer, 415, "unsupported-media-type")
    assert admin.get("/v1/keys").json() == before


def test_there_are_no_more_keys_than_the_setting_allows(admin: httpx.Client) -> None:
    for _ in range(4):  # beside one of each role
        assert admin.post("/v1/keys", json={"name": "k", "role": "read"}).status_code == 201
    problem = assert_problem(admin, admin.post("/v1/keys", json={"name": "k", "role": "read"}), 507, "quota")
    assert (problem["limit"], problem["value"], problem["setting"]) == ("max_keys", 8, "BOCHNER_MAX_KEYS")


def test_a_key_keeps_no_more_than_its_quota(here: Keyed, admin: httpx.Client, gaussian: dict[str, Any]) -> None:
    made = here.make(Role.write, quota=2000)

    def kept() -> int:
        return int(next(one["bytes"] for one in admin.get("/v1/keys").json()["keys"] if one["id"] == made.id))

    with here.running.client(**bearer(made.key)) as client, here.client(Role.write) as other:
        assert put(client, "small", gaussian).status_code == 201
        assert put_dataset(client, "points", np.ones((40, 3))).status_code == 201
        full = kept()
        assert 192 + 960 <= full <= 2000
        for refused in (put(client, "large", {**gaussian, "s": 64}), put_dataset(client, "more", np.ones((40, 3)))):
            problem = assert_problem(admin, refused, 507, "quota")
            assert (problem["limit"], problem["value"]) == ("key_bytes", 2000)
        assert kept() == full
        assert put(other, "large", {**gaussian, "s": 64}).status_code == 201  # it is the key that is full
        for path in ("datasets/points", "maps/small", "maps/large"):
            assert other.delete(f"/v1/{path}").status_code == 204
        assert kept() == 0


def test_a_revoked_key_leaves_what_it_made_and_its_quota_for_jobs_that_go_on(
    here: Keyed, admin: httpx.Client, gaussian: dict[str, Any]
) -> None:
    made = here.make(Role.write, rate=1000, quota=100_000)
    with here.running.client(**bearer(made.key)) as client, redis.Redis.from_url(here.running.socket) as store:
        assert put(client, "m", gaussian).status_code == 201
        assert admin.delete(f"/v1/keys/{made.id}").status_code == 204
        assert admin.delete("/v1/maps/m").status_code == 204
        there = {field for field in store.hgetall("bochner:account") if made.id.encode() in field}
        assert there == {b"max_bytes %b" % made.id.encode()}
        with pytest.raises(QuotaExceeded, match="key_bytes"):
            Account(store).charge([Entry("bochner:{job:none}:result", 100_001)], made.id)
        until(lambda: not store.keys("bochner:rate:*"))


def test_a_revoked_key_is_refused_within_a_second_and_its_events_end(here: Keyed, admin: httpx.Client) -> None:
    watcher = here.make(Role.read)
    body = {"vectors": [[1, 2, 3], [4, 5, 6]], "kernel": {"kind": "gaussian", "length_scale": 1.0}, "budget": 16}
    # The service has no workers, so that the job waits.
    job = admin.post("/v1/recommendations", json=body, headers=RESPOND_ASYNC).json()["id"]
    with here.running.client(**bearer(watcher.key)) as client, ThreadPoolExecutor(1) as pool:
        watched = pool.submit(client.get, f"/v1/jobs/{job}/events")
        until(lambda: client.get(f"/v1/jobs/{job}").status_code == 200)
        assert not watched.done()
        assert admin.delete(f"/v1/keys/{watcher.id}").status_code == 204
        assert_unauthorized(client.get("/v1/maps"))
        assert "event: end" not in watched.result(30).text
        assert admin.get(f"/v1/jobs/{job}").json()["state"] == "queued"  # others go on
        assert admin.delete(f"/v1/jobs/{job}").status_code == 202


def test_a_key_that_reads_cancels_the_jobs_that_it_has_asked_for(here: Keyed, admin: httpx.Client) -> None:
    body = {"vectors": [[1, 2, 3], [4, 5, 6]], "kernel": {"kind": "gaussian", "length_scale": 1.0}, "budget": 16}
    reader = here.make(Role.read)
    with here.running.client(**bearer(reader.key)) as client:
        own, other = (one.post("/v1/recommendations", json=body, headers=RESPOND_ASYNC) for one in (client, admin))
        refused = assert_problem(client, client.delete(other.headers["location"]), 403, "forbidden")
        assert "was submitted with another key; to cancel it takes role write" in refused["detail"]
        assert client.delete(f"/v1/jobs/{'0' * 24}").status_code == 404
        assert client.delete(own.headers["location"]).json()["state"] == "cancelled"
        assert admin.delete(other.headers["location"]).json()["state"] == "cancelled"


def test_a_key_asks_as_often_as_its_rate_allows(here: Keyed, admin: httpx.Client) -> None:
    limited = here.make(Role.read, rate=0.05, burst=3)
    with here.running.client(**bearer(limited.key)) as client:
        answers = [client.get("/v1/maps") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        problem = assert_problem(admin, answers[-1], 429, "overloaded")
        assert (problem["limit"], problem["value"]) == ("key_rate", 0.05)
        assert "setting" not in problem
        assert 15 <= int(answers[-1].headers["retry-after"]) <= 20
        assert client.get("/health/live").status_code == 200


def test_a_key_is_shown_once_works_at_once_and_is_revoked_once(here: Keyed, admin: httpx.Client) -> None:
    asked = {"name": "search", "role": "read", "rate": 2.5, "burst": 40, "quota": 1000}
    asked["expires_at"] = "2100-01-01T00:00:00Z"
    answer = admin.post("/v1/keys", json=asked)
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    made = answer.json()
    text = made.pop("key")
    assert asked.items() <= made.items()
    assert set(made) - set(asked) == {"id", "created_at", "last_used_at", "bytes"}
    assert made["last_used_at"] is None
    with here.running.client(**bearer(text)) as client:
        assert client.get("/v1/maps").status_code == 200
    listed = admin.get("/v1/keys")
    (told,) = (one for one in listed.json()["keys"] if one["id"] == made["id"])
    assert abs(datetime.fromisoformat(told.pop("last_used_at")) - datetime.now(UTC)) < timedelta(minutes=2)
    assert told.items() <= made.items()
    assert secret_of(text) not in listed.text
    assert "sha256" not in listed.text
    before = listed.json()
    for unknown in ("0" * 16, "*", "%ff%fe", "a" * 999):
        assert admin.delete(f"/v1/keys/{unknown}").status_code == 404
    assert admin.get("/v1/keys").json() == before
    assert admin.delete(f"/v1/keys/{made['id']}").status_code == 204
    assert_problem(admin, admin.delete(f"/v1/keys/{made['id']}"), 404, "key-not-found")
