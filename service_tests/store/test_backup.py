"""Backups, of a store that is written to, and what they give back elsewhere."""

import random
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
import redis

from app.store import backup, identity, restore
from app.store.backup import BackupFailed
from app.store.clients import Client
from app.store.indexes import IndexStore
from app.store.maps import MapStore
from service_tests.store.backups import contents, embedded, external, fill, run
from service_tests.store.new_indexes import entry, held
from service_tests.store.new_maps import new


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
        assert restore.restore(client, file) == len(before)
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


@pytest.mark.nightly
def test_a_store_at_rest_and_one_that_runs_are_backed_up_by_command_and_back(tmp_path: Path) -> None:
    with embedded(tmp_path / "data") as client:
        fill(client)
        before = contents(client)
        ended = run("backup", tmp_path / "running", "--data-dir", tmp_path / "data")
        assert ended.returncode == 0, ended.stderr
    assert run("backup", tmp_path / "at-rest", "--data-dir", tmp_path / "data").returncode == 0
    for file in ("running", "at-rest"):
        ended = run("restore", tmp_path / file, "--data-dir", tmp_path / f"from-{file}")
        assert ended.stdout == f"{len(before)} keys were put into the store.\n", ended.stderr
        with embedded(tmp_path / f"from-{file}") as client:
            assert contents(client) == before


@pytest.mark.nightly
def test_a_backup_is_never_written_over_another_and_needs_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with embedded(tmp_path / "data"):
        ended = run("backup", tmp_path / "file", "--data-dir", tmp_path / "data")
        assert (ended.returncode, ended.stderr) == (1, f"{tmp_path}/file is there already.\n")
    assert (tmp_path / "file").read_text() == "mine"
    ended = run("backup", tmp_path / "other", "--data-dir", tmp_path / "nothing")
    assert "has no files of a store" in ended.stderr
    assert not (tmp_path / "nothing").exists()


def test_what_others_keep_in_the_same_server_stays_where_it_is(tmp_path: Path) -> None:
    with external(tmp_path / "source", "--repl-diskless-sync", "no") as client:
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


def test_a_store_that_gives_no_snapshot_says_why(tmp_path: Path) -> None:
    refused = pytest.raises(BackupFailed, match="refuses SYNC: ERR unknown command")
    with external(tmp_path / "source", "--rename-command", "SYNC", "") as client, refused:
        backup.back_up(client, tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


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
                    restore.restore(other, tmp_path / f"{turn}")
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
