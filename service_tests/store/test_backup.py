"""Backups, of a store that is written to, and what they give back elsewhere, and to which stores."""

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from unittest.mock import DEFAULT, Mock

import pytest
import redis

from app.jobs.jobs import Jobs, say_starting
from app.store import backup, identity
from app.store.backup import BackupFailed
from app.store.connection import Client, connect
from app.store.embedded import EmbeddedStore
from app.store.errors import StoreUnavailable
from app.store.identity import StoreReplaced
from app.store.indexes import IndexStore
from app.store.keys import KeyStore, Role, draw_key
from app.store.maps import MapStore
from service_tests.jobs.site import attempt
from service_tests.servers import EVERY_WRITE, STORE_PROGRAM, valkey
from service_tests.store.new_indexes import entry, held, new_index
from service_tests.store.new_maps import new

LATER = 4_000_000_000_000
AT_ONCE = ("--repl-diskless-sync-delay", "0")


@contextmanager
def embedded(directory: Path) -> Iterator[Client]:
    with EmbeddedStore(directory, STORE_PROGRAM) as store, connect(store.url, 30) as client:
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
    indexes = IndexStore(client)
    index = indexes.create(new_index("i", "vectors"))
    indexes.upsert(index, [entry(i, vector=b"v") for i in range(300)])
    indexes.remove(index, entry(7).id)
    for i in range(5):
        jobs.submit("test-walk", {"steps": 3, "seed": i}, attachments={"rows": bytes(10_000)})
    attempt(client, jobs.page(None, None, 10).jobs[0].id)
    client.set("bochner:expiring", b"x", pxat=LATER)


@pytest.mark.parametrize(("source", "target"), [(embedded, external), (external, embedded)])
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
        assert backup.restore(client, file) == len(before)
        assert contents(client) == before
        identity.settle(client)
        assert client.seen == mark, "it is the store that it was"
        maps = MapStore(client)
        manifest = maps.find("m0")
        assert manifest is not None
        maps.read_all(manifest)
        indexes = IndexStore(client)
        index = indexes.find("i")
        assert index is not None
        assert held(indexes, index) == {entry(i).id: entry(i).row for i in range(300) if i != 7}
    if target is embedded:
        with embedded(tmp_path / "target") as client:
            assert contents(client) == before, "also after a restart"


def test_a_backup_goes_through_pipes_and_is_noted(tmp_path: Path) -> None:
    with external(tmp_path / "source") as source, external(tmp_path / "target") as target:
        fill(source)
        before = contents(source)
        assert backup.last(source) is None
        urls = [f"unix://{tmp_path / of / 'valkey.sock'}" for of in ("source", "target")]
        line = [sys.executable, "-m", "app"]
        sent = subprocess.run([*line, "backup", "-", "--redis-url", urls[0]], capture_output=True, check=True)
        assert abs((backup.last(source) or 0) - time.time()) < 60
        cut = subprocess.run([*line, "restore", "-", "--redis-url", urls[1]], input=sent.stdout[:-9], check=False)
        assert cut.returncode == 1
        assert contents(target) == {}
        subprocess.run([*line, "restore", "-", "--redis-url", urls[1]], input=sent.stdout, check=True)
        assert contents(target) == before


@pytest.mark.nightly
def test_a_store_at_rest_and_one_that_runs_are_backed_up_by_command_and_back(tmp_path: Path) -> None:
    with embedded(tmp_path / "data") as client:
        fill(client)
        before = contents(client)
        ended = run("backup", tmp_path / "running", "--data-dir", tmp_path / "data")
        assert ended.returncode == 0, ended.stderr
    assert run("backup", tmp_path / "at-rest", "--data-dir", tmp_path / "data").returncode == 0
    for file, noted in (("running", 0), ("at-rest", 1)):
        ended = run("restore", tmp_path / file, "--data-dir", tmp_path / f"from-{file}")
        assert ended.stdout == f"{len(before) + noted} keys were put into the store.\n", ended.stderr
        with embedded(tmp_path / f"from-{file}") as client:
            assert {name: of for name, of in contents(client).items() if name != backup.LAST.encode()} == before


def test_a_store_that_is_being_restored_gives_no_backup_and_is_not_whole(tmp_path: Path) -> None:
    with external(tmp_path / "half") as client:
        MapStore(client).create(new())
        identity.put(client, identity.Mark(id="half", state="restoring"))
        with pytest.raises(BackupFailed, match="a backup is being put back"):
            backup.back_up(client, tmp_path / "of-half")
        assert not (tmp_path / "of-half").exists()
        url = f"unix://{client.get_connection_kwargs()['path']}"
        looked = run("check", "--redis-url", url)
        assert (looked.returncode, "a backup is being put back" in looked.stderr) == (1, True)


def test_a_store_that_came_back_empty_gives_no_backup(tmp_path: Path) -> None:
    with external(tmp_path / "empty") as client:
        identity.settle(client)
        backup.note(client)
        say_starting(client, "x")
        client.xadd("bochner:jobs:queue", {"job": "x"})
        with pytest.raises(BackupFailed, match="holds nothing"):
            backup.back_up(client, tmp_path / "file")
        url = f"unix://{client.connection_pool.connection_kwargs['path']}"
        piped = run("backup", "-", "--redis-url", url)
        assert (piped.returncode, piped.stdout, "holds nothing" in piped.stderr) == (1, "", True)
        client.set("bochner:mine", b"x")
        assert backup.back_up(client, tmp_path / "file") >= 5


