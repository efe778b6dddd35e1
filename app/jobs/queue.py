"""The queue of messages that wake workers up.

A message says which job waits, and no more: that it waits stands in its record. A message that is lost costs a moment,
one too many is dropped. They are Python-RQ's jobs, as JSON.
"""

from typing import cast

import redis
import rq
from rq.serializers import JSONSerializer

from app.jobs.scripts import QUEUED
from app.store.errors import store_errors

NAME = "bochner"


class Queue:
    """The messages of the store."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._queue = rq.Queue(NAME, connection=client, serializer=JSONSerializer)

    def ring(self, job_id: str) -> None:
        """Tell the workers that a job waits."""
        with store_errors():
            self._queue.enqueue_call("app.jobs.queue.Queue", job_id=job_id, result_ttl=0, failure_ttl=0)

    def ring_again(self) -> None:
        """Ring for every waiting job that no message tells of, its message having been lost with a process."""
        with store_errors():
            waiting = cast("list[bytes]", self._client.zrange(QUEUED, 0, -1))
            if not waiting:
                return
            told = set(cast("list[bytes]", self._client.lrange(self._queue.key, 0, -1)))
        for job_id in waiting:
            if job_id not in told:
                self.ring(job_id.decode())
