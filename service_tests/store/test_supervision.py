"""Servers that die, hang or come late, and what the embedded store does about it."""

import os
import signal
import time

import pytest
import redis

from app.store import server
from app.store.binary import StoreNotStarted
from service_tests.servers import until
from service_tests.store.site import Site, ended, lives, reachable, server_pid


def test_a_server_that_is_killed_comes_back_with_its_data(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with site.store() as store:
        for count in range(2):
            with redis.Redis.from_url(store.url) as client:
                client.set(f"key {count}", b"value")
                os.kill(site.pids()[-1], signal.SIGKILL)
            until(lambda n=count + 2: len(site.pids()) == n and reachable(store.url))  # type: ignore[misc]
            with redis.Redis.from_url(store.url) as client:
                assert client.dbsize() == count + 1
                assert server_pid(client) == site.pids()[-1]
        assert [lives(pid) for pid in site.pids()] == [False, False, True], "the dead are reaped"
    assert "is gone; starting it again" in caplog.text


@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_stop_during_a_restart_leaves_no_process(site: Site, delay: float) -> None:
    store = site.store()
    store.start()
    working = site.program.read_text()
    site.program.write_text(working.replace("exec", "sleep 0.3\nexec"))
    os.kill(site.pids()[-1], signal.SIGKILL)
    # Not a wait for something to be ready: the delays spread the stop over the phases of a restart.
    time.sleep(delay)
    store.stop()
    assert not any(map(lives, site.pids()))
    assert server.reply(site.data / "store.sock") is None


def test_the_server_of_a_killed_service_is_adopted(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    orphan = site.killed_service()
    with redis.Redis(unix_socket_path=str(site.data / "store.sock")) as client:
        client.set("key", b"value")
    with site.store() as store:
        with redis.Redis.from_url(store.url) as client:
            assert server_pid(client) == orphan
            assert client.get("key") == b"value"
        assert site.pids() == [orphan]
    assert f"adopted the store's server, process {orphan}" in caplog.text
    until(lambda: server.reply(site.data / "store.sock") is None)
    until(lambda: ended(orphan))


def test_a_server_that_may_lose_writes_is_not_adopted(site: Site) -> None:
    with site.foreign_server("--appendonly", "yes", "--appendfsync", "everysec") as client:
        with pytest.raises(StoreNotStarted, match="appendfsync everysec instead of always"):
            site.store().start()
        assert client.ping()
