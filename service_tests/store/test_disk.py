from pathlib import Path

import pytest

from app.store.connection import connect
from app.store.disk import Disk, held_bytes
from app.store.embedded import EmbeddedStore
from app.store.errors import StoreFull
from app.store.pieces import write
from service_tests.servers import STORE_PROGRAM

DEADLINE = 4_000_000_000


def test_what_is_new_counts_twice_and_what_is_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(tmp_path, 1000)
    monkeypatch.setattr(Disk, "free", lambda _: 1000 + 500 + 200)
    disk.check(100, 500)
    for nbytes, held in ((101, 500), (100, 501)):
        with pytest.raises(StoreFull, match=r"1700 bytes free.*min_free_bytes is 1000") as refused:
            disk.check(nbytes, held)
        assert (refused.value.limit, refused.value.allowed) == ("min_free_bytes", 1000)


def test_pieces_are_refused_by_a_store_without_room_and_nothing_is_left(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path / "data", STORE_PROGRAM) as store, connect(store.url, 5, 1 << 60) as client:
        with pytest.raises(StoreFull):
            write(client, "bochner:x", b"1", DEADLINE)
        assert client.dbsize() == 0
    with EmbeddedStore(tmp_path / "data", STORE_PROGRAM) as store, connect(store.url, 5, 1 << 20) as client:
        assert write(client, "bochner:x", b"1", DEADLINE) == ["bochner:x:0"]
        assert client.expiretime("bochner:x:0") == DEADLINE


def test_a_server_that_seems_to_hold_less_than_nothing_holds_nothing() -> None:
    assert held_bytes({"used_memory_dataset": (1 << 64) - 128_037}) == 0
    assert held_bytes({"used_memory_dataset": 128_037}) == 128_037
