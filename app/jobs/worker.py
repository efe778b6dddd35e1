"""Workers: each runs jobs one after the other, and stops jobs that must not continue.

A job runs in a separate process, which ends with the job. The queue is a stream of messages; one worker reads each
message. A service starts workers as separate processes.
"""

import ctypes
import logging
import multiprocessing
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.context import ForkProcess
from threading import Event, Thread
from types import FrameType
from typing import Any, NamedTuple, NoReturn, cast

import orjson
import psutil
import redis

from app.core.errors import InvalidInput, InvalidOption, TooLarge
from app.jobs import checkpoints, scripts
from app.jobs.job_context import Handlers, JobContext, Result
from app.jobs.jobs import Jobs
from app.jobs.record import JobError, JobNotFound, NotMine
from app.jobs.scripts import CONSUMER, ENDED, GROUP, INDEX, LEASE_SECONDS, QUEUE, key
from app.logs import FIELDS
from app.own_process import command
from app.request_context import REQUEST, RequestContext, Spans
from app.store.account import UNLIMITED, Quota
from app.store.connection import inside, places_of
from app.store.errors import NewerVersion, QuotaExceeded, StoreDamaged, StoreUnavailable, in_full, store_errors

logger = logging.getLogger(__name__)

# Number of times that the process of a job may die without a new checkpoint; at the next death the job itself is taken
# for the cause.
_MOST_DEATHS = 12
_TEND_SECONDS = 1.0
# Pause between two polls of all shards of a cluster.
_PLACES_SECONDS = 0.2


class Message(NamedTuple):
    """Message in the queue for a job that waits."""

    id: str
    job_id: str
    """Id of the job; empty in a message that no service has written."""
    owner: str = ""
    """Owner of the job."""
    since: int = 0
    """Time when the job was submitted or last had its turn, in milliseconds since 1970."""


