"""The worker: takes jobs one after the other, each in a process of its own, and ends those that must not go on.

Python-RQ brings the queue, its loop and the forking. Whose job it is, that it lives, and what became of it stands in
the job's record, which a worker holds by a lease: see docs/decisions.
"""

import logging
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import redis
import rq
from rq.exceptions import StopRequested
from rq.serializers import JSONSerializer

from app.jobs import job_process
from app.jobs.errors import JobNotFound
from app.jobs.handlers import Handlers
from app.jobs.job_limits import JobLimits
from app.jobs.jobs import Jobs
from app.jobs.placeholders import failed_placeholder
from app.jobs.queue import NAME
from app.jobs.record import JobError
from app.jobs.recovery import Recovery
from app.jobs.scripts import Scripts
from app.store.connection import connect
from app.store.errors import StoreUnavailable, store_errors

logger = logging.getLogger(__name__)

# A worker that does not renew its lease for so long is taken for dead.
LEASE_SECONDS = 3.0
_RENEW_SECONDS = 0.5
_LOOK_SECONDS = 0.1
_PAUSE_SECONDS = 1.0


class Worker(rq.Worker):
    """A worker of one queue.

    Args:
        url: of the store.
        timeout: seconds one call to the store may take.
        handlers: of the kinds of jobs that it can do.
        limits: of a job.
        ttl: seconds that ended jobs are kept.
    """

    def __init__(self, url: str, timeout: float, handlers: Handlers, limits: JobLimits, ttl: float) -> None:
        # A connection of its own, as its calls wait for messages longer than others may.
        super().__init__(NAME, connection=connect(url, timeout), serializer=JSONSerializer, prepare_for_work=False)
        # Known without asking the store, which might not tell.
        self.hostname, self.pid = socket.gethostname(), os.getpid()
        self._url, self._timeout = url, timeout
        self._client = connect(url, timeout)
        self._scripts = Scripts(self._client)
        self._records = Jobs(self._client, 1, ttl)
        self._recovery = Recovery(self._client, self._records, ttl)
        self._handlers = handlers
        self._limits = limits
        self._ttl = round(ttl)
        self._attempt: tuple[str, str, dict[str, str]] = ("", "", {})
        self._parent = os.getpid()

    # Seconds between attempts to reach the store again.
    max_connection_wait_time = 2.0

    def subscribe(self) -> None:
        """Nothing: what is to be cancelled stands in the record, where no message can be missed."""

    def unsubscribe(self) -> None:
        """Nothing, as above."""

    @property
    def dequeue_timeout(self) -> int:
        """Seconds to wait for a message before looking around."""
        return 1

    @property
    def should_run_maintenance_tasks(self) -> bool:
        """Always: how often is decided there."""
        return True

    def run_maintenance_tasks(self) -> None:
        """Take back the jobs of dead workers, and ring for those that wait unnoticed."""
        if self._stop_requested:
            raise StopRequested
        self._recovery.look()
        if super().should_run_maintenance_tasks:
            super().run_maintenance_tasks()  # type: ignore[no-untyped-call]

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        """Stop soon: a job that runs is given back, for another worker to go on with."""
        del signum, frame
        self._stop_requested = True

    def heed_signals(self) -> None:
        """Have signals stop it from now on, not only once it is known to the store."""
        self._install_signal_handlers()  # type: ignore[no-untyped-call]

    @property
    def stopped(self) -> bool:
        """Whether it ended because it was told to."""
        return self._stop_requested

    def execute_job(self, job: rq.job.Job, queue: rq.Queue) -> None:
        """Do the job that a message tells of, if it still waits."""
        token = secrets.token_hex(8)
        with store_errors():
            claimed = self._scripts.run("claim", job.id, token, LEASE_SECONDS)
        queue.intermediate_queue.remove(job.id)
        job.delete()
        if not claimed:
            return
        try:
            self._attempt = (job.id, token, self._records.fields(job.id))
        except JobNotFound:
            return
        self.fork_work_horse(job, queue)
        # As the process itself does; killed before it has come to that, it would take this one along.
        with suppress(OSError):
            os.setpgid(self.horse_pid, self.horse_pid)
        try:
            self._watch(job.id, token)
        finally:
            self._end_horse()

    def main_work_horse(self, job: rq.job.Job, queue: rq.Queue) -> None:
        """Be the process that does the work."""
        del job, queue
        code = 1
        try:
            job_process.end_with(self._parent)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            code = job_process.run(connect(self._url, self._timeout), self._handlers, *self._attempt, self._ttl)
        except BaseException:
            logger.exception("job %s: its process failed", self._attempt[0])
        finally:
            os._exit(code)

    def _watch(self, job_id: str, token: str) -> None:
        """Wait for the end of the process, or make it end."""
        began = renewed = time.monotonic()
        ran = float(self._attempt[2].get("ran") or 0)
        while True:
            code = self._exit_code()
            if code == job_process.DONE:
                return
            if code is not None:
                if code < 0:
                    logger.warning("job %s: its process was ended by signal %d", job_id, -code)
                self._release(job_id, token, deaths=0 if code == job_process.TRY_AGAIN else 1)
                return
            if self._stop_requested:
                self._end_horse()
                self._release(job_id, token, deaths=0)
                return
            taken = time.monotonic() - began + ran
            error = self._limits.passed(taken, self.horse_pid)
            if error is not None:
                self._end_horse()
                self._fail(job_id, token, error)
                return
            if time.monotonic() - renewed >= _RENEW_SECONDS:
                renewed = time.monotonic()
                if not self._go_on(job_id, token, taken):
                    self._end_horse()
                    self._release(job_id, token, deaths=0)  # as cancelled, if that is why
                    return
            time.sleep(_LOOK_SECONDS)

    def _go_on(self, job_id: str, token: str, taken: float) -> bool:
        """Renew the lease; False if the job is another's, or not wanted any more."""
        try:
            with store_errors():
                answer = self._scripts.run("renew", job_id, token, LEASE_SECONDS, f"{taken:.3f}")
            self._recovery.look()
        except StoreUnavailable as error:
            logger.warning("job %s goes on while the store is away: %s", job_id, error)
            return True
        return bool(answer == b"ok")

    def _exit_code(self) -> int | None:
        """Exit code of the process, or minus the signal that ended it; None while it runs."""
        if not self.horse_pid:
            return -signal.SIGKILL
        pid, status = os.waitpid(self.horse_pid, os.WNOHANG)
        if not pid:
            return None
        self._horse_pid = 0
        return os.waitstatus_to_exitcode(status)

    def _end_horse(self) -> None:
        """Kill the process, and all that it has started, if it still runs; it is gone on return."""
        if self.horse_pid:
            self.kill_horse()
            self.wait_for_horse()
            self._horse_pid = 0

    def _release(self, job_id: str, token: str, deaths: int) -> None:
        """Let another worker go on with a job, and tell them; as often as it takes, unless this one is to stop."""
        self._persist(lambda: self._recovery.take_back(job_id, token, deaths))

    def _fail(self, job_id: str, token: str, error: JobError) -> None:
        text = error.model_dump_json()
        left = failed_placeholder(self._attempt[2], text)
        self._persist(lambda: self._scripts.run("end", job_id, token, "failed", self._ttl, text, "", left))

    def _persist(self, call: Callable[[], object]) -> None:
        while True:
            try:
                with store_errors():
                    call()
                return
            except StoreUnavailable as error:
                # The lease runs out by itself.
                if self._stop_requested:
                    return
                logger.warning("what became of a job is not written down yet: %s", error)
                time.sleep(_LOOK_SECONDS)


def run_jobs(url: str, timeout: float, handlers: Handlers, limits: JobLimits, ttl: float) -> None:
    """Do jobs until the process is told to stop (SIGTERM, SIGINT), however often the store goes away."""
    # Its news are of every message; what happens to jobs is logged here.
    logging.getLogger("rq.worker").setLevel(logging.WARNING)
    while True:
        worker = Worker(url, timeout, handlers, limits, ttl)
        worker.heed_signals()
        try:
            worker.work(logging_level="WARNING")
        except redis.RedisError as error:
            logger.warning("the worker waits for the store: %s", error)
        if not worker.stopped:
            time.sleep(_PAUSE_SECONDS)
        if worker.stopped:
            return
