"""What is done where the disk of an embedded store becomes full, and how its file is written anew."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from app.store import server as embedded_server
from app.store.disk import FOLDER, Disk
from app.store.errors import StoreFull, StoreUnavailable
from app.store.server import Upkeep
from service_tests.servers import EVERY_WRITE, until, valkey
from service_tests.store.site import server_pid

MiB = 1 << 20
RESERVE = 800 * MiB


class Room:
    """What a disk is said to have free."""

    free = 10 * RESERVE


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Room:
    found = Room()
    monkeypatch.setattr(Disk, "free", lambda _: found.free)
    monkeypatch.setattr(embedded_server, "_LOOK_SECONDS", 0.0)
    return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[redis.Redis]:
    """A server that does not write its file anew by itself."""
    with (
        valkey(tmp_path, *EVERY_WRITE, "--auto-aof-rewrite-percentage", "0") as url,
        redis.Redis.from_url(url, decode_responses=True) as client,
    ):
        yield client


def keeper(server: redis.Redis, directory: Path) -> Upkeep:
    return Upkeep(Disk(directory, RESERVE), directory / "valkey.sock", server_pid(server), writes=True)


def modes(server: redis.Redis) -> tuple[str | None, ...]:
    return tuple(server.config_get(name)[name] for name in ("min-replicas-to-write", "appendfsync"))


def rewrites(server: redis.Redis) -> int:
    until(lambda: server.info("persistence")["aof_rewrite_in_progress"] == 0)
    return int(server.info("persistence")["aof_rewrites"])


def test_a_server_takes_no_writes_while_its_disk_is_full_and_gives_what_it_has(
    server: redis.Redis, tmp_path: Path, room: Room
) -> None:
    kept = keeper(server, tmp_path)
    server.set("key", "value")
    kept.look()
    assert modes(server) == ("0", "always")
    room.free = RESERVE // 8 - 1
    kept.look()
    assert modes(server) == ("1", "everysec")
    for change in (lambda: server.set("key", "x"), lambda: server.delete("key"), lambda: server.expire("key", 1)):
        with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
            change()
    assert server.get("key") == "value"
    room.free = RESERVE // 4 - 1
    kept.look()
    assert modes(server) == ("1", "everysec"), "it does not go to and fro"
    room.free = RESERVE // 4
    kept.look()
    assert modes(server) == ("0", "always")
    assert server.delete("key") == 1


@pytest.mark.parametrize(
    ("free", "values", "wanted"),
    [
        (10 * RESERVE, 3, 0),  # it is small
        (RESERVE + 10 * MiB, 3, 1),  # the room is wanted
        (RESERVE + 10 * MiB, 1, 0),  # there is nothing to be gained
        (RESERVE // 4, 3, 0),  # there is no room for both files
    ],
)
def test_a_file_is_written_anew_where_it_is_worth_it_and_there_is_room(
    server: redis.Redis, tmp_path: Path, room: Room, free: int, values: int, wanted: int
) -> None:
    for i in range(values):
        server.set("key", bytes([i]) * 8 * MiB)
    room.free = free
    for _ in range(3):
        keeper(server, tmp_path).look()
        assert rewrites(server) == wanted
    assert modes(server) == ("0", "always")


def test_what_is_new_counts_twice_and_what_is_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(tmp_path, 1000)
    monkeypatch.setattr(Disk, "free", lambda _: 1000 + 500 + 200)
    monkeypatch.setattr(Disk, "is_served", lambda *_: True)
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "appendonly.aof.1.incr.aof").write_bytes(bytes(9))

    def asked(held: int, *written: int) -> Callable[[], dict[str, Any]]:
        """INFO of a server, each time with other bytes written."""
        told = iter(written)
        info = {"run_id": "run", "process_id": 0, "aof_rewrite_in_progress": 0, "used_memory_dataset": held}
        return lambda: info | {"aof_current_size": next(told)}

    disk.check(100, asked(500, 9))
    for nbytes, held in ((101, 500), (100, 501)):
        with pytest.raises(StoreFull, match=r"1700 bytes free.*min_free_bytes is 1000") as refused:
            disk.check(nbytes, asked(held, 9))
        assert (refused.value.limit, refused.value.allowed) == ("min_free_bytes", 1000)
    disk.check(100, asked(500, 10, 9))  # it has just written its files anew
    with pytest.raises(StoreUnavailable, match="or less of them"):
        disk.check(100, asked(500, 10, 10))
