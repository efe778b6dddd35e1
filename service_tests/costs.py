"""What a request costs the process that answers it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil

from service_tests.running import Running

MB = 1_000_000


class Sent(NamedTuple):
    """A request that was answered."""

    status: int
    body: int
    """Bytes of its body."""
    answer: int
    """Bytes of its answer."""


class Cost(NamedTuple):
    """What it took."""

    sent: Sent
    peak: int
    """By how many bytes the memory of the service rose at most."""
    of_job: int
    """And that of the process of a job, beyond what its worker has; 0 if there was no job."""
    seconds: float
    """Of one core, of the service without its store."""


def sent(http: httpx.Client, method: str, path: str, body: bytes = b"", **headers: str) -> Sent:
    """Send a request, and read its answer without keeping it. A job that goes on with it is cancelled."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with http.stream(method, path, content=body or None, headers=named) as answer:
        found = Sent(answer.status_code, len(body), sum(map(len, answer.iter_raw())))
    if found.status == 202:  # what it took is known by now, and the next request is to be alone
        http.delete(answer.links["monitor"]["url"])
    return found


def cost(running: Running, send: Callable[[httpx.Client], Sent], seconds_of_job: int = 30) -> Cost:
    """Send a request alone, and measure what it costs, its job for so long. On Linux only."""
    process = psutil.Process(running.process.pid)
    with (
        running.client(Prefer=f"wait={seconds_of_job}") as http,
        _of_jobs(process) as of_jobs,
    ):
        http.timeout = httpx.Timeout(600)
        # From now on the system keeps the peak anew.
        Path(f"/proc/{process.pid}/clear_refs").write_text("5")
        before, began = _memory(process, "VmRSS"), _seconds(process)
        found = send(http)
        seconds = _seconds(process) - began
        peak = _memory(process, "VmHWM") - before
    return Cost(found, peak, max(of_jobs), seconds)


@contextmanager
def waits(running: Running) -> Iterator[list[float]]:
    """The times that a client waits for /health/live, one after the other, while the block lasts."""
    found = [0.0]
    with running.client() as http:

        def ask() -> None:
            began = time.perf_counter()
            http.get("/health/live").raise_for_status()
            found.append(time.perf_counter() - began)

        with _again_and_again(ask, 0.02):
            yield found


@contextmanager
def _of_jobs(service: psutil.Process) -> Iterator[list[int]]:
    """Bytes by which the processes of jobs rise above their workers, again and again while the block lasts."""
    found = [0]
    workers = [one for one in service.children() if "worker" in one.cmdline()]

    def look() -> None:
        for worker in workers:
            with suppress(OSError, psutil.Error, StopIteration):
                found.extend([_memory(job, "VmHWM") - _memory(worker, "VmRSS") for job in _children(worker)])

    with _again_and_again(look, 0.05):
        yield found


@contextmanager
def _again_and_again(act: Callable[[], None], pause: float) -> Iterator[None]:
    """Do something beside the block until it ends, with so many seconds between."""
    done = threading.Event()

    def keep_on() -> None:
        while not done.wait(pause):
            act()

    beside = threading.Thread(target=keep_on)
    beside.start()
    try:
        yield
    finally:
        done.set()
        beside.join()


def _children(process: psutil.Process) -> list[psutil.Process]:
    """The processes that the main thread of this one has started, read from one file, which takes next to no time."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [psutil.Process(int(pid)) for pid in listed.split()]


def _memory(process: psutil.Process, which: str) -> int:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(which))


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
