"""Taking back jobs whose processes have died, and ringing for those that wait unnoticed."""

import logging
import time

import redis

from app.jobs.errors import JobNotFound
from app.jobs.jobs import Jobs
from app.jobs.placeholders import failed_placeholder
from app.jobs.queue import Queue
from app.jobs.record import JobError
from app.jobs.scripts import Scripts
from app.store.errors import StoreUnavailable, store_errors

logger = logging.getLogger(__name__)

# So often may the process of a job die, without a checkpoint in between, until the job itself is taken for the cause.
_MOST_DEATHS = 12
_LOOK_SECONDS = 1.0


class Recovery:
    """What every worker does for all jobs of the store.

    Args:
        client: of the store.
        jobs: of the store.
        ttl: seconds that ended jobs are kept.
    """

    def __init__(self, client: redis.Redis, jobs: Jobs, ttl: float) -> None:
        self._scripts = Scripts(client)
        self._messages = Queue(client)
        self._jobs = jobs
        self._ttl = round(ttl)
        self._looked = 0.0

    def look(self) -> None:
        """Look after the jobs of all workers, unless that was done a moment ago."""
        if time.monotonic() < self._looked + _LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        try:
            with store_errors():
                overdue = self._scripts.overdue()
            for job_id in overdue:
                logger.warning("job %s: its worker has died", job_id)
                self.take_back(job_id, "", deaths=1)
            self._messages.ring_again()
        except StoreUnavailable as error:
            logger.warning("the jobs were not looked after: %s", error)

    def take_back(self, job_id: str, token: str, deaths: int) -> None:
        """Let another worker go on with a job, unless it is cancelled or has died too often, which ends it.

        Args:
            job_id: which job.
            token: of the attempt that holds it; "" for any whose lease has run out.
            deaths: how many to count.
        """
        error = JobError(
            reason="died", detail=f"its process died {_MOST_DEATHS + 1} times in a row without getting any further"
        ).model_dump_json()
        try:
            left = failed_placeholder(self._jobs.fields(job_id), error)
        except JobNotFound:  # the script still strikes it from the list of those that run
            left = b""
        with store_errors():
            became = self._scripts.run("release", job_id, token, deaths, _MOST_DEATHS, self._ttl, error, left)
        if became == b"queued":
            self._messages.ring(job_id)
