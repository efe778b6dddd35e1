"""What a request costs the process that answers it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    seconds: float
    """Of one core, of the service without its store."""
    longest_wait: float
    """The longest time that another client waited for /health/live, in seconds."""


def sent(http: httpx.Client, method: str, path: str, body: bytes = b"", **headers: str) -> Sent:
    """Send a request, and read its answer without keeping it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with http.stream(method, path, content=body or None, headers=named) as answer:
        return Sent(answer.status_code, len(body), sum(map(len, answer.iter_raw())))


def cost(running: Running, send: Callable[[httpx.Client], Sent]) -> Cost:
    """Send a request alone, and measure what it costs. On Linux only."""
    process = psutil.Process(running.process.pid)
    with running.client(Prefer="wait=30") as http, waits(running) as longest:
        http.timeout = httpx.Timeout(600)
        # From now on the system keeps the peak anew.
        Path(f"/proc/{process.pid}/clear_refs").write_text("5")
        before, began = _memory(process, "VmRSS"), _seconds(process)
        found = send(http)
        seconds = _seconds(process) - began
        peak = _memory(process, "VmHWM") - before
    return Cost(found, peak, seconds, max(longest))


@contextmanager
def waits(running: Running) -> Iterator[list[float]]:
    """The times that a client waits for /health/live, one after the other, while the block lasts."""
    found, done = [0.0], threading.Event()

    def watch() -> None:
        with running.client() as http:
            while not done.is_set():
                began = time.perf_counter()
                http.get("/health/live").raise_for_status()
                found.append(time.perf_counter() - began)
                time.sleep(0.005)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield found
    finally:
        done.set()
        watching.join()


def _memory(process: psutil.Process, which: str) -> int:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(which))


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
