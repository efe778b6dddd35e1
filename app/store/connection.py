"""Connection to a store: a single server, a cluster, or the primary named by sentinels.

There are clients of each kind, for threads and for an event loop.

Writes that are acknowledged to a client of the service may also have to be on replicas. A killed server loses nothing
that it has written to its disk, but a replica that takes over has only the writes that it has received. So each call on
which an acknowledgement depends is followed by WAIT on the same connection: the server returns the number of replicas
that have all writes of this connection. On another connection WAIT would refer to other writes. A server that has
become a replica meanwhile answers with an error.

A repeated request may find its work done by writes that replicas have not received yet, and on a connection that has
only read WAIT would wait for nothing. So before WAIT the connection writes an empty probe key, in the same shard.
Replicas receive a server's writes in order: a replica that has this key has all earlier writes, of any client.
"""

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar, cast
from urllib.parse import SplitResult, unquote, urlsplit
from zlib import crc32

import redis
import redis.asyncio
from redis._parsers import Encoder
from redis.backoff import ExponentialBackoff
from redis.cluster import ClusterNode
from redis.connection import parse_url
from redis.exceptions import ClusterDownError, RedisClusterException, SlotNotCoveredError
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelManagedConnection, SentinelManagedSSLConnection

from app.store.disk import Disk, data_dir_of
from app.store.errors import NotConfirmed, StoreUnavailable, store_errors

ROOT = "bochner:"
"""Prefix of every key of the service."""
N = 16
# Each tag hashes to a slot in or near the middle of a sixteenth of all slots, so that nodes have equal shares of the
# shards. Never change a tag: the keys under the old one would not be found.
TAGS = (
    *("p64", "p126", "p19", "p3", "p65", "p127", "p18", "p2"),
    *("p66", "p48", "p160", "p1", "p67", "p49", "p161", "p0"),
)


class Places(NamedTuple):
    """Shards of a store, by the prefixes of their keys (roots)."""

    roots: tuple[str, ...]

    def of(self, name: str) -> str:
        """Return the root of the shard of the thing `name`."""
        return self.roots[_number(name) % len(self.roots)]

    def of_job(self, job_id: str) -> str:
        """Return the root of the shard of a job; any root for an invalid id."""
        number = int(job_id[-1], N) if job_id[-1:] in _DIGITS else 0
        return self.roots[number % len(self.roots)]


ONE = Places((ROOT,))
MANY = Places(tuple(f"{ROOT}{{{tag}}}:" for tag in TAGS))


def places_of(client: Any) -> Places:
    """Return the shards of the store of a client."""
    found: Places = getattr(client, "places", ONE)
    return found


def root_of(key: str) -> str:
    """Return the root of the shard of a key."""
    found = _START.match(key)
    return ROOT if found is None else found[0]


def by_root(keys: Iterable[str]) -> dict[str, list[str]]:
    """Return keys grouped by the roots of their shards."""
    found: dict[str, list[str]] = {}
    for key in keys:
        found.setdefault(root_of(key), []).append(key)
    return found


def inside(root: str, key: str) -> str:
    """Return the name that a key has in a shard, given its name in a store of one shard."""
    return root + key.removeprefix(ROOT)


def digit(name: str) -> str:
    """Return the last digit of the ids of jobs in the shard of the thing `name`."""
    return f"{_number(name):x}"


_START = re.compile(r"bochner:\{\w+\}:")
_DIGITS = frozenset("0123456789abcdef")


def _number(name: str) -> int:
    return crc32(name.encode()) % N


T = TypeVar("T")
_ACKNOWLEDGED: ContextVar[bool] = ContextVar("_ACKNOWLEDGED", default=False)
_KEY_SECONDS = 60
# Position of the first key in each command. Pipelines are packed by the client library and never wait for replicas.
_FIRST_KEYS = {"EVALSHA": 3, "EVAL": 3, "GET": 1, "SET": 1, "HSET": 1, "HDEL": 1, "HGETALL": 1}


@contextmanager
def acknowledge() -> Iterator[None]:
    """Require replica acknowledgement of each call in a with block, or in a decorated function."""
    before = _ACKNOWLEDGED.set(True)
    try:
        yield
    finally:
        _ACKNOWLEDGED.reset(before)


