"""Workers that a service runs beside itself."""

import logging
import os
import subprocess
import time
from threading import Event, Thread

from app.own_process import command

logger = logging.getLogger(__name__)

PROGRAM = "app"
_CHECK_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 10.0
# A worker that lived so long did not die of its start.
_STEADY_SECONDS = 30.0
_END_SECONDS = 10.0


class WorkerSupervisor:
    """Starts a number of workers, starts each again when it dies, and ends them with the service.

    They read their settings from the environment. A worker whose service was killed ends by itself.
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
                    _end(worker)
                    return
            steady = time.monotonic() > began + _STEADY_SECONDS
            pause = _CHECK_SECONDS if steady else min(2 * pause, _LONGEST_PAUSE_SECONDS)
            logger.warning("a job worker ended with code %s; starting another in %.1f s", worker.returncode, pause)
            self._stopping.wait(pause)


def _start() -> "subprocess.Popen[bytes]":
    # A session of its own: Ctrl-C at the terminal is for the service, which then ends its workers.
    line = command(PROGRAM, "worker", "--parent", str(os.getpid()))
    return subprocess.Popen(line, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - our own program


def _end(worker: "subprocess.Popen[bytes]") -> None:
    worker.terminate()
    try:
        worker.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        logger.warning("a job worker does not end; killing it")
        worker.kill()
        worker.wait()
