"""The connection to a store, and where that is: a server, a cluster, or the primary that sentinels name.

There are clients of each kind, for threads and for an event loop.

What is acknowledged to a client may have to be on replicas, too. A server that is killed loses nothing that it has
written to its disk, but a replica that takes its place has only what came over. So each call that something
acknowledged rests on is followed by WAIT on the same connection: the server answers with the number of replicas that
have all that this connection has written. Another connection would be told of other writes, and a server that has
become a replica meanwhile answers it with an error.

What a repeated request finds done may not have come over yet, and a connection that has only read would wait for
nothing. So before WAIT the connection writes a key that says nothing, in the same place. Replicas get the writes of a
server in their order: whoever has this one has all that was there before, be it another's.
"""

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar, cast
from urllib.parse import SplitResult, unquote, urlsplit

import redis
import redis.asyncio
from redis._parsers import Encoder
from redis.backoff import ExponentialBackoff
from redis.cluster import ClusterNode
from redis.connection import parse_url
from redis.exceptions import ClusterDownError, RedisClusterException, SlotNotCoveredError
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelManagedConnection, SentinelManagedSSLConnection

from app.store.disk import Disk, data_dir_of, held_bytes
from app.store.errors import NotConfirmed, store_errors
from app.store.places import MANY, ONE, Places, root_of

T = TypeVar("T")
_ACKNOWLEDGED: ContextVar[bool] = ContextVar("_ACKNOWLEDGED", default=False)
_KEY_SECONDS = 60
# Where calls have their first key. The client library packs pipelines by itself: nothing is acknowledged on them.
_FIRST_KEYS = {"EVALSHA": 3, "EVAL": 3, "GET": 1, "SET": 1, "HSET": 1, "HDEL": 1, "HGETALL": 1}


@contextmanager
def acknowledge() -> Iterator[None]:
    """For the length of a with block, or of a function that it decorates, something is acknowledged on each call."""
    before = _ACKNOWLEDGED.set(True)
    try:
        yield
    finally:
        _ACKNOWLEDGED.reset(before)


def waiting(kind: type[redis.Connection], replicas: int, seconds: float) -> type[redis.Connection]:
    """A kind of connection that waits for so many replicas, so long, where something is acknowledged on a call."""
    if not replicas:
        return kind
    milliseconds = max(1, round(1000 * seconds))

    class Waiting(kind):  # type: ignore[valid-type,misc]
        """A connection that waits for replicas."""

        _root: str | None = None
        """The place of the call that is to be confirmed once it is answered."""

        def send_packed_command(self, *args: Any, **kwargs: Any) -> None:
            self._root = None  # that of a call which failed: the answers of a pipeline are not its answer
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


Kind = Literal["server", "cluster", "sentinel"]
# What the URL of a store over TLS may name.
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_PORTS = {"cluster": 6379, "sentinel": 26379}
_OF_SENTINELS = "sentinel_"


class Address(NamedTuple):
    """The address of a store."""

    kind: Kind
    url: str
    """For one server, its URL for the client library."""
    nodes: tuple[tuple[str, int], ...] = ()
    """Hosts and ports of some nodes of a cluster, or of the sentinels."""
    tls: bool = False
    options: Mapping[str, Any] = MappingProxyType({})
    """Of connections to servers of the store, beside host and port."""
    service: str = ""
    """By which name sentinels know the primary."""
    of_sentinels: Mapping[str, Any] = MappingProxyType({})
    """Options of connections to sentinels."""