def waiting(kind: type[redis.Connection], replicas: int, seconds: float) -> type[redis.Connection]:
    """Return a subclass of `kind` that waits, for calls within `acknowledge`, until `replicas` replicas have the write.

    A call raises NotConfirmed after `seconds`. Return `kind` itself if `replicas` is 0.
    """
    if not replicas:
        return kind
    milliseconds = max(1, round(1000 * seconds))

    class Waiting(kind):  # type: ignore[valid-type,misc]
        """Connection that waits for replica acknowledgement."""

        _root: str | None = None
        """Root of the shard of the pending call, if replicas must acknowledge that call; else None."""

        def send_packed_command(self, *args: Any, **kwargs: Any) -> None:
            self._root = None  # left by a failed call: a pipeline's responses must not be taken for its response
            super().send_packed_command(*args, **kwargs)

        def send_command(self, *args: Any, **kwargs: Any) -> None:
            super().send_command(*args, **kwargs)
            first = _FIRST_KEYS.get(args[0]) if _ACKNOWLEDGED.get() else None
            self._root = None if first is None else root_of(args[first])

        def read_response(self, *args: Any, **kwargs: Any) -> Any:
            response = super().read_response(*args, **kwargs)
            root, self._root = self._root, None
            if root is not None:
                had = self._confirmed_by(f"{root}probe:confirmed")
                if had < replicas:
                    raise NotConfirmed(had, replicas, milliseconds)
            return response

        def _confirmed_by(self, key: str) -> int:
            super().send_command("SET", key, "", "EX", _KEY_SECONDS)
            super().read_response()
            super().send_command("WAIT", replicas, milliseconds)
            return int(super().read_response())

    return cast(type[redis.Connection], Waiting)


class _Managed(SentinelManagedConnection):
    """Connection to the primary that sentinels name. It is closed after a timeout, as other connections are.

    Else a reply that comes late would be taken for that to the next command.
    """

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        return super().read_response(*args, **{"disconnect_on_error": True, **kwargs})


class _ManagedSSL(_Managed, SentinelManagedSSLConnection):
    """The same over TLS."""


Kind = Literal["server", "cluster", "sentinel"]
# Options in the URL of a store over TLS that name files.
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_PORTS = {"cluster": 6379, "sentinel": 26379}
_OF_SENTINELS = "sentinel_"


class Address(NamedTuple):
    """Address of a store."""

    kind: Kind
    url: str
    """URL as given; the client library reads it if the store is one server."""
    nodes: tuple[tuple[str, int], ...] = ()
    """Hosts and ports of some nodes of a cluster, or of the sentinels."""
    tls: bool = False
    options: Mapping[str, Any] = MappingProxyType({})
    """Options of connections to servers of the store, other than host and port."""
    service: str = ""
    """Name of the primary among the sentinels."""
    of_sentinels: Mapping[str, Any] = MappingProxyType({})
    """Options of connections to sentinels."""


def parse_address(url: str) -> Address:
    """Parse the URL of a store.

    `redis://host:port/db`, `rediss://…` over TLS and `unix:///path` name one server;
    `redis+cluster://host:port,host:port` names some nodes of a cluster;
    `redis+sentinel://host:port,host:port/service/db` names sentinels. `rediss+cluster` and `rediss+sentinel` use TLS.
    User, password and options after `?` apply to every server; the user and password for sentinels are the options
    `sentinel_username` and `sentinel_password`.

    Raises:
        ValueError: the URL has none of these forms, or names files for TLS that do not exist.
    """
    parts = urlsplit(url)
    scheme, _, kind = parts.scheme.partition("+")
    if not kind:
        options = _read(url)
        _check_database(parts.scheme, unquote(parts.path), url_ends=True)
        _check_files(options)
        return Address("server", url)
    if scheme not in ("redis", "rediss") or kind not in _PORTS:
        known = "redis, rediss, unix, redis+cluster, rediss+cluster, redis+sentinel and rediss+sentinel"
        raise ValueError(f"the URL of the store begins with {parts.scheme!r}; known are {known}")
    nodes = _nodes_in(parts, _PORTS[kind])
    path = unquote(parts.path).strip("/")
    service, _, database = path.partition("/") if kind == "sentinel" else ("", "", path)
    if kind == "cluster" and database not in ("", "0"):
        raise ValueError(f"the URL of the store ends with {database!r}; a cluster has no databases but 0")
    if kind == "sentinel" and not service:
        raise ValueError("the URL of the store names no service that its sentinels know, as in /service or /service/0")
    _check_database(scheme, database)
    user, at, _ = parts.netloc.rpartition("@")
    query = f"?{parts.query}" if parts.query else ""
    # The client library reads user, password and options as in the URL of one server.
    options = _read(f"redis://{user}{at}host/{database}{query}")
    del options["host"]
    _check_files(options)
    if not options.get("db"):
        options.pop("db", None)
    of_sentinels = {
        name.removeprefix(_OF_SENTINELS): options.pop(name) for name in [*options] if name.startswith(_OF_SENTINELS)
    }
    of_sentinels |= {name: value for name, value in options.items() if name.startswith("ssl_")}
    return Address(cast(Kind, kind), url, nodes, scheme == "rediss", options, service, of_sentinels)


