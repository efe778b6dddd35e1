"""Clients of the store, of each kind that it may be, for threads and for an event loop."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, cast

import redis
import redis.asyncio
from redis._parsers import Encoder
from redis.cluster import ClusterNode
from redis.exceptions import ClusterDownError, RedisClusterException, SlotNotCoveredError

from app.store.disk import Disk
from app.store.places import MANY, ONE, Places

Heard = Callable[[str, float, bool], None]
"""Told of a call to the store: its command, its seconds, and whether it has failed."""


def _ignored(command: str, seconds: float, failed: bool) -> None:
    """For who wants to hear of no call."""


class Known:
    """What a client knows of its store."""

    places: Places = ONE
    replicas: int = 0
    """How many replicas have whatever is acknowledged."""
    disk: Disk | None = None
    """Where an embedded one lies. None for a store that the operator has named: what room that has is its affair."""
    seen: str | None = None
    """The mark of the store, once it was seen: see `identity`."""
    heard: Heard = staticmethod(_ignored)
    """Told of each call."""


class Client(Known, redis.Redis):
    """A client of a store of one server, or of the primary that sentinels name."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """See the client library."""
        with _timed(self.heard, args[0]):
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
        with _timed(self.heard, args[0]):
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
        with _timed(self.heard, args[0]):
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]


class LoopClusterClient(Known, redis.asyncio.RedisCluster):  # type: ignore[misc]
    """The same of a cluster."""

    places = MANY

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """See the client library."""
        with _timed(self.heard, args[0]), _nodes_may_change():
            return await super().execute_command(*args, **options)


@contextmanager
def _nodes_may_change() -> Iterator[None]:
    """The library changes its tables of nodes and slots without a lock, and looks things up that may just be gone."""
    try:
        yield
    except (LookupError, AttributeError, RuntimeError) as error:
        raise ClusterDownError(f"the nodes of the cluster were asked for anew meanwhile ({error!r})") from error


@contextmanager
def _timed(heard: Heard, command: str) -> Iterator[None]:
    began, failed = time.perf_counter(), False
    try:
        yield
    except (redis.RedisError, RedisClusterException) as error:
        failed = not isinstance(error, redis.ResponseError)  # which is an answer
        raise
    finally:
        heard(command.partition(" ")[0], time.perf_counter() - began, failed)


def values(client: redis.Redis, keys: list[str]) -> list[bytes | None]:
    """The values of keys, in any places."""
    if isinstance(client, ClusterClient):
        return cast("list[bytes | None]", client.mget_nonatomic(keys))
    return cast("list[bytes | None]", client.mget(keys))
