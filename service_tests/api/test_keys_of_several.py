"""Keys of several processes, services and jobs on one store, and of a store that was emptied."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import redis

from app.store.keys import Role
from service_tests.keyed import assert_unauthorized, bearer, keyed
from service_tests.running import service
from service_tests.servers import until


@pytest.mark.nightly
def test_an_emptied_store_opens_no_door(tmp_path: Path) -> None:
    with service(tmp_path / "data", "--require-keys", "true") as running:
        here = keyed(running)
        with here.client(Role.admin) as client, redis.Redis.from_url(running.socket) as store:
            assert client.get("/v1/keys").status_code == 200
            store.flushall()
            until(lambda: client.get("/v1/keys").status_code == 401)
            assert_unauthorized(client.get("/v1/maps"))
            with running.client() as stranger:
                assert_unauthorized(stranger.get("/v1/maps"))
                assert_unauthorized(stranger.post("/v1/keys", json={"name": "mine", "role": "admin"}))


@pytest.mark.nightly
def test_every_process_of_every_service_on_a_store_knows_the_same_keys(tmp_path: Path) -> None:
    """Two services, one of two processes. New connections reach either process."""
    with service(tmp_path / "one", "--require-keys", "true", "--workers", "2") as one:
        here = keyed(one)
        with service(tmp_path / "two", "--require-keys", "true", "--redis-url", one.socket) as two:
            urls = [one.url] * 12 + [two.url] * 4

            def statuses(text: str) -> set[int]:
                return {httpx.get(url + "/v1/maps", headers=bearer(text)).status_code for url in urls}

            made = here.make(Role.read)
            assert statuses(made.key) == {200}  # at once
            assert httpx.delete(f"{two.url}/v1/keys/{made.id}", headers=bearer(here.texts[Role.admin])).is_success
            until(lambda: statuses(made.key) == {401})
            for _ in range(3):
                assert statuses(made.key) == {401}  # and for good

            limited = here.make(Role.read, rate=5, burst=20)
            began = time.monotonic()
            with ThreadPoolExecutor(8) as pool:
                asked_for = [pool.submit(httpx.get, url + "/v1/maps", headers=bearer(limited.key)) for url in urls * 8]
                let_in = sum(one.result().status_code == 200 for one in asked_for)
            assert 20 <= let_in <= 20 + 5 * (time.monotonic() - began) + 1
