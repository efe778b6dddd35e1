"""The queue as workers see it: a stream of messages, each of which one worker reads."""

import logging
import time
from typing import Any, NamedTuple

import redis

from app.jobs import scripts
from app.jobs.prelude import CONSUMER, ENDED, GROUP, INDEX, LEASE_SECONDS, QUEUE
from app.jobs.record import JobError
from app.jobs.version_0_1_0 import adopt_jobs
from app.store.errors import store_errors

logger = logging.getLogger(__name__)

# So often may the process of a job die, without a checkpoint in between, until the job itself is taken for the cause.
_MOST_DEATHS = 12
_LOOK_SECONDS = 1.0


class Message(NamedTuple):
    """Tells that a job waits."""

    id: str
    job_id: str
    """Empty in a message that no service has written."""


class Queue:
    """The messages of the store. Ended jobs are kept for `ttl` seconds. Methods raise StoreUnavailable."""

    def __init__(self, client: redis.Redis, ttl: float) -> None:
        self._client = client
        self._ttl = round(ttl)
        self._tended = 0.0

    def next(self, seconds: float) -> Message | None:
        """The next message that no worker has read; None if none comes in time."""
        with store_errors():
            answer: Any = self._client.xreadgroup(
                GROUP, CONSUMER, {QUEUE: ">"}, count=1, block=max(1, round(1000 * seconds))
            )
        return _message(*answer[0][1][0]) if answer else None

    def tend(self) -> None:
        """Prepare the queue, and take back the jobs of dead workers, unless that was done a moment ago.

        Every worker does so for the jobs of all workers.
        """
        if time.monotonic() < self._tended + _LOOK_SECONDS:
            return
        self._tended = time.monotonic()
        with store_errors():
            self._client.eval(scripts.TEND, 3, INDEX, QUEUE, ENDED)
            adopt_jobs(self._client)
            # Each message is given to one caller, and to others if that one dies.
            answer: Any = self._client.xautoclaim(QUEUE, GROUP, CONSUMER, round(1000 * LEASE_SECONDS))
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
