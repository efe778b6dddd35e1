"""The worker: takes jobs one after the other, each in a process of its own, and ends those that must not go on."""

import logging
import multiprocessing
import signal
import time
from collections.abc import Callable
from multiprocessing.context import ForkProcess
from types import FrameType
from typing import NamedTuple

import psutil
import redis

from app.in_work import IN_WORK, InWork
from app.jobs import job_process, scripts
from app.jobs.errors import JobNotFound
from app.jobs.job_context import Handlers
from app.jobs.jobs import Jobs
from app.jobs.queue import Message, Queue
from app.jobs.record import JobError
from app.logs import FIELDS
from app.spans import Spans
from app.store.account import UNLIMITED, Quota
from app.store.errors import StoreDamaged, StoreUnavailable, in_full

logger = logging.getLogger(__name__)

_READ_SECONDS = 1.0
_LOOK_SECONDS = 0.1
_RENEW_SECONDS = 0.5
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 2.0
# The process of a job begins as a copy of its worker, which has everything imported and compiled.
_UNREADABLE = JobError(reason="internal-error", detail="what is stored of it cannot be read; an operator must look")
# What an attempt at a job leads to if something was wrong with it.
_BAD = ("failed", "queued", "unknown")
_FORK = multiprocessing.get_context("fork")


class JobLimits(NamedTuple):
    """What one job may take: seconds of running, and bytes of memory."""

    seconds: float
    nbytes: int

    def passed(self, taken: float, pid: int | None) -> JobError | None:
        """The error of a job that takes too much time or memory, else None; `taken` are its seconds in all attempts."""
        if taken > self.seconds:
            detail = f"it ran for {taken:.0f} seconds; max_job_seconds is {self.seconds:g}"
            return JobError(reason="time", detail=detail)
        try:
            resident = psutil.Process(pid).memory_info().rss
        except psutil.Error:  # it ends just now
            return None
        if resident > self.nbytes:
            detail = f"it took {resident} bytes of memory; max_job_bytes is {self.nbytes}"
            return JobError(reason="memory", detail=detail)
        return None