def _nodes_in(parts: SplitResult, port: int) -> tuple[tuple[str, int], ...]:
    found = []
    for one in parts.netloc.rpartition("@")[2].split(","):
        node = urlsplit(f"//{one.strip()}")
        if not node.hostname:
            raise ValueError("the URL of the store names no host; wanted are host:port, between commas")
        found.append((node.hostname, node.port or port))
    return tuple(found)


def _check_database(scheme: str, path: str, url_ends: bool = False) -> None:
    """Raise ValueError if the database in the URL is no number; the client library would use database 0."""
    if scheme in ("redis", "rediss") and not re.fullmatch(r"/?[0-9]*" if url_ends else "[0-9]*", path):
        raise ValueError(
            f"expected the number of a database at the end of the URL of the store, as in /0, got {path!r}"
        )


def _read(url: str) -> dict[str, Any]:
    """Return the options that the client library reads from the URL of one server."""
    return dict(parse_url(url))  # type: ignore[no-untyped-call]


def _check_files(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name in _FILES and not Path(value).is_file():
            raise ValueError(f"REDIS_URL: {name} {value} is no file")


Heard = Callable[[str, float, bool], None]
"""Callback for each call to the store, with its command, its duration in seconds, and whether it failed."""


class Known:
    """Base class of clients, with what a client keeps about its store."""

    places: Places = ONE
    replicas: int = 0
    """Number of replicas that must acknowledge writes."""
    disk: Disk | None = None
    """Disk of an embedded store; None for an operator's own store, whose disk the service does not check."""
    seen: str | None = None
    """Id in the store's mark, once seen by this process; see `identity`."""
    seen_at: float = 0.0
    """Time when the mark was seen last."""
    heard: Heard = staticmethod(lambda *_: None)
    """Callback for each call."""


class Client(Known, redis.Redis):
    """Client of a store of one server, or of the primary named by sentinels."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Execute and time a command."""
        with _time(self.heard, args[0]):
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]


class ClusterClient(Known, redis.RedisCluster):
    """Client of a cluster that connects at its first call, so that a service can start while its store is away.

    The client library's own class asks for the cluster's nodes when it is constructed.
    """

    places = MANY
    # No retry after a timeout: the node would very likely be silent again.
    ERRORS_ALLOW_RETRY = (redis.ConnectionError, ClusterDownError, SlotNotCoveredError)  # type: ignore[assignment]
    read_from_replicas = False

    def __init__(self, nodes: tuple[tuple[str, int], ...], **options: Any) -> None:
        self._named, self._options = nodes, options
        self._state: Literal["new", "beginning", "begun"] = "new"
        self._beginning = threading.RLock()
        # Registering scripts needs the encoder, and happens before the first call.
        self.encoder = Encoder("utf-8", "strict", False)  # type: ignore[no-untyped-call]

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Execute and time a command."""
        with _time(self.heard, args[0]):
            self.begin()
            with _nodes_may_change():
                return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def pipeline(self, *args: Any, **options: Any) -> Any:
        """Return a pipeline."""
        self.begin()
        made = super().pipeline(*args, **options)  # type: ignore[no-untyped-call]
        made.execute = _nodes_may_change()(made.execute)
        return made

    def begin(self) -> None:
        """Ask the cluster for its nodes, unless they are known."""
        if self._state == "begun":
            return
        with self._beginning:
            if self._state != "new":  # another thread was first, or this call comes from the library's own start
                return
            self._state = "beginning"
            try:
                self._ask()
            except BaseException:
                self._state = "new"
                raise
            self._state = "begun"

    def _ask(self) -> None:
        (host, port), *others = self._named
        with _nodes_may_change():
            super().__init__(
                url=f"redis://{host}:{port}",
                startup_nodes=[ClusterNode(*one) for one in others],  # type: ignore[no-untyped-call]
                # While some shards are unavailable, the others can still be used.
                require_full_coverage=False,
                **self._options,
            )


class LoopClient(Known, redis.asyncio.Redis):  # type: ignore[misc]
    """Client like `Client` for coroutines of one event loop; it never waits for replicas."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Execute and time a command."""
        with _time(self.heard, args[0]):
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]


