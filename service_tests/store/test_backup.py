"""Backups, of a store that is written to, and what they give back elsewhere."""

import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
import redis

from app.jobs import scripts
from app.jobs.job_context import JobContext
from app.jobs.jobs import Jobs
from app.jobs.record import JobState
from app.store import backup, identity, restore
from app.store.backup import BackupFailed
from app.store.binary import find_binary
from app.store.connection import Client, connect
from app.store.embedded import EmbeddedStore
from app.store.identity import StoreReplaced
from app.store.maps import MapStore
from service_tests.jobs.site import Site, attempt, read
from service_tests.servers import EVERY_WRITE, until, valkey
from service_tests.store.new_maps import new

LATER = 4_000_000_000_000
AT_ONCE = ("--repl-diskless-sync-delay", "0")


@contextmanager
def embedded(directory: Path) -> Iterator[Client]:
    with EmbeddedStore(directory) as store, connect(store.url, 30) as client:
        yield client


@contextmanager
def external(directory: Path, *options: str) -> Iterator[Client]:
    directory.mkdir(exist_ok=True)
    with valkey(directory, *EVERY_WRITE, *AT_ONCE, *options) as url, connect(url, 30) as client:
        yield client


def run(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "app", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)


def contents(client: redis.Redis) -> dict[bytes, tuple[bytes, int]]:
    """Every key but the mark, as the server itself writes it down, and when it expires."""
    names = [name for name in client.scan_iter() if name != identity.KEY.encode()]
    return {name: (dumped(client, name), client.pexpiretime(name)) for name in names}


def dumped(client: redis.Redis, name: bytes) -> Any:
    """The bytes that the server gives. Sets and hashes have no order, streams the moments when consumers were seen."""
    kind = client.type(name)
    if kind == b"stream":
        groups = client.xinfo_groups(name)
        pending = [client.xpending(name, group["name"]) for group in groups]
        return client.xrange(name), pending
    return {b"set": client.smembers, b"hash": client.hgetall}.get(cast(bytes, kind), client.dump)(name)


def fill(client: Client) -> None:
    identity.settle(client)
    maps, jobs = MapStore(client), Jobs(client, 100, 600)
    for i in range(20):
        maps.create(new(f"m{i}", megabytes=0.01 if i else 2.5))
    for i in range(5):
        jobs.submit("test-walk", {"steps": 3, "seed": i}, attachments={"rows": bytes(10_000)})
    attempt(client, jobs.page(None, None, 10).jobs[0].id)
    client.set("bochner:expiring", b"x", pxat=LATER)


@pytest.mark.parametrize("source", [embedded, external])
@pytest.mark.parametrize("target", [embedded, external])
def test_what_a_store_holds_is_put_into_another(tmp_path: Path, source: Any, target: Any) -> None:
    file = tmp_path / "file"
    with source(tmp_path / "source") as client:
        fill(client)
        before, mark = contents(client), client.seen
        assert backup.back_up(client, file) == len(before) + 1
        assert file.stat().st_mode & 0o077 == 0
        assert contents(client) == before, "nothing is changed"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["file"]
    with target(tmp_path / "target") as client:
        assert restore.restore(client, file) == len(before)
        assert contents(client) == before
        identity.settle(client)
        assert client.seen == mark, "it is the store that it was"
        maps = MapStore(client)
        manifest = maps.find("m0")
        assert manifest is not None
        maps.read_all(manifest)
    if target is embedded:
        with embedded(tmp_path / "target") as client:
            assert contents(client) == before, "also after a restart"


@pytest.mark.long
def test_a_store_at_rest_and_one_that_runs_are_backed_up_by_command_and_back(tmp_path: Path) -> None:
    with embedded(tmp_path / "data") as client:
        fill(client)
        before = contents(client)
        ended = run("backup", tmp_path / "running", "--data-dir", tmp_path / "data")
        assert ended.returncode == 0, ended.stderr
        assert re.fullmatch(rf"{tmp_path}/running: \d+ bytes, {len(before) + 1} keys\.\n", ended.stdout)
    assert run("backup", tmp_path / "at-rest", "--data-dir", tmp_path / "data").returncode == 0
    for file in ("running", "at-rest"):
        ended = run("restore", tmp_path / file, "--data-dir", tmp_path / f"from-{file}")
        assert ended.stdout == f"{len(before)} keys were put into the store.\n", ended.stderr
        with embedded(tmp_path / f"from-{file}") as client:
            assert contents(client) == before


