"""The queue as workers see it: a stream of messages, each of which one worker reads."""

import logging
import time
from collections import deque
from typing import Any, NamedTuple

import redis

from app.jobs import scripts
from app.jobs.prelude import CONSUMER, ENDED, GROUP, INDEX, LEASE_SECONDS, QUEUE
from app.jobs.record import JobError
from app.store.errors import StoreUnavailable, store_errors
from app.store.places import inside, places_of

logger = logging.getLogger(__name__)

# So often may the process of a job die, without a checkpoint in between, until the job itself is taken for the cause.
_MOST_DEATHS = 12
_LOOK_SECONDS = 1.0
# Between two looks at all places of a store that has several.
_PAUSE_SECONDS = 0.2


class Message(NamedTuple):
    """Tells that a job waits."""

    id: str
    job_id: str
    """Empty in a message that no service has written."""


class Queue:
    """The messages of the store. Ended jobs are kept for `ttl` seconds. Methods raise StoreUnavailable."""

    def __init__(self, client: redis.Redis, ttl: float) -> None:
        self._client = client
        self._queues = deque(inside(root, QUEUE) for root in places_of(client).roots)
        self._ttl = round(ttl)
        self._tended = 0.0

    def next(self, seconds: float) -> Message | None:
        """The next message that no worker has read; None if none comes in time."""
        if len(self._queues) == 1:
            return self._read(self._queues[0], max(1, round(1000 * seconds)))
        # Nobody waits for several places at once: they are looked at in turn.
        until = time.monotonic() + seconds
        while True:
            message = self._first()
            if message is not None or time.monotonic() >= until:
                return message
            time.sleep(_PAUSE_SECONDS)

    def _first(self) -> Message | None:
        """The next message of any place. A place that does not answer keeps those of others from nobody."""
        away: StoreUnavailable | None = None
        for _ in range(len(self._queues)):
            self._queues.rotate(-1)
            try:
                message = self._read(self._queues[0], None)
            except StoreUnavailable as error:
                away = error
            else:
                if message is not None:
                    return message
        if away is not None:
            raise away
        return None

    def _read(self, queue: str, milliseconds: int | None) -> Message | None:
        with store_errors():
            answer: Any = self._client.xreadgroup(GROUP, CONSUMER, {queue: ">"}, count=1, block=milliseconds)
        return _message(*answer[0][1][0]) if answer else None

    def tend(self) -> None:
        """Prepare the queue, and take back the jobs of dead workers, unless that was done a moment ago.

        Every worker does so for the jobs of all workers.
        """
        if time.monotonic() < self._tended + _LOOK_SECONDS:
            return
        self._tended = time.monotonic()
        away: StoreUnavailable | None = None
        for root in places_of(self._client).roots:
            try:
                self._tend(root)
            except StoreUnavailable as error:
                away = error
        if away is not None:
            raise away

    def _tend(self, root: str) -> None:
        queue = inside(root, QUEUE)
        with store_errors():
            self._client.eval(scripts.TEND, 3, inside(root, INDEX), queue, inside(root, ENDED))
            # Each message is given to one caller, and to others if that one dies.
            answer: Any = self._client.xautoclaim(queue, GROUP, CONSUMER, round(1000 * LEASE_SECONDS))
        for message in (_message(*entry) for entry in answer[1]):
            if self.take_back(message, deaths=1):
                logger.warning("job %s: its worker has died", message.job_id)

    def take_back(self, message: Message, deaths: int) -> bool:
        """Let another worker go on with a job, unless it is cancelled or has died too often, which ends it.

        The message led to the attempt that is over, which counts as so many deaths.

        Returns:
            False if the message was not that of an unfinished job. One that a newer version wrote is left alone.
        """
        detail = f"its process died {_MOST_DEATHS + 1} times in a row without getting any further"
        error = JobError(reason="died", detail=detail).model_dump_json()
        args = [message.id, deaths, _MOST_DEATHS, self._ttl, error]
        return bool(scripts.run(self._client, "release", message.job_id, *args))


def _message(message_id: bytes, fields: dict[bytes, bytes]) -> Message:
    return Message(message_id.decode(), fields.get(b"job", b"").decode(errors="replace"))