def test_what_others_keep_in_the_same_server_stays_where_it_is(tmp_path: Path) -> None:
    with external(tmp_path / "source", "--repl-diskless-sync", "no") as client:
        client.set("other:key", b"x")
        with connect(f"unix://{client.connection_pool.connection_kwargs['path']}?db=3", 5) as third:
            identity.settle(third)
            with pytest.raises(BackupFailed, match="holds nothing"):
                backup.back_up(third, tmp_path / "nothing")
            third.set("bochner:mine", b"y")
            backup.back_up(third, tmp_path / "file")
            client.set("bochner:too", b"z")
            backup.back_up(third, tmp_path / "both")
    with external(tmp_path / "target") as client:
        backup.restore(client, tmp_path / "file")
        assert set(contents(client)) == {b"bochner:mine"}
    with external(tmp_path / "second") as client:
        for database in (None, 1):
            with pytest.raises(BackupFailed, match="in databases 0, 3: name one"):
                backup.restore(client, tmp_path / "both", database)
        backup.restore(client, tmp_path / "both", 3)
        assert set(contents(client)) == {b"bochner:mine"}


@pytest.mark.nightly
def test_what_was_acknowledged_before_a_backup_begins_is_in_it_while_writes_go_on(tmp_path: Path) -> None:
    """Each map in it is whole."""
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
                    backup.restore(other, tmp_path / f"{turn}")
                    maps = MapStore(other)
                    found = cast(set[bytes], set(other.zrange("bochner:maps", 0, -1)))
                    assert there - gone <= found
                    for name in found:
                        manifest = maps.find(name.decode())
                        assert manifest is not None
                        maps.read_all(manifest)
        finally:
            stop.set()
            writer.join()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup."""
    home = tmp_path_factory.mktemp("backup")
    with external(home / "source") as client:
        fill(client)
        backup.back_up(client, home / "file")
    return home / "file"


def test_a_damaged_backup_changes_nothing_and_none_goes_into_a_store_that_is_not_empty(
    tmp_path: Path, written: Path
) -> None:
    data, file = written.read_bytes(), tmp_path / "file"
    half = len(data) // 2
    # A packed string that is none, and a mark of the store that cannot be.
    entries = (b"\x00\xc3\x03\x0a\xe0\x00\x00\x01x", b"\x00\x0dbochner:store\x01x")
    made_up = [b"REDIS0011" + entry + b"\xff" + bytes(8) for entry in entries]
    flipped = data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :]
    with external(tmp_path / "target") as client:
        for damaged in (data[:-9], flipped, b"nothing of the kind", b"", *made_up):
            file.write_bytes(damaged)
            with pytest.raises(BackupFailed, match=f"{file}|packed string is damaged|mark"):
                backup.restore(client, file)
            assert client.dbsize() == 0
        MapStore(client).create(new("mine"))
        before = contents(client)
        with pytest.raises(BackupFailed, match="not empty"):
            backup.restore(client, written)
        assert contents(client) == before


def test_a_value_that_is_not_as_servers_write_it_does_not_end_the_embedded_one(tmp_path: Path) -> None:
    fields = b"\x0d\0\0\0\x02\0\x8fk\x02\x81v\x02\xff"  # says that the first name has 15 bytes
    value = b"\x10\x0abochner:xx" + bytes([len(fields)]) + fields
    (tmp_path / "file").write_bytes(b"REDIS0011" + value + b"\xff" + bytes(8))
    with embedded(tmp_path / "target") as client:
        with pytest.raises(BackupFailed, match="does not take"):
            backup.restore(client, tmp_path / "file")
        assert client.ping()


def test_a_restore_that_was_cut_short_is_known_and_begun_anew(
    tmp_path: Path, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with external(tmp_path / "target") as client, external(tmp_path / "other") as other:
        monkeypatch.setattr(backup, "_BATCH_KEYS", 5)
        monkeypatch.setattr(
            backup, "_carry_out", Mock(wraps=backup._carry_out, side_effect=[DEFAULT, DEFAULT, KeyboardInterrupt])
        )
        with pytest.raises(KeyboardInterrupt):
            backup.restore(client, written)
        with connect("unix://" + client.connection_pool.connection_kwargs["path"], 5) as service:
            with pytest.raises(StoreReplaced, match="being put back"):
                identity.settle(service)
            with pytest.raises(BackupFailed, match="a backup is being put back"):
                backup.back_up(client, tmp_path / "half")
            maps = MapStore(service)
            changes: list[Callable[[], object]] = [
                lambda: maps.page("", None, 10),
                lambda: maps.find("m0"),
                lambda: maps.create(new("new")),
                lambda: KeyStore(service, 9).create(draw_key(name="k", role=Role.read, quota=None).key),
                lambda: Jobs(service, 1, 60).page(None, None, 1),
            ]
            for listed_first in (False, True):  # the list of jobs may be put back before the jobs
                if listed_first:
                    client.zadd("bochner:jobs", {"j": 0})
                for change in changes:
                    with pytest.raises(StoreUnavailable):
                        change()
            assert not any(key.endswith((b":manifest", b":record")) for key in client.scan_iter())
            identity.settle(other)
            other.set("bochner:mine", b"x")
            backup.back_up(other, tmp_path / "another")
            other.delete("bochner:mine")
            with pytest.raises(BackupFailed, match="not empty"):
                backup.restore(client, tmp_path / "another")
            monkeypatch.undo()
            backup.restore(client, written)
            identity.settle(service)
        backup.restore(other, written)
        assert contents(client) == contents(other)
