"""The connection to the Redis-compatible server, and how safely it keeps what it is given."""

import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import unquote, urlsplit

import redis
import redis.asyncio
from pydantic import BaseModel
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from app.store.disk import Disk, cut_tails, data_dir_of
from app.store.errors import StoreFull, store_errors
from app.store.places import ONE, Places

Durability = Literal["always", "everysec", "rdb", "volatile"]
"""What a crash of the server may cost, from nothing to everything.

always: nothing acknowledged. everysec: about the last second. rdb: all since the last snapshot, or since the kernel
last wrote the append-only file of its own accord. volatile: everything.
"""
# What the URL of a store over TLS may name.
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
Heard = Callable[[str, float, bool], None]
"""Told of a call to the store: its command, its seconds, and whether it has failed."""


def _ignored(command: str, seconds: float, failed: bool) -> None:
    """For who wants to hear of no call."""


class StoreInfo(BaseModel):
    """What the store said of itself."""

    server: str
    durability: Durability
    maxmemory_policy: str
    warnings: list[str]
    """What an operator should look at."""

    def unfit(self) -> str | None:
        """Why acknowledged maps are not safe there; None if they are."""
        if self.durability == "volatile":
            return "the store keeps nothing on disk (no append-only file, no snapshots)"
        if self.maxmemory_policy != "noeviction":
            return f"the store may evict maps (maxmemory-policy is {self.maxmemory_policy}; noeviction is wanted)"
        return None


class Known:
    """What a client knows of its store."""

    places: Places = ONE
    disk: Disk | None = None
    """Where an embedded one lies. None for a store that the operator has named: what room that has is its affair."""
    seen: str | None = None
    """The mark of the store, once it was seen: see `identity`."""
    heard: Heard = staticmethod(_ignored)
    """Told of each call."""


class Client(Known, redis.Redis):
    """A client of a store of one server."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """See the client library."""
        with _timed(self.heard, args[0]):
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]


class LoopClient(redis.asyncio.Redis):
    """The same for coroutines of one event loop, which write nothing."""

    heard: Heard = staticmethod(_ignored)
    """Told of each call."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """See the client library."""
        with _timed(self.heard, args[0]):
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]


@contextmanager
def _timed(heard: Heard, command: str) -> Iterator[None]:
    began, failed = time.perf_counter(), False
    try:
        yield
    except redis.RedisError as error:
        failed = not isinstance(error, redis.ResponseError)  # which is an answer
        raise
    finally:
        heard(command.partition(" ")[0], time.perf_counter() - began, failed)


def check_room(client: redis.Redis, nbytes: int) -> None:
    """Raise StoreFull unless the disk of an embedded store has room for so many bytes more, see `Disk.check`."""
    if isinstance(client, Client) and client.disk is not None:
        with store_errors():
            info = client.info()
        client.disk.check(nbytes, 0 if info["aof_rewrite_in_progress"] else info["used_memory_dataset"])


def connect(url: str, timeout: float, min_free_bytes: int = 0) -> Client:
    """A client with a pool of connections, shared by all threads. It connects at its first call.

    A call may take `timeout` seconds. So many bytes are to stay free on the disk of an embedded store. ValueError if
    the URL is not `redis://`, `rediss://` or `unix://`, names files for TLS that are not there, or says something that
    is not understood.
    """
    client = cast(Client, Client.from_url(url, **_options(timeout, Retry)))
    _check(url)
    for name, value in client.get_connection_kwargs().items():
        if name in _FILES and not Path(value).is_file():
            raise ValueError(f"REDIS_URL: {name} {value} is no file")
    try:
        client.connection_pool.make_connection()  # which is not opened
    except TypeError as error:
        raise ValueError(f"the URL of the store has an option that is not known: {error}") from error
    data_dir = data_dir_of(url)
    client.disk = None if data_dir is None else Disk(data_dir, min_free_bytes)
    return client


def connect_loop(url: str, timeout: float) -> LoopClient:
    """The same for coroutines of one event loop, which write nothing."""
    return cast(LoopClient, LoopClient.from_url(url, **_options(timeout, redis.asyncio.retry.Retry)))


def _check(url: str) -> None:
    """Raise ValueError where the URL names a database that is no number. The client library would take database 0."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.scheme in ("redis", "rediss") and not re.fullmatch(r"/?[0-9]*", path):
        raise ValueError(f"the URL of the store ends with {path!r}; the number of a database is wanted there, as in /0")


def _options(timeout: float, retry: Callable[..., object]) -> dict[str, Any]:
    # A dropped connection is tried again; a store that is silent for the whole timeout would only be silent again.
    again = retry(ExponentialBackoff(cap=0.2, base=0.05), retries=3, supported_errors=(redis.ConnectionError,))
    return {"socket_timeout": timeout, "socket_connect_timeout": timeout, "retry": again}


def keeping(client: redis.Redis) -> StoreInfo:
    """Version, durability and eviction policy of the server; StoreUnavailable if it does not answer."""
    with store_errors():
        info = client.info()
    name = "valkey" if "valkey_version" in info else "redis"
    version = info.get("valkey_version", info.get("redis_version", "unknown"))
    policy = str(info.get("maxmemory_policy", "unknown"))
    return StoreInfo(
        server=f"{name} {version}",
        durability=_durability(client, info),
        maxmemory_policy=policy,
        warnings=_warnings(client),
    )


def values(client: redis.Redis, keys: list[str]) -> list[bytes | None]:
    """The values of keys, in any places."""
    if isinstance(client, redis.RedisCluster):
        return cast("list[bytes | None]", client.mget_nonatomic(keys))
    return cast("list[bytes | None]", client.mget(keys))


def memory_of(client: redis.Redis) -> int:
    """Bytes of memory that the server takes."""
    with store_errors():
        return int(client.info("memory")["used_memory"])


def check_writable(client: redis.Redis) -> None:
    """Write a key and remove it; StoreUnavailable if the server does not answer, is full, or is a replica."""
    key = f"bochner:probe:{secrets.token_hex(8)}"
    with store_errors():
        client.set(key, b"", px=1000)
        client.delete(key)


def _warnings(client: redis.Redis) -> list[str]:
    """What an operator should know of an embedded store: that it is full, and what was cut off its files."""
    warnings = []
    try:
        check_room(client, 0)
    except StoreFull as error:
        warnings.append(str(error))
    if isinstance(client, Client) and client.disk is not None:
        warnings += [f"{path.name} was cut off a file of the store" for path in cut_tails(client.disk.directory)]
    return warnings


def _durability(client: redis.Redis, info: dict[str, Any]) -> Durability:
    if info.get("aof_enabled"):
        # Off or unknown, the kernel's own write-back decides: nearest to a snapshot.
        synced: dict[str, Durability] = {"always": "always", "everysec": "everysec"}
        return synced.get(_setting(client, "appendfsync", unknown="everysec"), "rdb")
    return "rdb" if _setting(client, "save", unknown="") else "volatile"


def _setting(client: redis.Redis, name: str, unknown: str) -> str:
    """A server setting, or `unknown` where the server does not let its clients ask, as managed ones may not."""
    with store_errors():
        try:
            answer = cast(dict[Any, Any], client.config_get(name))
        except redis.ResponseError:
            return unknown
    value = next(iter(answer.values()), unknown)
    return value.decode() if isinstance(value, bytes) else str(value)
