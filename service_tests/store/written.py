"""Files that a real server has written, for tests that damage them."""

import os
import signal
from itertools import pairwise
from pathlib import Path

import redis

from app.store.disk import FOLDER
from service_tests.servers import EVERY_WRITE, valkey

SCRIPT = "redis.call('SET', KEYS[1], 'a') redis.call('SET', KEYS[2], 'b')"
APPENDED = f"{FOLDER}/appendonly.aof.1.incr.aof"


def fill(url: str) -> None:
    """Let a server write commands of every sort that the service has: short, long, with any byte, and transactions."""
    with redis.Redis.from_url(url) as client:
        client.set("bochner:first", bytes(range(256)) * 3)
        client.zadd("bochner:names", {"one": 0, "two": 0})
        with client.pipeline(transaction=True) as both:
            both.set("bochner:one", b"1").set("bochner:two", b"2").execute()
        client.set("bochner:short", b"x", ex=10_000)
        client.eval(SCRIPT, 2, "bochner:a", "bochner:b")
        client.hset("bochner:{job:1}:record", mapping={"state": "queued", "id": "1"})
        client.xadd("bochner:jobs:queue", {"job": "1"})
        client.set("bochner:last", b"")


def killed_store(directory: Path) -> Path:
    """The directory of a server that was filled and killed."""
    directory.mkdir(exist_ok=True)
    with valkey(directory, *EVERY_WRITE) as url:
        fill(url)
        with redis.Redis.from_url(url) as client:
            os.kill(int(client.info("server")["process_id"]), signal.SIGKILL)
    return directory


def boundaries(data: bytes) -> list[int]:
    """Where what counts whole or not at all ends: a command, or a transaction. Read in another way than the app's."""
    ends, at, inside = [0], 0, False
    while at < len(data):
        words, at = _words(data, at)
        inside = words[0] == b"MULTI" or (inside and words[0] != b"EXEC")
        if not inside:
            ends.append(at)
    assert all(first < second for first, second in pairwise(ends))
    return ends


def _words(data: bytes, at: int) -> tuple[list[bytes], int]:
    end = data.index(b"\r\n", at)
    n, at, words = int(data[at + 1 : end]), end + 2, []
    for _ in range(n):
        end = data.index(b"\r\n", at)
        length = int(data[at + 1 : end])
        words.append(data[end + 2 : end + 2 + length])
        at = end + 2 + length + 2
    return words, at
