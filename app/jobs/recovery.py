"""What every worker does for the jobs of all workers: it takes back those of workers that have died."""

import logging
import time

import redis

from app.jobs.queue import Message, Queue
from app.jobs.record import JobError
from app.jobs.scripts import Scripts
from app.jobs.version_0_1_0 import adopt_jobs
from app.store.errors import store_errors

logger = logging.getLogger(__name__)

# So often may the process of a job die, without a checkpoint in between, until the job itself is taken for the cause.
_MOST_DEATHS = 12
_LOOK_SECONDS = 1.0


class Recovery:
    """Looks after the jobs of a store. Methods raise StoreUnavailable.

    Args:
        client: of the store.
        ttl: seconds that ended jobs are kept.
    """

    def __init__(self, client: redis.Redis, ttl: float) -> None:
        self._client = client
        self._scripts = Scripts(client)
        self._queue = Queue(client)
        self._ttl = round(ttl)
        self._looked = 0.0

    def look(self) -> None:
        """Prepare the queue, and take back the jobs of dead workers, unless that was done a moment ago."""
        if time.monotonic() < self._looked + _LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        with store_errors():
            self._scripts.tend()
        adopt_jobs(self._client)
        for message in self._queue.abandoned():
            if self.take_back(message, deaths=1):
                logger.warning("job %s: its worker has died", message.job_id)

    def take_back(self, message: Message, deaths: int) -> bool:
        """Let another worker go on with a job, unless it is cancelled or has died too often, which ends it.

        Args:
            message: that led to the attempt which is over.
            deaths: how many to count.

        Returns:
            False if the message was not that of an unfinished job. One that a newer version wrote is left alone.
        """
        error = JobError(
            reason="died", detail=f"its process died {_MOST_DEATHS + 1} times in a row without getting any further"
        ).model_dump_json()
        with store_errors():
            became = self._scripts.run("release", message.job_id, message.id, deaths, _MOST_DEATHS, self._ttl, error)
        return bool(became)