class Worker:
    """A worker of the jobs of a store, of the kinds that it has handlers for.

    `connect` makes a client of the store, and one call to it may take `timeout` seconds. Ended jobs are kept for `ttl`
    seconds, as far as the quota allows.
    """

    def __init__(
        self,
        connect: Callable[[], redis.Redis],
        timeout: float,
        handlers: Handlers,
        limits: JobLimits,
        ttl: float,
        quota: Quota = UNLIMITED,
        spans: Spans | None = None,
    ) -> None:
        self._spans = spans or Spans()
        self._connect, self._timeout = connect, timeout
        self._client = connect()
        self._queue = Queue(self._client, ttl)
        self._jobs = Jobs(self._client, 1, ttl)
        self._handlers = handlers
        self._limits = limits
        self._ttl = round(ttl)
        self._quota = quota
        self._stopping = False

    def run(self) -> None:
        """Do jobs until the process is told to stop (SIGTERM, SIGINT), however often the store goes away.

        Call it in the main thread. A job that runs then is given back, for another worker to go on with.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        told = ""
        while not self._stopping:
            try:
                self._queue.tend()
                message = self._queue.next(min(_READ_SECONDS, self._timeout / 2))
                told = ""
                if message is not None:
                    self._answer(message)
            except StoreUnavailable as error:
                if told != in_full(error):  # not once a second: the disk of the log may be what is full
                    told = in_full(error)
                    logger.warning("the worker waits for the store: %s", told)
                time.sleep(_PAUSE_SECONDS)

    def _stop(self, signum: int, frame: FrameType | None) -> None:
        del signum, frame
        self._stopping = True

    def _answer(self, message: Message) -> None:
        """Do the job that a message tells of, if it still waits."""
        claimed = scripts.run(self._client, "claim", message.job_id, message.id).decode()
        if not claimed:
            logger.warning("message %s tells of no job that waits; it is dropped", message.id)
        elif claimed != "ok":
            logger.warning("job %s is left to a newer version, which stored it in format %s", message.job_id, claimed)
        else:
            try:
                fields = self._jobs.fields(message.job_id)
                ran = float(fields.get("ran") or 0)
            except JobNotFound:
                return
            except (StoreDamaged, ValueError):
                self._fail(message, _UNREADABLE)
            else:
                self._attempt(message, fields, ran)

    def _attempt(self, message: Message, fields: dict[str, str], ran: float) -> None:
        """Run a job, on behalf of the request that has asked for it, and log what has become of it."""
        began = time.monotonic()
        job, kind = (
            InWork(fields.get("request_id", ""), fields.get("traceparent", ""), message.job_id),
            fields.get("kind", ""),
        )
        try:
            with self._spans.job(kind, job) as tell:
                IN_WORK.set(job)
                self._run(message, fields, ran)
                seconds, outcome = time.monotonic() - began, self._state(message.job_id)
                tell({"bochner.job.state": outcome} | ({"error.type": outcome} if outcome in _BAD else {}))
            seen = {"kind": kind, "outcome": outcome, "seconds": round(seconds, 3)}
            logger.info("job %s: %s after %.1f s", message.job_id, outcome, seconds, extra={FIELDS: seen})
        finally:
            IN_WORK.set(None)

    def _state(self, job_id: str) -> str:
        """The state of a job, as far as it can be found out now."""
        try:
            return self._jobs.fields(job_id)["state"]
        except (JobNotFound, StoreUnavailable):
            return "unknown"

    def _run(self, message: Message, fields: dict[str, str], ran: float) -> None:
        process = _FORK.Process(
            target=job_process.main,
            args=(self._connect, self._handlers, message, fields, self._ttl, self._quota),
            daemon=True,
        )
        process.start()
        try:
            stopped = self._watch(process, message, ran)
        finally:
            process.kill()
            process.join()
        if isinstance(stopped, JobError):
            self._fail(message, stopped)
        elif process.exitcode == job_process.UNREADABLE:
            self._fail(message, _UNREADABLE)
        elif stopped or process.exitcode == job_process.TRY_AGAIN:
            self._persist(lambda: self._queue.take_back(message, deaths=0))
        elif process.exitcode != job_process.DONE:
            logger.warning("job %s: its process ended with code %s", message.job_id, process.exitcode)
            self._persist(lambda: self._queue.take_back(message, deaths=1))

    def _fail(self, message: Message, error: JobError) -> None:
        if error is _UNREADABLE:
            logger.error("job %s has failed: what is stored of it cannot be read", message.job_id)
        args = [message.id, "failed", self._ttl, error.model_dump_json(), ""]
        self._persist(lambda: scripts.run(self._client, "end", message.job_id, *args))

    def _watch(self, process: ForkProcess, message: Message, ran: float) -> JobError | bool:
        """Wait until a job's process has ended, or has to be; `ran` are the seconds of earlier attempts.

        Returns:
            The limit that it passes; True if it must not go on for another reason; False if it has ended.
        """
        began = renewed = time.monotonic()
        while process.exitcode is None:
            process.join(_LOOK_SECONDS)
            taken = time.monotonic() - began + ran
            error = self._limits.passed(taken, process.pid)
            if error is not None or self._stopping:
                return error or True
            if time.monotonic() - renewed >= _RENEW_SECONDS:
                renewed = time.monotonic()
                if not self._renewed(message, taken):
                    return True
        return False

    def _renewed(self, message: Message, taken: float) -> bool:
        """Say that the job is still worked on; False if it is another's, or not wanted any more."""
        try:
            answer = scripts.run(self._client, "renew", message.job_id, message.id, f"{taken:.3f}")
            self._queue.tend()
        except StoreUnavailable as error:
            logger.warning("job %s goes on while the store is away: %s", message.job_id, in_full(error))
            return True
        return bool(answer == b"ok")

    def _persist(self, write: Callable[[], object]) -> None:
        """Write down what became of a job, as often as it takes; once told to stop, the lease may run out instead."""
        pause = _LOOK_SECONDS
        while True:
            try:
                write()
                return
            except StoreUnavailable as error:
                logger.warning("what became of a job is not written down yet: %s", in_full(error))
                if self._stopping:
                    return
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
