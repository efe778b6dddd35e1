"""Stores to back up and to restore, and what is in them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import redis

from app.jobs.jobs import Jobs
from app.store import identity
from app.store.clients import Client
from app.store.connection import connect
from app.store.embedded import EmbeddedStore
from app.store.indexes import IndexStore
from app.store.maps import MapStore
from service_tests.jobs.site import attempt
from service_tests.servers import EVERY_WRITE, STORE_PROGRAM, valkey
from service_tests.store.new_indexes import entry, new_index
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


def url_of(client: redis.Redis) -> str:
    return "unix://" + str(client.connection_pool.connection_kwargs["path"])