class Queue:
    """Queue of the store's messages. Ended jobs are kept for `ttl` seconds. Methods may raise StoreUnavailable."""

    def __init__(self, client: redis.Redis, ttl: float) -> None:
        self._client = client
        self._queues = deque(inside(root, QUEUE) for root in places_of(client).roots)
        self._ttl = round(ttl)
        self._tended = 0.0

    def next(self, seconds: float) -> Message | None:
        """Return the next message that no worker has read; None if there is none within `seconds`."""
        if len(self._queues) == 1:
            return self._read(self._queues[0], max(1, round(1000 * seconds)))
        # A blocking read cannot wait on several shards at once, so they are polled in turn.
        until = time.monotonic() + seconds
        while True:
            message = self._first()
            if message is not None or time.monotonic() >= until:
                return message
            time.sleep(_PLACES_SECONDS)

    def _first(self) -> Message | None:
        """Return the next message of any shard. Raise StoreUnavailable only if no other shard has a message."""
        away: StoreUnavailable | None = None
        for _ in range(len(self._queues)):
            self._queues.rotate(-1)
            try:
                if (message := self._read(self._queues[0], None)) is not None:
                    return message
            except StoreUnavailable as error:
                away = error
        if away is not None:
            raise away
        return None

    def _read(self, queue: str, milliseconds: int | None) -> Message | None:
        with store_errors():
            answer: Any = self._client.xreadgroup(GROUP, CONSUMER, {queue: ">"}, count=1, block=milliseconds)
        return _message(*answer[0][1][0]) if answer else None

    def tend(self) -> None:
        """Prepare the queue, and return the jobs of dead workers to it, unless this worker did so a moment ago.

        Every worker does this for the jobs of all workers.
        """
        if time.monotonic() < self._tended + _TEND_SECONDS:
            return
        self._tended = time.monotonic()
        away: list[StoreUnavailable] = []
        for root in places_of(self._client).roots:
            try:
                self._tend(root)
            except StoreUnavailable as error:
                away.append(error)
        if len(away) == len(places_of(self._client).roots):  # otherwise there are still the jobs of the other shards
            raise away[0]

    def _tend(self, root: str) -> None:
        queue = inside(root, QUEUE)
        with store_errors():
            self._client.eval(scripts.TEND, 3, inside(root, INDEX), queue, inside(root, ENDED))
            # The server hands each message to one caller only, and to another one if that caller dies.
            answer: Any = self._client.xautoclaim(queue, GROUP, CONSUMER, round(1000 * LEASE_SECONDS))
        for message in (_message(*entry) for entry in answer[1]):
            if self.take_back(message, deaths=1):
                logger.warning("job %s: its worker has died", message.job_id)

    def others_wait(self, owner: str) -> bool:
        """Return whether jobs of other owners wait."""
        return any(one.owner != owner for one in self._waiting())

    def is_due(self, message: Message, served: str) -> bool:
        """Return whether a message's job may start now; `served` is the owner of the job that ran last.

        While jobs of other owners wait, no owner has two jobs in a row. Of an owner's jobs, the one that has waited
        longest comes first. A message that is not due goes to the end of the queue.
        """
        # No job starves: a message that goes to the end keeps its `since`, so ever fewer jobs of its owner come before
        # it; and until it is read again, a job of another owner has started, or no such job waits any more.
        waiting = [*self._waiting()] if message.owner else []
        own = [one for one in waiting if one.owner == message.owner]
        return (message.owner != served or len(own) == len(waiting)) and all(message.since <= one.since for one in own)

    def _waiting(self) -> Iterator[Message]:
        """Yield the messages that no worker has read, of the shards that answer."""
        for queue in self._queues:
            read, every = [], []
            with suppress(StoreUnavailable), store_errors():
                read = cast("list[dict[str, Any]]", self._client.xpending_range(queue, GROUP, "-", "+", 1000))
                every = cast("list[tuple[bytes, dict[bytes, bytes]]]", self._client.xrange(queue))
            taken = {one["message_id"] for one in read}
            yield from (_message(*one) for one in every if one[0] not in taken)

    def take_back(self, message: Message, deaths: int) -> bool:
        """Put a job back in the queue, or end it if it is cancelled or its process has died too often.

        `message` is that of the finished attempt; `deaths` is added to the job's count of deaths.

        Returns:
            False if the message belongs to no unfinished job, or to one of a newer version, which is left alone.
        """
        detail = f"its process died {_MOST_DEATHS + 1} times in a row without getting any further"
        error = JobError(reason="died", detail=detail).model_dump_json()
        args = [message.id, deaths, _MOST_DEATHS, self._ttl, error, message.since]
        return bool(scripts.run(self._client, "release", message.job_id, *args))


def _message(message_id: bytes, fields: dict[bytes, bytes]) -> Message:
    job_id, owner = (fields.get(of, b"").decode(errors="replace") for of in (b"job", b"owner"))
    since = fields.get(b"since", b"")
    # Messages of older versions have no `since`, but the id of a message begins with the time when it was sent.
    return Message(message_id.decode(), job_id, owner, int(since if since.isdigit() else message_id.split(b"-")[0]))


# Exit codes of a job's process: the end of the job is stored; the job's stored data cannot be read; the job did not
# end, for reasons outside the job.
DONE, UNREADABLE, TRY_AGAIN = 0, 65, 75
_PR_SET_PDEATHSIG = 1
_END_PAUSE_SECONDS = 0.2
_LONGEST_END_PAUSE_SECONDS = 5.0
_AGAIN_SECONDS = 2.0


def do_job(
    connect: Callable[[], redis.Redis],
    handlers: Handlers,
    message: Message,
    fields: dict[str, str],
    ttl: int,
    quota: Quota,
) -> NoReturn:
    """Run one job in this process, and exit with a code that says whether the end of the job is stored.

    `connect`, `handlers`, `ttl` and `quota` are those of the worker. `message` is the job's, `fields` is its record.
    """
    _end_with_worker()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        client = connect()
        try:
            context, kind = JobContext(client, message.job_id, message.id, fields, quota), fields["kind"]
        except (StoreDamaged, KeyError, TypeError, ValueError):
            sys.exit(UNREADABLE)
        outcome = _outcome(handlers, context, kind)
        context.tell()
        _write_end(client, context, ttl, outcome)
        sys.exit(DONE)
    except NotMine:
        logger.warning("job %s was taken away while it ran", message.job_id)
    except StoreUnavailable as error:
        logger.warning("job %s will be begun again: %s", message.job_id, in_full(error))
        time.sleep(_AGAIN_SECONDS)  # as running time of the job, which is limited
    sys.exit(TRY_AGAIN)


