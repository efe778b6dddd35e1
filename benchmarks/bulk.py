"""A million rows through the client into a memory map: its time beside plain NumPy's, and what both ends hold."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

from benchmarks.bulk_work import CLIENT, COLUMNS, PLAIN
from benchmarks.clients import rows, service
from benchmarks.timing import LIBRARY_REST, TIMES, Beside, Plan, Report, in_turns

TITLE = "Bulk work through the client"
D = 50
_HERE = Path(__file__).parent.parent


def anonymous(process: psutil.Process) -> int:
    """Bytes of memory that no file stands behind; 0 where the system does not tell."""
    try:
        found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    except (FileNotFoundError, ProcessLookupError):  # where there is no such thing, or it has ended
        return 0
    return 0 if found is None else 1024 * int(found[1])


class Held(Beside):
    """The most anonymous memory that some processes hold while inside, sampled every millisecond."""

    def __init__(self, processes: dict[str, psutil.Process]) -> None:
        super().__init__()
        self._processes = processes
        self.before = {name: anonymous(process) for name, process in processes.items()}
        self.bytes = dict(self.before)

    def _run(self) -> None:
        while not self._stop.wait(0.001):
            for name, process in self._processes.items():
                self.bytes[name] = max(self.bytes[name], anonymous(process))


class Worker:
    """Does the work in a process of its own; see `bulk_work`."""

    def __init__(self, kind: str, file: Path, url: str) -> None:
        command = [sys.executable, "-m", "benchmarks.bulk_work", kind, str(file), url]
        python_path = os.pathsep.join([str(_HERE), str(_HERE / "client")])
        self._process = subprocess.Popen(
            command,
            env=os.environ | {"PYTHONPATH": python_path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.process = psutil.Process(self._process.pid)

    def __call__(self) -> float:
        """Seconds of the work, done once."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def workers(file: Path, url: str) -> Iterator[dict[str, Worker]]:
    """A worker of each kind."""
    found = {kind: Worker(kind, file, url) for kind in (PLAIN, CLIENT)}
    try:
        yield found
    finally:
        for worker in found.values():
            worker.close()


def run(report: Report, plan: Plan) -> None:
    """Write the table."""
    n = 20_000 if plan.tiny else 1_000_000
    with tempfile.TemporaryDirectory() as folder, service() as (address, process):
        file = Path(folder) / "rows.npy"
        np.save(file, rows(n, D))
        with workers(file, f"http://{address}") as calls:
            watched = {"the client": calls[CLIENT].process, "the service": process}
            with Held(watched) as held:
                found = in_turns(calls, plan.seconds(20), LIBRARY_REST)
    ratio = found[CLIENT].over(found[PLAIN])
    report.say(
        f"{n:,} × {D} float32 rows of a memory map to {COLUMNS} columns in another, new each time: by NumPy "
        "in process, block by block, and by `FeatureMap` of `bochner_client` and a service over loopback."
    )
    report.table(("by", *TIMES), ((name, *times.cells()) for name, times in found.items()))
    figure = f"{n:,} × {D} → {COLUMNS} through the client into a memory map"
    report.at_most(f"{figure}, of plain NumPy", ratio.median, 2, ratio.spread())
    of_client = held.bytes["the client"]
    of_service = held.bytes["the service"] - held.before["the service"]
    report.say(
        f"Anonymous memory: the client's process held {of_client / 1e6:.0f} MB at most, the service "
        f"{of_service / 1e6:.0f} MB more than idle."
    )
    limits = {"of the client": (of_client, 300), "of the service above idle": (of_service, 200)}
    for whose, (nbytes, limit) in limits.items():
        told = f"{nbytes / 1e6:.0f} MB"
        report.at_most(f"{figure}, anonymous memory {whose}", nbytes / 1e6, limit, told, " MB")
