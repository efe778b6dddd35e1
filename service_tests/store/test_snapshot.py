import mmap
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from app.store import lzf, snapshot
from app.store.snapshot_walk import SnapshotBroken
from service_tests.servers import VOLATILE, valkey

LATER = 4_000_000_000_000  # milliseconds since 1970
LONG = b"bochner:{map:" + 100 * b"a" + b"}:manifest"


def fill(client: redis.Redis, n: int) -> None:
    """Keys of every type, of so many members each."""
    chance = random.Random(n)
    client.set("short", b"x")
    client.set("number", 17)
    client.set("negative", -70_000)
    client.set(b"17", b"a name that is a number")
    client.set(LONG, b"packed" * 1000, pxat=LATER)
    client.set("random", chance.randbytes(100_000))
    client.set("14 bits", bytes(1000))
    client.expire("number", 100_000)
    members = [f"{i}-{chance.random()}" for i in range(n)]
    client.sadd("set", *members)
    client.sadd("numbers", *range(n))
    client.zadd("zset", {member: i / 3 for i, member in enumerate(members)})
    client.zadd("infinite", {"up": float("inf"), "down": float("-inf"), "one": 1})
    client.hset("hash", mapping=dict.fromkeys(members, "value"))
    client.rpush("list", *members)
    client.rpush("long list", *(bytes(5000) for _ in range(4)))
    for i in range(n):
        client.xadd("stream", {"job": str(i)})
    client.xadd("stream of nobody", {"a": "b"})
    for group in ("workers", "others"):
        client.xgroup_create("stream", group, "0")
    client.xgroup_create("empty stream", "workers", "0", mkstream=True)
    client.xreadgroup("workers", "worker", {"stream": ">"}, count=n // 2)
    client.xreadgroup("workers", "another", {"stream": ">"}, count=1)


@contextmanager
def opened(path: Path) -> Iterator[mmap.mmap]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


@pytest.fixture(scope="module", params=["small", "large", "large, not packed"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A snapshot that a server wrote, and the server; small collections are kept in other ways than large ones."""
    directory = tmp_path_factory.mktemp("snapshot")
    options = ("--rdbcompression", "no") if "not packed" in request.param else ()
    with valkey(directory, *VOLATILE, *options) as url, redis.Redis.from_url(url) as client:
        if request.param != "small":
            for name in client.config_get("*-max-*-entries"):
                client.config_set(name, 4)
        fill(client, 5 if request.param == "small" else 300)
        client.save()
        yield directory / "dump.rdb", url


def test_every_key_is_found_where_the_server_has_it(written: tuple[Path, str]) -> None:
    path, url = written
    with opened(path) as data, redis.Redis.from_url(url) as client:
        found = {key.name: key for key in snapshot.keys(data)}
        assert set(found) == set(client.scan_iter())
        assert snapshot.check(data) == len(found) == 17
        assert found[LONG].expires == LATER
        assert found[b"number"].expires == client.pexpiretime("number")
        assert found[b"short"].expires is None
        for name in (b"short", b"number", b"negative", LONG, b"random", b"14 bits"):
            assert snapshot.text(data, found[name]) == client.get(name)


def test_a_value_can_be_given_to_a_server(written: tuple[Path, str], tmp_path: Path) -> None:
    """The bytes are those that the server itself gives for a key."""
    path, url = written
    with valkey(tmp_path, *VOLATILE) as other, redis.Redis.from_url(other) as to, redis.Redis.from_url(url) as client:
        with opened(path) as data:
            for key in snapshot.keys(data):
                to.restore(key.name.decode(), 0, snapshot.as_payload(data, key))
        assert to.dbsize() == client.dbsize()
        for name in client.scan_iter():
            assert to.type(name) == client.type(name)
        assert to.xpending("stream", "workers") == client.xpending("stream", "workers")
        assert to.zrange("zset", 0, -1, withscores=True) == client.zrange("zset", 0, -1, withscores=True)
        assert to.hgetall("hash") == client.hgetall("hash")
        assert to.get(LONG) == client.get(LONG)


def test_wherever_a_snapshot_ends_it_is_not_whole(written: tuple[Path, str], tmp_path: Path) -> None:
    data = written[0].read_bytes()
    cuts = [*range(1, 200), *random.Random(1).sample(range(200, len(data)), 200), *range(len(data) - 50, len(data))]
    for cut in cuts:
        (tmp_path / "cut").write_bytes(data[:cut])
        with opened(tmp_path / "cut") as torn, pytest.raises(SnapshotBroken):
            snapshot.check(torn)


def test_any_bit_that_is_flipped_is_noticed(written: tuple[Path, str], tmp_path: Path) -> None:
    data = written[0].read_bytes()
    for at in random.Random(2).sample(range(len(data)), 300):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        (tmp_path / "damaged").write_bytes(damaged)
        with opened(tmp_path / "damaged") as torn, pytest.raises(SnapshotBroken):
            snapshot.check(torn)


@pytest.mark.parametrize("text", [b"REDIS00", b"not a snapshot", b"REDIS0011", b"REDIS0011\xff1234567", bytes(100)])
def test_what_is_no_snapshot_is_refused(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(text)
    with opened(tmp_path / "file") as data, pytest.raises(SnapshotBroken):
        snapshot.check(data)


def test_what_is_packed_comes_back() -> None:
    assert lzf.unpacked(b"\x02abc") == b"abc"
    assert lzf.unpacked(b"\x00a\xe0\x5b\x00") == 101 * b"a"
    assert lzf.unpacked(b"\x01ab\x20\x01\x00c") == b"ababac"[:5] + b"c"
