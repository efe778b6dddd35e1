"""A store with jobs, and workers that tests start, look at and kill."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

import psutil
import redis

from app.jobs import scripts
from app.jobs.job_context import JobContext
from app.jobs.jobs import Jobs
from app.jobs.record import JobRecord
from app.jobs.scripts import CONSUMER, GROUP, QUEUE, key
from app.jobs.worker import Message, Queue
from app.store.errors import StoreUnavailable
from service_tests.servers import until

PROGRAM = "service_tests.jobs.program"


class Site:
    """The jobs of a store at a URL, and the workers on it."""

    def __init__(self, url: str, client: redis.Redis) -> None:
        self.url = url
        self.client = client
        self.jobs = Jobs(client, 100, 600)
        self.queue = Queue(client, 600)
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self, *options: str, stderr: IO[bytes] | None = None) -> "subprocess.Popen[bytes]":
        """Start a worker; it takes its first job a moment later."""
        command = [sys.executable, "-m", PROGRAM, "worker", "--redis-url", self.url, *options]
        worker = subprocess.Popen(command, stderr=stderr)
        self.workers.append(worker)
        return worker

    def clean(self) -> None:
        """End every worker."""
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.wait(30)
        self.workers.clear()

    def walk(self, steps: int, **payload: Any) -> str:
        """Submit a walk; gives the id of its job."""
        return self.jobs.submit("test-walk", {"steps": steps, "seed": 3, **payload}).id

    def ended(self, job_id: str) -> JobRecord:
        """Wait for the end of a job."""
        until(lambda: self.look(lambda: self.jobs.get(job_id).state.ended))
        return self.jobs.get(job_id)

    def look(self, at: Callable[[], bool]) -> bool:
        """Whether something is so; not while the store is away."""
        try:
            return at()
        except StoreUnavailable:
            return False

    def running(self, job_id: str) -> None:
        """Wait until a job runs."""
        until(lambda: self.look(lambda: self.jobs.get(job_id).state.value == "running"))

    def holder(self) -> "tuple[subprocess.Popen[bytes], list[psutil.Process]]":
        """The worker that works, and its processes, in one look; waits for one."""
        found: list[tuple[subprocess.Popen[bytes], list[psutil.Process]]] = []

        def look() -> bool:
            found[:] = [(worker, working) for worker in self.workers if (working := job_processes(worker))]
            return bool(found)

        until(look)
        return found[0]

    def counts(self) -> tuple[int, int]:
        """How many messages wait, and how many have been read."""
        read: int = self.client.xpending(QUEUE, GROUP)["pending"] if self.client.exists(QUEUE) else 0
        return self.client.xlen(QUEUE) - read, read

    def attempt(self, job_id: str) -> JobContext:
        """An attempt at a job, in place of a worker's; earlier messages are read and left."""
        return attempt(self.client, job_id)

    def resumed(self, attempt: JobContext) -> JobContext:
        """The same attempt, as its process would find the job now."""
        return JobContext(self.client, attempt.job_id, attempt.message, self.jobs.fields(attempt.job_id))

    def abandon(self, message: str) -> None:
        """Let a message that was read look as if its worker had died long ago."""
        self.client.xclaim(QUEUE, GROUP, CONSUMER, 0, [message], idle=60_000, justid=True)

    def idle(self) -> None:
        """Wait until nobody works."""
        until(lambda: not any(job_processes(worker) for worker in self.workers))

    def result(self, job_id: str) -> bytes:
        """The first body of a job's result."""
        return b"".join(self.jobs.parts(job_id, self.jobs.result(job_id)[0]))

    def keys_of(self, job_id: str) -> set[str]:
        """Parts of a job that the store holds, its record and events aside."""
        start = key(job_id, "")
        found = {one.decode().removeprefix(start) for one in self.client.scan_iter(match=f"{start}*")}
        return found - {"record", "events"}


def attempt(client: redis.Redis, job_id: str) -> JobContext:
    """An attempt at a job that waits."""
    message = read(client)
    while message.job_id != job_id:
        message = read(client)
    assert scripts.run(client, "claim", job_id, message.id) == b"ok"
    return JobContext(client, job_id, message.id, Jobs(client, 1, 60).fields(job_id))


def read(client: redis.Redis) -> Message:
    """The next message."""
    message = Queue(client, 600).next(1)
    assert message is not None
    return message


def job_processes(worker: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    """Processes that work on a job for a worker; not the dead that it has yet to reap."""
    with suppress(psutil.NoSuchProcess):
        return [child for child in psutil.Process(worker.pid).children(recursive=True) if lives(child)]
    return []


def lives(process: psutil.Process) -> bool:
    """Whether a process still runs; nobody need have reaped it."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def kill(process: psutil.Process) -> None:
    """SIGKILL, if it still lives."""
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)


def gone(processes: list[psutil.Process]) -> None:
    """Wait for the end of processes."""
    until(lambda: not any(lives(process) for process in processes))
