"""The embedded store, and external ones, when the power goes: what was acknowledged is there again, as was promised."""

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
    pytest.mark.gate,  # each loss takes a start of the store; test_disk.py tries the disk itself
]

EMBEDDED = """
import sys, time
from pathlib import Path
from app.store.embedded import EmbeddedStore

EmbeddedStore(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None).start()
time.sleep(600)
"""
LOSSES = [Loss(names, tail) for names in get_args(Names) for tail in get_args(Tail)]
WRITERS = 3


def ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether a process has ended; it is not reaped."""
    return psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE


@contextmanager
def on(disk: Disk, socket: Path, *command: str | Path) -> Iterator[str]:
    """A process on the disk and all that it starts, until the power goes; gives the URL of the store at the socket."""
    process = subprocess.Popen(list(command), env=disk.environment, stdin=subprocess.DEVNULL)
    try:
        until(lambda: answers(f"unix://{socket}") or ended(process))
        assert not ended(process), "the store did not start"
        yield f"unix://{socket}"
    finally:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        for one in family:  # the process first: it would start its store again
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait(30)
        gone(family)


@contextmanager
def embedded(disk: Disk, *program: Path) -> Iterator[str]:
    """The embedded store, as a service starts it."""
    data = disk.root / "data"
    with on(disk, data / "store.sock", sys.executable, "-c", EMBEDDED, data, *program) as url:
        yield url


def begin(
    url: str, streams: list[Iterator[int]], acknowledged: set[int], rewrite: bool = True
) -> list[threading.Thread]:
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
    threads += [threading.Thread(target=rewriting)] * rewrite
    for thread in threads:
        thread.start()
    return threads


def streams() -> list[Iterator[int]]:
    """Names for each writer."""
    return [count(writer, WRITERS) for writer in range(WRITERS)]


def value(name: int) -> bytes:
    """What is written under a name."""
    return bytes([name % 256]) * (1 + name % 3000)


def lost(client: redis.Redis, acknowledged: set[int]) -> list[int]:
    """Those whose keys are not there, or not as they were written."""
    names = list(acknowledged)
    found = client.mget([f"key {name}" for name in names])
    return [name for name, kept in zip(names, found, strict=True) if kept != value(name)]


def after_losses(disk: Disk, losses: list[Loss], *program: Path, rewrite: bool = True) -> dict[Loss, int]:
    """How many acknowledged keys each power loss has taken."""
    chance, names, acknowledged, taken = Random(5), streams(), set[int](), dict[Loss, int]()
    for loss in losses:
        with embedded(disk, *program) as url:
            writers = begin(url, names, acknowledged, rewrite)
            until(lambda: len(acknowledged) > 50)
            disk.hold()
            time.sleep(0.05)  # the writes of that time are not synced
        for writer in writers:
            writer.join()
        disk.lose_power(loss, chance)
        with embedded(disk, *program) as url, redis.Redis.from_url(url) as client:
            missing = lost(client, acknowledged)
            client.flushall()  # what is there from now on is of the next loss
        taken[loss] = taken.get(loss, 0) + len(missing)
        acknowledged.clear()
    return taken


@pytest.mark.parametrize("losses", few_and_many(LOSSES[:3], [LOSSES[0], *LOSSES] * 3), ids=len)
def test_the_embedded_store_loses_nothing_that_it_acknowledged(tmp_path: Path, losses: list[Loss]) -> None:
    """Neither on its first day, when its directory is new, nor while its file is rewritten."""
    assert after_losses(Disk(tmp_path), losses) == dict.fromkeys(losses, 0)