def _end_with_worker() -> None:
    """Make the system kill this process when its worker dies, because its result would be discarded."""
    if sys.platform == "linux":
        # Compiled loops may block all Python threads, so only the kernel is reliable.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        worker = multiprocessing.parent_process()
        if worker is not None:
            worker.join()
            os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _outcome(handlers: Handlers, context: JobContext, kind: str) -> Result | JobError:
    try:
        return handlers[kind](context.payload, context)
    except (NotMine, StoreUnavailable):
        raise
    except InvalidInput as error:
        return JobError(reason="invalid-input", detail=error.detail, pointer=error.pointer)
    except InvalidOption as error:
        return JobError(reason="invalid-input", detail=f"{error.option}: {error.detail}")
    except TooLarge as error:
        return JobError(reason="too-large", detail=error.detail)
    except NewerVersion as error:
        return JobError(reason="newer-version", detail=str(error))
    except QuotaExceeded as error:
        return _no_room(error)
    except MemoryError:
        return JobError(reason="memory", detail="there was not enough memory for it")
    except Exception:
        logger.exception("job %s failed", context.job_id)
        detail = f"the service failed; its log has the id of the job, {context.job_id}"
        return JobError(reason="internal-error", detail=detail)


def _write_end(client: redis.Redis, context: JobContext, ttl: int, outcome: Result | JobError) -> None:
    """Store the end of a job, and retry until the store answers, so that the result need not be computed again."""
    pause = _END_PAUSE_SECONDS
    while True:
        try:
            context.discard_written()  # by a try that failed
            error = outcome.model_dump_json() if isinstance(outcome, JobError) else ""
            bodies, kept = (b"", []) if isinstance(outcome, JobError) else _write_result(context, outcome)
            state = "failed" if error else "succeeded"
            args = [context.message, state, ttl, error, bodies]
            done = scripts.run(client, "end", context.job_id, *args, keys=kept)
        except QuotaExceeded as full:
            outcome = _no_room(full)
        except StoreUnavailable as away:
            logger.warning("the end of job %s is not written down yet: %s", context.job_id, in_full(away))
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_END_PAUSE_SECONDS)
        else:
            if not done:
                raise NotMine(context.job_id)
            return


def _no_room(error: QuotaExceeded) -> JobError:
    return JobError(reason="quota", detail=str(error))


def _write_result(context: JobContext, outcome: Result) -> tuple[bytes, list[str]]:
    """Store the bodies of a result; return their description as JSON, and all their keys."""
    described, kept = [], []
    for media_type, body in (outcome or {}).items():
        for page in body if isinstance(body, list) else [body]:
            prefix = key(context.job_id, f"result:{secrets.token_hex(4)}", context.places)
            written = context.write(prefix, page)
            described.append((media_type, prefix, len(written)))
            kept += written
    return orjson.dumps(described), kept


_READ_SECONDS = 1.0
_LOOK_SECONDS = 0.1
_RENEW_SECONDS = 0.5
# Shortest and longest turn: the time for which a job may keep jobs of other owners waiting.
_TURN_SECONDS = 30.0
_LONGEST_TURN_SECONDS = 600.0
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 2.0
_UNREADABLE = JobError(reason="internal-error", detail="what is stored of it cannot be read; an operator must look")
# States of a job after an attempt in which something went wrong.
_BAD = ("failed", "queued", "unknown")
# The process of a job starts as a copy of its worker, which has everything imported and compiled.
_FORK = multiprocessing.get_context("fork")


class JobLimits(NamedTuple):
    """Limits of one job: seconds of running time, and bytes of memory."""

    seconds: float
    nbytes: int

    def find_excess(self, taken: float, pid: int | None) -> JobError | None:
        """Return the error of a job that takes too much time or memory, else None.

        `taken` is the running time in seconds of all attempts, `pid` the process of this one.
        """
        if taken > self.seconds:
            detail = f"it ran for {taken:.0f} seconds; max_job_seconds is {self.seconds:g}"
            return JobError(reason="time", detail=detail)
        try:
            resident = psutil.Process(pid).memory_info().rss
        except psutil.Error:  # the process is just ending
            return None
        if resident > self.nbytes:
            detail = f"it took {resident} bytes of memory; max_job_bytes is {self.nbytes}"
            return JobError(reason="memory", detail=detail)
        return None


