"""Keys of several processes, services and jobs on one store, and of a store that was emptied."""

from pathlib import Path

import pytest
import redis

from app.store.keys import Role
from service_tests.keyed import assert_unauthorized, keyed
from service_tests.running import service
from service_tests.servers import until


@pytest.mark.nightly
def test_an_emptied_store_opens_no_door(tmp_path: Path) -> None:
    with service(tmp_path / "data", "--require-keys", "true") as running:
        here = keyed(running)
        with here.client(Role.admin) as client, redis.Redis.from_url(running.socket) as store:
            assert client.get("/v1/keys").status_code == 200
            store.flushall()
            until(lambda: client.get("/v1/keys").status_code == 503)
            assert "came back without" in client.get("/v1/maps").json()["detail"]
            with running.client() as stranger:
                assert_unauthorized(stranger.get("/v1/maps"))
                assert_unauthorized(stranger.post("/v1/keys", json={"name": "mine", "role": "admin"}))
