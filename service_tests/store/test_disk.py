import os
from pathlib import Path

import pytest

from app.store.connection import connect
from app.store.disk import Disk, data_dir_of, held_bytes
from app.store.embedded import EmbeddedStore
from app.store.errors import StoreFull
from app.store.pieces import write
from service_tests.servers import EVERY_WRITE, STORE_PROGRAM, valkey

DEADLINE = 4_000_000_000


@pytest.mark.parametrize(
    ("url", "directory"),
    [
        ("unix:///var/data/store.sock", "/var/data"),
        ("unix:///var/a%20b/store.sock", "/var/a b"),
        ("unix:///var/data/valkey.sock", None),
        ("redis://localhost/0", None),
        ("rediss://store.sock:6379", None),
    ],
)
def test_only_an_embedded_store_has_a_known_disk(url: str, directory: str | None) -> None:
    assert data_dir_of(url) == (None if directory is None else Path(directory))


def test_what_is_new_counts_twice_and_what_is_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(tmp_path, 1000)
    monkeypatch.setattr(Disk, "free", lambda _: 1000 + 500 + 200)
    disk.check(100, 500)
    for nbytes, held in ((101, 500), (100, 501)):
        with pytest.raises(StoreFull, match=r"1700 bytes free.*min_free_bytes is 1000") as refused:
            disk.check(nbytes, held)
        assert (refused.value.limit, refused.value.allowed) == ("min_free_bytes", 1000)


def test_free_bytes_are_those_of_the_system(tmp_path: Path) -> None:
    found = os.statvfs(tmp_path)
    assert abs(Disk(tmp_path, 0).free() - found.f_bavail * found.f_frsize) < 1 << 30


def test_a_disk_takes_writes_if_a_file_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Disk(tmp_path, 0).takes_writes()
    assert list(tmp_path.iterdir()) == []
    assert not Disk(tmp_path / "missing", 0).takes_writes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert not Disk(tmp_path, 0).takes_writes()


def test_pieces_are_refused_by_a_store_without_room_and_nothing_is_left(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path / "data", STORE_PROGRAM) as store, connect(store.url, 5, 1 << 60) as client:
        with pytest.raises(StoreFull):
            write(client, "bochner:x", b"1", DEADLINE)
        assert client.dbsize() == 0
    with EmbeddedStore(tmp_path / "data", STORE_PROGRAM) as store, connect(store.url, 5, 1 << 20) as client:
        assert write(client, "bochner:x", b"1", DEADLINE) == ["bochner:x:0"]
        assert client.expiretime("bochner:x:0") == DEADLINE


def test_the_disk_of_a_store_that_was_named_is_not_looked_at(tmp_path: Path) -> None:
    with valkey(tmp_path, *EVERY_WRITE) as url, connect(url, 5, 1 << 60) as client:
        write(client, "bochner:x", b"1", DEADLINE)


def test_a_server_that_seems_to_hold_less_than_nothing_holds_nothing() -> None:
    assert held_bytes({"used_memory_dataset": (1 << 64) - 128_037}) == 0
    assert held_bytes({"used_memory_dataset": 128_037}) == 128_037
