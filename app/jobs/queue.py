"""The queue as workers see it: a stream of messages, each of which one worker reads."""

from typing import Any, NamedTuple

import redis

from app.jobs.prelude import CONSUMER, GROUP, LEASE_SECONDS, QUEUE
from app.store.errors import store_errors


class Message(NamedTuple):
    """Tells that a job waits."""

    id: str
    job_id: str
    """Empty in a message that no service has written."""


class Queue:
    """The messages of the store. Methods raise StoreUnavailable.

    Args:
        client: of the store.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def next(self, seconds: float) -> Message | None:
        """The next message that no worker has read; None if none comes in time."""
        with store_errors():
            answer: Any = self._client.xreadgroup(
                GROUP, CONSUMER, {QUEUE: ">"}, count=1, block=max(1, round(1000 * seconds))
            )
        return _message(*answer[0][1][0]) if answer else None

    def abandoned(self) -> list[Message]:
        """Messages whose workers give no sign of life. Each is given to one caller, and to others if that one dies."""
        with store_errors():
            answer: Any = self._client.xautoclaim(QUEUE, GROUP, CONSUMER, round(1000 * LEASE_SECONDS))
        return [_message(*entry) for entry in answer[1]]


def _message(message_id: bytes, fields: dict[bytes, bytes]) -> Message:
    return Message(message_id.decode(), fields.get(b"job", b"").decode(errors="replace"))
