"""The access list of the composed service: enough for all that it does, and no more."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from app.store.binary import find_binary
from service_tests.checks import put
from service_tests.jobs.site import Site
from service_tests.running import free_port, service
from service_tests.servers import EVERY_WRITE, answers, until

ACL = Path(__file__).parent.parent.parent / "docker" / "users.acl"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    """A store that lets in only who the list names."""
    port = free_port()
    command = [str(find_binary(None)), "--port", str(port), "--dir", str(tmp_path), "--aclfile", str(ACL), *EVERY_WRITE]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    url = f"redis://bochner:change-me@127.0.0.1:{port}/0"
    try:
        until(lambda: answers(url))
        yield url
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.long
def test_maps_and_jobs_need_no_more_than_the_list_allows(tmp_path: Path, guarded: str) -> None:
    spec = {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 16}
    with (
        service(tmp_path / "data", "--redis-url", guarded) as running,
        running.client() as http,
        redis.Redis.from_url(guarded) as client,
    ):
        assert put(http, "m", spec).status_code == 201
        site = Site(guarded, client)
        log = tmp_path / "log"
        command = [sys.executable, "-m", "service_tests.jobs.program", "worker", "--redis-url", guarded]
        with log.open("wb") as output:
            worker = subprocess.Popen(command, stderr=output)
        try:
            assert site.ended(site.walk(60)).state.value == "succeeded"
            job = site.walk(1000)
            site.running(job)
            assert http.get("/v1/jobs?state=running").json()["jobs"][0]["id"] == job
            assert http.delete(f"/v1/jobs/{job}").status_code == 202
            assert site.ended(job).state.value == "cancelled"
            assert http.get(f"/v1/jobs/{job}/events").text.count("event: end") == 1
        finally:
            worker.terminate()
            assert worker.wait(60) == 0
        assert "permission" not in log.read_text().lower(), log.read_text()
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.flushall()
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.get("other")
