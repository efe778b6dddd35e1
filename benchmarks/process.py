"""What a process costs before it does anything: seconds until it is ready, and memory when idle.

Run: python -m benchmarks.process [--source DIR] [--repeats N]

Service and worker are started together. "no loops": nothing that numba compiles is there (an empty NUMBA_CACHE_DIR).
"no bytecode": nor what Python compiles, of this project and of all libraries (an empty PYTHONPYCACHEPREFIX). "later":
both are there. DIR is the checkout to measure, by default the current directory. Memory is resident (RSS), with the
share of what several processes have in common (PSS), and what belongs to no file.
"""

import argparse
import http.client
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

import psutil

from service_tests.running import free_port

# The worker is warm by then, and whatever starting up left to be cleaned is clean.
_SETTLE_SECONDS = 5
_MOST_SECONDS = 300
_KINDS = ("rss", "pss", "anonymous")


def answers(port: int, path: str) -> bool:
    """Whether the service says 200."""
    with suppress(OSError, http.client.HTTPException):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", path)
        return connection.getresponse().status == 200
    return False


def until(port: int, path: str, began: float) -> float:
    """Seconds since `began` when the service says 200."""
    while not answers(port, path):
        if time.perf_counter() > began + _MOST_SECONDS:
            raise TimeoutError(path)
        time.sleep(0.01)
    return time.perf_counter() - began


@contextmanager
def started(source: Path, environment: dict[str, str]) -> Iterator[tuple[psutil.Process, float, float]]:
    """A service with a worker, and the seconds until it was live and ready."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        options = ["--port", str(port), "--data-dir", f"{folder}/data", "--log-level", "warning"]
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "app", "serve", *options], env=environment, cwd=source)
        try:
            yield psutil.Process(process.pid), until(port, "/health/live", began), until(port, "/health/ready", began)
        finally:
            process.terminate()
            process.wait(60)


def work(process: psutil.Process) -> float:
    """Processor seconds of a process and those that it started, of which some have ended."""
    every = [process, *process.children(recursive=True)]
    return sum(sum(one.cpu_times()[:4]) for one in every)


def memory(process: psutil.Process) -> list[float]:
    """Resident memory of a process, its share of what is common, and what belongs to no file, in MB."""
    parts = process.memory_maps(grouped=False)
    return [sum(getattr(part, kind) for part in parts) / 1e6 for kind in _KINDS]


def measured(source: Path, environment: dict[str, str]) -> dict[str, list[float]]:
    """Seconds of one start, and the memory of each process."""
    with started(source, environment) as (service, live, ready):
        time.sleep(_SETTLE_SECONDS)
        found = {"start": [live, ready, work(service)], "service": memory(service)}
        for child in service.children(recursive=True):
            name = "worker" if "worker" in child.cmdline() else child.name()
            found[name] = memory(child)
        return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, default=Path.cwd())
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for start in ("no loops, no bytecode", "no loops", "later"):
        runs = []
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as folder:
                environment = os.environ | {"PYTHONPATH": str(options.source)}
                environment.pop("PYTHONDONTWRITEBYTECODE", None)
                if start != "later":
                    environment["NUMBA_CACHE_DIR"] = f"{folder}/loops"
                if start == "no loops, no bytecode":
                    environment["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
                runs.append(measured(options.source, environment))
        live, ready, worked = zip(*(run["start"] for run in runs), strict=True)
        print(f"{start}: live {median(live):.2f} s, ready {median(ready):.2f} s ({min(ready):.2f} to {max(ready):.2f})")
        print(f"    {median(worked):.1f} s of processors, for all of them")
        for name in [name for name in runs[-1] if name != "start"]:
            figures = [median(run[name][i] for run in runs) for i in range(len(_KINDS))]
            print(f"    {name:14} {figures[0]:6.1f} MB resident, {figures[1]:6.1f} shared out, {figures[2]:6.1f} own")


if __name__ == "__main__":
    main()