def parse_address(url: str) -> Address:
    """The address that a URL gives.

    `redis://host:port/db`, `rediss://…` over TLS and `unix:///path` name one server; `redis+cluster://host:port,host:port`
    some nodes of a cluster; `redis+sentinel://host:port,host:port/service/db` sentinels. `rediss+cluster` and
    `rediss+sentinel` are over TLS. User, password and options after `?` are those of every server; sentinels are asked
    with `sentinel_username` and `sentinel_password`.

    Raises:
        ValueError: it is none of these, or names files for TLS that are not there.
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
    """Raise ValueError where the URL names a database that is no number. The client library would take database 0."""
    if scheme in ("redis", "rediss") and not re.fullmatch(r"/?[0-9]*" if url_ends else "[0-9]*", path):
        raise ValueError(f"the URL of the store ends with {path!r}; the number of a database is wanted there, as in /0")


def _read(url: str) -> dict[str, Any]:
    """What the client library reads in the URL of one server."""
    return dict(parse_url(url))  # type: ignore[no-untyped-call]


def _check_files(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name in _FILES and not Path(value).is_file():
            raise ValueError(f"REDIS_URL: {name} {value} is no file")


Heard = Callable[[str, float, bool], None]
"""Told of a call to the store: its command, its seconds, and whether it has failed."""


class Known:
    """What a client knows of its store."""

    places: Places = ONE
    replicas: int = 0
    """How many replicas have whatever is acknowledged."""
    disk: Disk | None = None
    """Where an embedded one lies. None for a store that the operator has named: what room that has is its affair."""
    seen: str | None = None
    """The mark of the store, once it was seen: see `identity`."""
    heard: Heard = staticmethod(lambda *_: None)
    """Told of each call."""


class Client(Known, redis.Redis):
    """A client of a store of one server, or of the primary that sentinels name."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """See the client library."""
        with _time(self.heard, args[0]):
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]


class ClusterClient(Known, redis.RedisCluster):
    """A client of a cluster.

    The one of the library asks for the nodes when it is made. This one does so at its first call, as the clients of
    other stores: a service starts while its store is away.
    """

    places = MANY
    # A node that is silent for the whole timeout would only be silent again.
    ERRORS_ALLOW_RETRY = (redis.ConnectionError, ClusterDownError, SlotNotCoveredError)  # type: ignore[assignment]
    read_from_replicas = False

    def __init__(self, nodes: tuple[tuple[str, int], ...], **options: Any) -> None:
        self._named, self._options = nodes, options
        self._state: Literal["new", "beginning", "begun"] = "new"
        self._beginning = threading.RLock()
        # Scripts are registered before the first call.
        self.encoder = Encoder("utf-8", "strict", False)  # type: ignore[no-untyped-call]

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """See the client library."""
        with _time(self.heard, args[0]):
            self.begin()
            with _nodes_may_change():
                return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def pipeline(self, *args: Any, **options: Any) -> Any:
        """See the client library."""
        self.begin()
        made = super().pipeline(*args, **options)  # type: ignore[no-untyped-call]
        made.execute = _nodes_may_change()(made.execute)
        return made

    def begin(self) -> None:
        """Ask for the nodes, unless they are known."""
        if self._state == "begun":
            return
        with self._beginning:
            if self._state != "new":  # by now; or this is a call by which the library begins
                return
            self._state = "beginning"
            try:
                self._ask()
            except BaseException:
                self._state = "new"
                raise
            self._state = "begun"

    def close(self) -> None:
        """See the client library."""
        if self._state == "begun":
            super().close()

    def _ask(self) -> None:
        (host, port), *others = self._named
        super().__init__(
            url=f"redis://{host}:{port}",
            startup_nodes=[ClusterNode(*one) for one in others],  # type: ignore[no-untyped-call]
            # What lies in other parts of the store is there while one part is away.
            require_full_coverage=False,
            **self._options,
        )


class LoopClient(Known, redis.asyncio.Redis):  # type: ignore[misc]
    """The same for coroutines of one event loop, which write nothing that is acknowledged."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """See the client library."""
        with _time(self.heard, args[0]):
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]


class LoopClusterClient(Known, redis.asyncio.RedisCluster):  # type: ignore[misc]
    """The same of a cluster."""

    places = MANY

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """See the client library."""
        with _time(self.heard, args[0]), _nodes_may_change():
            return await super().execute_command(*args, **options)


@contextmanager
def _nodes_may_change() -> Iterator[None]:
    """The library changes its tables of nodes and slots without a lock, and looks things up that may just be gone."""
    try:
        yield
    except (LookupError, AttributeError, RuntimeError) as error:
        raise ClusterDownError(f"the nodes of the cluster were asked for anew meanwhile ({error!r})") from error


@contextmanager
def _time(heard: Heard, command: str) -> Iterator[None]:
    began, failed = time.perf_counter(), False
    try:
        yield
    except (redis.RedisError, RedisClusterException) as error:
        failed = not isinstance(error, redis.ResponseError)  # which is an answer
        raise
    finally:
        heard(command.partition(" ")[0], time.perf_counter() - began, failed)


def at_once(client: redis.Redis, of: Iterable[T], ask: Callable[[redis.client.Pipeline, T], object]) -> list[Any]:
    """What a store answers to a call for each of these, which are sent together; StoreUnavailable."""
    with store_errors(), client.pipeline(transaction=False) as asked:
        for one in of:
            ask(asked, one)
        return asked.execute()


def connect(url: str, timeout: float, min_free_bytes: int = 0, replicas: int = 0) -> Client:
    """A client with pools of connections, shared by all threads. It connects at its first call.

    A call may take `timeout` seconds; what is acknowledged is waited for until so many replicas have it, for half of
    that. `min_free_bytes` stay free on the disk of an embedded store. ValueError if `parse_address` refuses the URL.
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
    """The same for coroutines of one event loop, which write nothing that is acknowledged."""
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


def _of_sentinels(at: Address) -> dict[str, Any]:
    return {"ssl": at.tls, **at.of_sentinels}


def _again(retry: Callable[..., Any]) -> Any:
    # A dropped connection is tried again; a store that is silent for the whole timeout would only be silent again.
    return retry(ExponentialBackoff(cap=0.2, base=0.05), retries=3, supported_errors=(redis.ConnectionError,))


def check_room(client: redis.Redis, nbytes: int) -> None:
    """Raise StoreFull unless the disk of an embedded store has room for so many bytes more, see `Disk`."""
    if isinstance(client, Client) and client.disk is not None:
        with store_errors():
            info = client.info()
        held = 0 if info["aof_rewrite_in_progress"] else held_bytes(info)
        client.disk.check(nbytes, held, info["run_id"], int(info.get("aof_current_size", 0)))
