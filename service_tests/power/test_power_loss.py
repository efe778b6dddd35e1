"""The embedded store, when the power goes: what was acknowledged is there again."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import get_args

import psutil
import pytest
import redis

from service_tests.cases import few_and_many
from service_tests.jobs.site import gone
from service_tests.power.disk import Disk, Loss, Names, Tail
from service_tests.servers import answers, until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="open files have paths in /proc on Linux only"),
    pytest.mark.gate,  # each loss takes a start of the store
]

EMBEDDED = """
import sys, time
from pathlib import Path
from app.store.embedded import EmbeddedStore

EmbeddedStore(Path(sys.argv[1]), None).start()
time.sleep(600)
"""
LOSSES = [Loss(names, tail) for names in get_args(Names) for tail in get_args(Tail)]
WRITERS = 3


def ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether a process has ended; it is not reaped."""
    return psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE


@contextmanager
def embedded(disk: Disk) -> Iterator[str]:
    """The embedded store as a service starts it, until the power goes; gives its URL."""
    data = disk.root / "data"
    url = f"unix://{data}/store.sock"
    process = subprocess.Popen([sys.executable, "-c", EMBEDDED, data], env=disk.environment, stdin=subprocess.DEVNULL)
    try:
        until(lambda: answers(url) or ended(process))
        assert not ended(process), "the store did not start"
        yield url
    finally:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        for one in family:  # the process first: it would start its store again
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait(30)
        gone(family)


def begin(url: str, streams: list[Iterator[int]], acknowledged: set[int]) -> list[threading.Thread]:
    """Write keys until the store is gone, each stream over a connection, and note which were acknowledged.

    The append-only file is rewritten over and over meanwhile.
    """

    def write(names: Iterator[int]) -> None:
        with suppress(redis.RedisError), redis.Redis.from_url(url, retry=None) as client:
            for name in names:
                client.set(f"key {name}", value(name))
                acknowledged.add(name)

    def rewriting() -> None:
        with redis.Redis.from_url(url, retry=None) as client, suppress(redis.ConnectionError):
            while True:
                with suppress(redis.ResponseError):  # the last one goes on
                    client.bgrewriteaof()
                time.sleep(0.05)

    threads = [threading.Thread(target=write, args=(names,)) for names in streams]
    threads.append(threading.Thread(target=rewriting))
    for thread in threads:
        thread.start()
    return threads


def value(name: int) -> bytes:
    """What is written under a name."""
    return bytes([name % 256]) * (1 + name % 3000)


def lost(client: redis.Redis, acknowledged: set[int]) -> list[int]:
    """Those whose keys are not there, or not as they were written."""
    names = list(acknowledged)
    found = client.mget([f"key {name}" for name in names])
    return [name for name, kept in zip(names, found, strict=True) if kept != value(name)]


@pytest.mark.parametrize("losses", few_and_many(LOSSES[:3], [LOSSES[0], *LOSSES] * 3), ids=len)
def test_the_embedded_store_loses_nothing_that_it_acknowledged(tmp_path: Path, losses: list[Loss]) -> None:
    """Neither on its first day, when its directory is new, nor while its file is rewritten."""
    disk, chance, acknowledged = Disk(tmp_path), Random(5), set[int]()
    names: list[Iterator[int]] = [count(writer, WRITERS) for writer in range(WRITERS)]
    for loss in losses:
        with embedded(disk) as url:
            writers = begin(url, names, acknowledged)
            until(lambda: len(acknowledged) > 50)
            disk.hold()
            time.sleep(0.05)  # the writes of that time are not synced
        for writer in writers:
            writer.join()
        disk.lose_power(loss, chance)
        with embedded(disk) as url, redis.Redis.from_url(url) as client:
            assert lost(client, acknowledged) == [], loss
            client.flushall()  # what is there from now on is of the next loss
        acknowledged.clear()
