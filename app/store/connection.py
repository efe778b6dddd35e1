"""The connection to a store: a server, a cluster, or the primary that sentinels name."""

from collections.abc import Callable
from typing import Any, cast

import redis
import redis.asyncio
from redis.backoff import ExponentialBackoff
from redis.cluster import ClusterNode
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelManagedConnection, SentinelManagedSSLConnection

from app.store.address import Address, parsed
from app.store.clients import Client, ClusterClient, LoopClient, LoopClusterClient
from app.store.confirmed import waiting
from app.store.disk import Disk, data_dir_of, held_bytes
from app.store.errors import store_errors


def connect(url: str, timeout: float, min_free_bytes: int = 0, replicas: int = 0) -> Client:
    """A client with pools of connections, shared by all threads. It connects at its first call.

    A call may take `timeout` seconds; what is acknowledged is waited for until so many replicas have it, for half of
    that. So many bytes are to stay free on the disk of an embedded store. ValueError if the URL is none that `address`
    knows, or says something that is not understood.
    """
    at = parsed(url)
    times = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    try:
        client = _client(at, replicas, timeout / 2, retry=_again(Retry), **times)
    except TypeError as error:
        raise ValueError(f"the URL of the store has an option that is not known: {error}") from error
    client.replicas = replicas
    data_dir = data_dir_of(url)
    client.disk = None if data_dir is None else Disk(data_dir, min_free_bytes)
    return client


def connect_loop(url: str, timeout: float) -> LoopClient:
    """The same for coroutines of one event loop, which write nothing that is acknowledged."""
    at, again = parsed(url), _again(redis.asyncio.retry.Retry)
    times: dict[str, Any] = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    if at.kind == "server":
        return cast(LoopClient, LoopClient.from_url(url, retry=again, **times))
    options = {"retry": again, "ssl": at.tls, **times, **at.options}
    if at.kind == "cluster":
        return cast(LoopClient, LoopClusterClient(startup_nodes=_nodes(at), require_full_coverage=False, **options))
    sentinels = redis.asyncio.Sentinel(at.nodes, sentinel_kwargs=times | _of_sentinels(at), **options)  # type: ignore[no-untyped-call]
    return cast(LoopClient, sentinels.master_for(at.service, redis_class=LoopClient))


def _client(at: Address, replicas: int, wait: float, **options: Any) -> Client:
    """A client that waits so many seconds for so many replicas; TypeError if the address has an unknown option."""
    if at.kind == "server":
        client = cast(Client, Client.from_url(at.url, **options))
        pool = client.connection_pool
        pool.connection_class = waiting(pool.connection_class, replicas, wait)
        pool.make_connection()  # which is not opened
        return client
    plain = redis.SSLConnection if at.tls else redis.Connection
    plain(**at.options)  # which is not opened: others are at the first call
    if at.kind == "cluster":
        kind = waiting(plain, replicas, wait)
        return cast(Client, ClusterClient(at.nodes, connection_class=kind, **options, **at.options))
    kind = waiting(SentinelManagedSSLConnection if at.tls else SentinelManagedConnection, replicas, wait)
    times = {name: options[name] for name in ("socket_timeout", "socket_connect_timeout")}
    sentinels = Sentinel(at.nodes, sentinel_kwargs=times | _of_sentinels(at), **options, **at.options)  # type: ignore[no-untyped-call]
    found = sentinels.master_for(at.service, redis_class=Client, connection_class=kind)  # type: ignore[no-untyped-call]
    return cast(Client, found)


def _nodes(at: Address) -> Any:
    return [ClusterNode(*node) for node in at.nodes]  # type: ignore[no-untyped-call]


def _of_sentinels(at: Address) -> dict[str, Any]:
    return {"ssl": at.tls, **at.of_sentinels}


def _again(retry: Callable[..., Any]) -> Any:
    # A dropped connection is tried again; a store that is silent for the whole timeout would only be silent again.
    return retry(ExponentialBackoff(cap=0.2, base=0.05), retries=3, supported_errors=(redis.ConnectionError,))


def check_room(client: redis.Redis, nbytes: int) -> None:
    """Raise StoreFull unless the disk of an embedded store has room for so many bytes more, see `Disk.check`."""
    if isinstance(client, Client) and client.disk is not None:
        with store_errors():
            info = client.info()
        client.disk.check(nbytes, 0 if info["aof_rewrite_in_progress"] else held_bytes(info))