class Worker:
    """Worker that runs the jobs of a store, of the kinds for which it has handlers.

    `connect` returns a client of the store, whose calls may take `timeout` seconds each. Ended jobs are kept for `ttl`
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
        self._served = ""
        """Owner of the job that ran last."""

    def run(self) -> None:
        """Run jobs until the process receives SIGTERM or SIGINT; wait for the store whenever it is unavailable.

        Call this in the main thread. A job that runs at the signal goes back to the queue, for another worker.
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
                if told != in_full(error):  # log an error once, not every second: the full disk may be that of the log
                    told = in_full(error)
                    logger.warning("the worker waits for the store: %s", told)
                time.sleep(_PAUSE_SECONDS)

    def _stop(self, signum: int, frame: FrameType | None) -> None:
        del signum, frame
        self._stopping = True

    def _answer(self, message: Message) -> None:
        """Run the job of a message, if the job still waits and is due."""
        if not self._queue.is_due(message, self._served):
            self._queue.take_back(message, deaths=0)
            return
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
        """Run one attempt of a job, in the context of the request that submitted it, and log the outcome."""
        began, self._served = time.monotonic(), message.owner
        kind = fields.get("kind", "")
        job = RequestContext(fields.get("request_id", ""), fields.get("traceparent", ""), message.job_id)
        try:
            with self._spans.job(kind, job) as tell:
                REQUEST.set(job)
                self._run(message, fields, ran)
                seconds, outcome = time.monotonic() - began, self._state(message.job_id)
                tell({"bochner.job.state": outcome} | ({"error.type": outcome} if outcome in _BAD else {}))
            seen = {"kind": kind, "outcome": outcome, "seconds": round(seconds, 3)}
            logger.info("job %s: %s after %.1f s", message.job_id, outcome, seconds, extra={FIELDS: seen})
        finally:
            REQUEST.set(None)

    def _state(self, job_id: str) -> str:
        """Return the state of a job; "unknown" if the job is gone or the store does not answer."""
        try:
            return self._jobs.fields(job_id)["state"]
        except (JobNotFound, StoreUnavailable):
            return "unknown"

    def _run(self, message: Message, fields: dict[str, str], ran: float) -> None:
        args = self._connect, self._handlers, message, fields, self._ttl, self._quota
        process = _FORK.Process(target=do_job, args=args, daemon=True)
        process.start()
        try:
            stopped = self._watch(process, message, ran, fields)
        finally:
            process.kill()
            process.join()
        if isinstance(stopped, JobError):
            self._fail(message, stopped)
        elif process.exitcode == UNREADABLE:
            self._fail(message, _UNREADABLE)
        elif stopped or process.exitcode == TRY_AGAIN:
            self._persist(lambda: self._queue.take_back(message, deaths=0))
        elif process.exitcode != DONE:
            logger.warning("job %s: its process ended with code %s", message.job_id, process.exitcode)
            self._persist(lambda: self._queue.take_back(message, deaths=1))

    def _fail(self, message: Message, error: JobError) -> None:
        if error is _UNREADABLE:
            logger.error("job %s has failed: what is stored of it cannot be read", message.job_id)
        args = [message.id, "failed", self._ttl, error.model_dump_json(), ""]
        self._persist(lambda: scripts.run(self._client, "end", message.job_id, *args))

    def _watch(self, process: ForkProcess, message: Message, ran: float, fields: dict[str, str]) -> JobError | bool:
        """Wait until a job's process has ended, or has to be ended.

        `ran` is the running time in seconds of earlier attempts; `fields` is the job's record at the start of this one.

        Returns:
            The error, if the job exceeds a limit; True if it must stop for another reason; False if its process ended.
        """
        began = renewed = time.monotonic()
        kept_waiting = 0.0
        while process.exitcode is None:
            process.join(_LOOK_SECONDS)
            taken = time.monotonic() - began + ran
            error = self._limits.find_excess(taken, process.pid)
            if error is not None or self._stopping:
                return error or True
            if time.monotonic() - renewed >= _RENEW_SECONDS:
                since, renewed = renewed, time.monotonic()
                if not self._renew(message, taken):
                    return True
                with suppress(StoreUnavailable, JobNotFound):
                    if self._queue.others_wait(message.owner):
                        kept_waiting += renewed - since
                        if self._had_its_turn(message, taken - ran, kept_waiting, fields):
                            return True
        return False

    def _renew(self, message: Message, taken: float) -> bool:
        """Renew the lease on a job; return False if the job belongs to another attempt or is cancelled."""
        try:
            answer = scripts.run(self._client, "renew", message.job_id, message.id, f"{taken:.3f}")
            self._queue.tend()
        except StoreUnavailable as error:
            logger.warning("job %s goes on while the store is away: %s", message.job_id, in_full(error))
            return True
        return bool(answer == b"ok")

    def _had_its_turn(self, message: Message, taken: float, kept_waiting: float, before: dict[str, str]) -> bool:
        """Return whether a job's turn is over, so that the job has to wait while jobs of other owners run.

        After `_TURN_SECONDS`, a turn ends once the job has saved progress in a new checkpoint. Without such progress, a
        turn is as long as all earlier turns without progress together, so that the job may end within one. Only time
        during which jobs of other owners wait counts towards such a turn, and the turn is no running time of the job.
        """
        if taken <= _TURN_SECONDS:
            return False
        now = self._jobs.fields(message.job_id)
        is_kept = checkpoints.content_of(now.get("checkpoint", "")) != checkpoints.content_of(
            before.get("checkpoint", "")
        )
        if is_kept and int(now.get("step") or 0) > int(before.get("step") or 0):
            return True
        lost = float(before.get("lost") or 0)
        if kept_waiting <= min(max(lost, _TURN_SECONDS), _LONGEST_TURN_SECONDS):
            return False
        args = message.job_id, message.id, before.get("ran") or 0, f"{lost + kept_waiting:.3f}"
        scripts.run(self._client, "renew", *args)
        return True

    def _persist(self, write: Callable[[], object]) -> None:
        """Store the outcome of a job, with retries; a stopping worker gives up instead, and the lease expires."""
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