class LoopClusterClient(Known, redis.asyncio.RedisCluster):  # type: ignore[misc]
    """Client of a cluster for coroutines of one event loop; it never waits for replicas."""

    places = MANY

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Execute and time a command."""
        with _time(self.heard, args[0]), _nodes_may_change():
            return await super().execute_command(*args, **options)


@contextmanager
def _nodes_may_change() -> Iterator[None]:
    """Turn lookup errors into ClusterDownError: the library changes its tables of nodes and slots without a lock."""
    try:
        yield
    except (LookupError, AttributeError, RuntimeError) as error:
        raise ClusterDownError(f"the cluster has no slots yet, or its nodes are changing ({error!r})") from error


@contextmanager
def _time(heard: Heard, command: str) -> Iterator[None]:
    began, failed = time.perf_counter(), False
    try:
        yield
    except (redis.RedisError, RedisClusterException) as error:
        failed = not isinstance(error, redis.ResponseError)  # an error response is an answer, no failure
        raise
    finally:
        heard(command.partition(" ")[0], time.perf_counter() - began, failed)


def ask_shards(roots: Sequence[str], ask: Callable[[str], T]) -> list[T | StoreUnavailable]:
    """Return the answers of shards, asked at the same time; the error in the place of an answer that does not come."""

    def answer(root: str) -> T | StoreUnavailable:
        try:
            return ask(root)
        except StoreUnavailable as error:
            return error

    if len(roots) < 2:
        return [*map(answer, roots)]
    with ThreadPoolExecutor(len(roots)) as pool:
        return [*pool.map(answer, roots)]


def at_once(client: redis.Redis, of: Iterable[T], ask: Callable[[redis.client.Pipeline, T], object]) -> list[Any]:
    """Return the answers to one call for each item of `of`, sent in one pipeline; may raise StoreUnavailable."""
    with store_errors(), client.pipeline(transaction=False) as asked:
        for one in of:
            ask(asked, one)
        return asked.execute()


def connect(url: str, timeout: float, min_free_bytes: int = 0, replicas: int = 0) -> Client:
    """Return a client with connection pools, to be shared by all threads. It connects at its first call.

    A call may take `timeout` seconds. Acknowledged calls wait for `replicas` replicas, for half that time at most.
    `min_free_bytes` stay free on the disk of an embedded store. ValueError if the URL or one of its options is invalid.
    """
    at = parse_address(url)
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
    """Return a client for coroutines of one event loop; it never waits for replicas."""
    at, again = parse_address(url), _again(redis.asyncio.retry.Retry)
    times: dict[str, Any] = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    if at.kind == "server":
        return cast(LoopClient, LoopClient.from_url(url, retry=again, **times))
    options = {"retry": again, "ssl": at.tls, **times, **at.options}
    if at.kind == "cluster":
        nodes: list[Any] = [ClusterNode(*node) for node in at.nodes]  # type: ignore[no-untyped-call]
        return cast(LoopClient, LoopClusterClient(startup_nodes=nodes, require_full_coverage=False, **options))
    sentinels = redis.asyncio.Sentinel(at.nodes, sentinel_kwargs=times | _of_sentinels(at), **options)  # type: ignore[no-untyped-call]
    return cast(LoopClient, sentinels.master_for(at.service, redis_class=LoopClient))


def _client(at: Address, replicas: int, wait: float, **options: Any) -> Client:
    """Return a client that waits `wait` seconds for `replicas` replicas; TypeError if an option is unknown."""
    if at.kind == "server":
        client = cast(Client, Client.from_url(at.url, **options))
        pool = client.connection_pool
        pool.connection_class = waiting(pool.connection_class, replicas, wait)
        pool.make_connection()  # not opened; raises TypeError for an unknown option
        return client
    plain = redis.SSLConnection if at.tls else redis.Connection
    plain(**at.options)  # not opened; raises TypeError for an unknown option
    if at.kind == "cluster":
        kind = waiting(plain, replicas, wait)
        return cast(Client, ClusterClient(at.nodes, connection_class=kind, **options, **at.options))
    kind = waiting(_ManagedSSL if at.tls else _Managed, replicas, wait)
    times = {name: options[name] for name in ("socket_timeout", "socket_connect_timeout")}
    sentinels = Sentinel(at.nodes, sentinel_kwargs=times | _of_sentinels(at), **options, **at.options)  # type: ignore[no-untyped-call]
    found = sentinels.master_for(at.service, redis_class=Client, connection_class=kind)  # type: ignore[no-untyped-call]
    return cast(Client, found)


def _of_sentinels(at: Address) -> dict[str, Any]:
    return {"ssl": at.tls, **at.of_sentinels}


def _again(retry: Callable[..., Any]) -> Any:
    # Retry after a dropped connection, but not after a timeout: the store would very likely be silent again.
    return retry(ExponentialBackoff(cap=0.2, base=0.05), retries=3, supported_errors=(redis.ConnectionError,))


def check_room(client: redis.Redis, nbytes: int) -> None:
    """Raise StoreFull unless the disk of an embedded store has room for `nbytes` more bytes, see `Disk.check`."""
    if isinstance(client, Client) and client.disk is not None:
        with store_errors():
            client.disk.check(nbytes, client.info)