@pytest.mark.long
def test_a_backup_is_never_written_over_another_and_needs_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with embedded(tmp_path / "data"):
        ended = run("backup", tmp_path / "file", "--data-dir", tmp_path / "data")
        assert (ended.returncode, ended.stderr) == (1, f"{tmp_path}/file is there already.\n")
        assert run("backup", tmp_path / "no" / "folder", "--data-dir", tmp_path / "data").returncode == 1
    assert (tmp_path / "file").read_text() == "mine"
    ended = run("backup", tmp_path / "other", "--data-dir", tmp_path / "nothing")
    assert "has no files of a store" in ended.stderr
    assert not (tmp_path / "nothing").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"file", "data"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup."""
    home = tmp_path_factory.mktemp("backup")
    with external(home / "source") as client:
        fill(client)
        backup.back_up(client, home / "file")
    return home / "file"


def test_a_store_that_is_not_empty_is_left_alone(tmp_path: Path, written: Path) -> None:
    with external(tmp_path / "target") as client:
        MapStore(client).create(new("mine"))
        before = contents(client)
        with pytest.raises(BackupFailed, match="not empty"):
            restore.restore(client, written)
        assert contents(client) == before


def test_a_store_that_a_service_only_waits_for_is_empty(tmp_path: Path, written: Path) -> None:
    with external(tmp_path / "target") as client:
        site = Site("", client)
        site.queue.tend()
        identity.settle(client)
        restore.restore(client, written)
        assert MapStore(client).find("m0") is not None


@pytest.mark.parametrize("damage", ["cut", "flipped", "no snapshot", "empty"])
def test_a_damaged_backup_changes_nothing(tmp_path: Path, written: Path, damage: str) -> None:
    data = written.read_bytes()
    half = len(data) // 2
    flipped = data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :]
    damaged = {"cut": data[:-9], "flipped": flipped, "no snapshot": b"nothing of the kind", "empty": b""}
    (tmp_path / "file").write_bytes(damaged[damage])
    with external(tmp_path / "target") as client:
        with pytest.raises(BackupFailed, match=str(tmp_path / "file")):
            restore.restore(client, tmp_path / "file")
        assert client.dbsize() == 0


def test_a_restore_that_was_cut_short_is_known_and_begun_anew(
    tmp_path: Path, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with external(tmp_path / "target") as client, external(tmp_path / "other") as other:
        monkeypatch.setattr(restore, "_BATCH_KEYS", 5)
        monkeypatch.setattr(restore, "_carry_out", failing(restore._carry_out, 3))
        with pytest.raises(KeyboardInterrupt):
            restore.restore(client, written)
        with connect("unix://" + client.connection_pool.connection_kwargs["path"], 5) as service:
            with pytest.raises(StoreReplaced, match="being put back"):
                identity.settle(service)
            backup.back_up(client, tmp_path / "half")
            with pytest.raises(BackupFailed, match="not empty"):
                restore.restore(client, tmp_path / "half")  # another one
            monkeypatch.undo()
            restore.restore(client, written)
            identity.settle(service)
        restore.restore(other, written)
        assert contents(client) == contents(other)


def failing(function: Any, calls: int) -> Any:
    """The function, which is interrupted at one of its calls."""
    left = [calls]

    def call(*args: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return function(*args)

    return call


def test_jobs_go_on_where_the_backup_is_put(tmp_path: Path, written: Path) -> None:
    """Those that waited are still queued; those that ran are taken back, as if their worker had died."""
    with external(tmp_path / "target") as client:
        restore.restore(client, written)
        site = Site("", client)
        states = [job.state for job in site.jobs.page(None, None, 10).jobs]
        assert sorted(states) == [JobState.queued] * 4 + [JobState.running]
        (running,) = (job.id for job in site.jobs.page(JobState.running, None, 10).jobs)
        site.abandon(site.jobs.fields(running)["message"])  # as three seconds do
        site.queue.tend()
        assert {job.state for job in site.jobs.page(None, None, 10).jobs} == {JobState.queued}
        for _ in range(5):
            message = read(client)
            assert scripts.run(client, "claim", message.job_id, message.id) == b"ok"
            begun = JobContext(client, message.job_id, message.id, site.jobs.fields(message.job_id))
            assert begun.attachment("rows") == bytes(10_000)


def test_keys_that_have_expired_meanwhile_do_not_come_back(tmp_path: Path) -> None:
    with external(tmp_path / "source") as client:
        client.set("bochner:soon", b"x", px=400)
        client.set("bochner:later", b"x", pxat=LATER)
        backup.back_up(client, tmp_path / "file")
    time.sleep(0.5)
    with external(tmp_path / "target") as client:
        restore.restore(client, tmp_path / "file")
        assert set(contents(client)) == {b"bochner:later"}
        assert client.pexpiretime("bochner:later") == LATER


def test_what_others_keep_in_the_same_server_stays_where_it_is(tmp_path: Path) -> None:
    with external(tmp_path / "source") as client:
        client.set("other:key", b"x")
        with redis.Redis(unix_socket_path=client.connection_pool.connection_kwargs["path"], db=3) as third:
            third.set("bochner:mine", b"y")
        backup.back_up(client, tmp_path / "file")
        client.set("bochner:too", b"z")
        backup.back_up(client, tmp_path / "both")
    with external(tmp_path / "target") as client:
        restore.restore(client, tmp_path / "file")
        assert set(contents(client)) == {b"bochner:mine"}
    with external(tmp_path / "second") as client, pytest.raises(BackupFailed, match="2 databases"):
        restore.restore(client, tmp_path / "both")


@pytest.mark.parametrize(
    "options", [("--requirepass", "secret"), ("--repl-diskless-sync", "no"), ("--rdbcompression", "no")]
)
def test_servers_of_other_settings_give_their_snapshots_too(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "source").mkdir()
    password = ":secret@" if "secret" in options else ""
    line = [
        "--unixsocket",
        str(tmp_path / "s.sock"),
        "--port",
        "0",
        "--dir",
        str(tmp_path / "source"),
        *AT_ONCE,
        *options,
    ]
    server = subprocess.Popen([str(find_binary(None)), *line], stdout=subprocess.DEVNULL)
    try:
        with connect(f"unix://{password}{tmp_path}/s.sock", 5) as client:
            wait_for(client)
            client.set("bochner:key", b"x" * 100_000)
            assert backup.back_up(client, tmp_path / "file") == 1
    finally:
        server.kill()
        server.wait()


def wait_for(client: redis.Redis) -> None:
    def answers() -> bool:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False

    until(answers)


def test_a_store_that_gives_no_snapshot_says_why(tmp_path: Path) -> None:
    refused = pytest.raises(BackupFailed, match="refuses SYNC: ERR unknown command")
    with external(tmp_path / "source", "--rename-command", "SYNC", "") as client, refused:
        backup.back_up(client, tmp_path / "file")
    with (
        connect(f"unix://{tmp_path}/nobody.sock", 5) as client,
        pytest.raises(BackupFailed, match="There is no backup"),
    ):
        backup.back_up(client, tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.long
def test_what_was_acknowledged_before_a_backup_begins_is_in_it_while_writes_go_on(tmp_path: Path) -> None:
    """To an external store and back; each map in it is whole."""
    acknowledged: list[str] = []
    stop = threading.Event()

    def create(client: Client) -> None:
        maps = MapStore(client)
        while not stop.is_set():
            name = f"w{len(acknowledged)}"
            maps.create(new(name, megabytes=0.1))
            acknowledged.append(name)
            if len(acknowledged) % 5 == 0:
                maps.delete(random.Random(len(acknowledged)).choice(acknowledged[-4:]))

    with embedded(tmp_path / "data") as client:
        fill(client)
        writer = threading.Thread(target=create, args=(client,))
        writer.start()
        try:
            for turn in range(3):
                while len(acknowledged) < 20 * (turn + 1):
                    assert writer.is_alive()
                    time.sleep(0.01)
                there = set(client.zrange("bochner:maps", 0, -1))
                backup.back_up(client, tmp_path / f"{turn}")
                gone = there - set(client.zrange("bochner:maps", 0, -1))
                with external(tmp_path / f"external-{turn}") as other:
                    restore.restore(other, tmp_path / f"{turn}")
                    maps = MapStore(other)
                    found = cast(set[bytes], set(other.zrange("bochner:maps", 0, -1)))
                    assert there - gone <= found
                    for name in found:
                        manifest = maps.find(name.decode())
                        assert manifest is not None
                        maps.read_all(manifest)
                    backup.back_up(other, tmp_path / f"back-{turn}")
                    before = contents(other)
                with embedded(tmp_path / f"embedded-{turn}") as third:
                    restore.restore(third, tmp_path / f"back-{turn}")
                    assert contents(third) == before
        finally:
            stop.set()
            writer.join()


def test_a_store_that_the_environment_names_is_backed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOCHNER_DATA_DIR", str(tmp_path / "none"))
    with external(tmp_path / "source") as client:
        client.set("bochner:1", b"x")
        monkeypatch.setenv("REDIS_URL", url_of(client))
        ended = run("backup", tmp_path / "file")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "file").is_file()


@pytest.mark.long
def test_a_large_store_takes_little_memory(tmp_path: Path) -> None:
    """150 MB, of which a process holds a few pieces at a time."""
    with external(tmp_path / "source", "--rdbcompression", "no") as client:
        for i in range(150):
            client.set(f"bochner:{i}", os.urandom(1 << 20))
        line = [sys.executable, "-m", "app", "backup", str(tmp_path / "file"), "--redis-url", url_of(client)]
        assert largest(line) < 120 << 20
    with external(tmp_path / "target") as client:
        line = [sys.executable, "-m", "app", "restore", str(tmp_path / "file"), "--redis-url", url_of(client)]
        assert largest(line) < 120 << 20
        assert client.dbsize() == 151
    shutil.rmtree(tmp_path / "target")


def url_of(client: redis.Redis) -> str:
    return "unix://" + str(client.connection_pool.connection_kwargs["path"])


def largest(line: list[str]) -> int:
    """The most anonymous memory that a process took, looked at every few milliseconds."""
    process, most = psutil.Popen(line, stdout=subprocess.DEVNULL), 0
    while process.poll() is None:
        try:
            memory = process.memory_info()
            most = max(most, memory.rss - memory.shared)
        except psutil.Error:
            break
    assert process.wait() == 0
    return most
