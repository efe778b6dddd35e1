"""Waiting for replicas: what is acknowledged to a client is then on so many of them, too.

A server that is killed loses nothing that it has written to its disk, but a replica that takes its place has only what
came over. So each call that something acknowledged rests on is followed by WAIT on the same connection: the server
answers with the number of replicas that have all that this connection has written. Another connection would be told of
other writes, and a server that has become a replica meanwhile answers it with an error.

What a repeated request finds done may not have come over yet, and a connection that has only read would wait for
nothing. So before WAIT the connection writes a key that says nothing, in the same place. Replicas get the writes of a
server in their order: whoever has this one has all that was there before, be it another's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import redis

from app.store.places import root_of

_ACKNOWLEDGED: ContextVar[bool] = ContextVar("_ACKNOWLEDGED", default=False)
_KEY_SECONDS = 60
# Where calls have their first key. The client library packs pipelines by itself: nothing is acknowledged on them.
_FIRST_KEYS = {"EVALSHA": 3, "EVAL": 3, "GET": 1, "SET": 1, "HSET": 1, "HDEL": 1, "HGETALL": 1}


class NotConfirmed(redis.ResponseError):
    """A call was answered, and not as many replicas as were asked for have what the answer rests on."""

    def __init__(self, had: int, wanted: int, milliseconds: int) -> None:
        super().__init__(f"{had} of {wanted} replicas have confirmed the write within {milliseconds} ms")
        self.had, self.wanted = had, wanted


@contextmanager
def acknowledged() -> Iterator[None]:
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