PROGRAM = "app"
_CHECK_SECONDS = 0.25
_LONGEST_RESTART_SECONDS = 10.0
# The start was not the cause if a worker dies after this time.
_STEADY_SECONDS = 30.0
_END_SECONDS = 10.0


class WorkerSupervisor:
    """Supervisor that starts `count` workers, restarts each one that dies, and ends all with the service.

    Workers read their settings from the environment. A worker whose service was killed ends by itself.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._stopping = Event()
        self._threads: list[Thread] = []

    def __enter__(self) -> "WorkerSupervisor":
        self._threads = [Thread(target=self._keep, name=f"job-worker-{i}", daemon=True) for i in range(self._count)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _keep(self) -> None:
        pause = _CHECK_SECONDS
        while not self._stopping.is_set():
            began = time.monotonic()
            worker = _start()
            while worker.poll() is None:
                if self._stopping.wait(_CHECK_SECONDS):
                    _end_worker(worker)
                    return
            steady = time.monotonic() > began + _STEADY_SECONDS
            pause = _CHECK_SECONDS if steady else min(2 * pause, _LONGEST_RESTART_SECONDS)
            logger.warning("a job worker ended with code %s; starting another in %.1f s", worker.returncode, pause)
            self._stopping.wait(pause)


def _start() -> "subprocess.Popen[bytes]":
    # In a new session, Ctrl-C at the terminal reaches only the service, which then ends its workers.
    line = command(PROGRAM, "worker", "--parent", str(os.getpid()))
    return subprocess.Popen(line, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - our own program


def _end_worker(worker: "subprocess.Popen[bytes]") -> None:
    worker.terminate()
    try:
        worker.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        logger.warning("a job worker does not end; killing it")
        worker.kill()
        worker.wait()
