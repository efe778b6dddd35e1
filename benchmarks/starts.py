"""What a service costs before it does anything: seconds until it is ready, and memory when idle."""

import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.clients import serving
from benchmarks.timing import Plan, Report, Times

TITLE = "Starts and idle memory"
FIRST, LATER = "first, nothing compiled", "later"
REPEATS = {FIRST: 1, LATER: 3}
# Most seconds until ready, and most megabytes of each process.
READY = {FIRST: 15.0, LATER: 2.5}
MEMORY = {"service": 160.0, "worker": 140.0}
# The worker has settled by then, and whatever starting up left to be cleaned is clean.
_SETTLE_SECONDS = 5


def work(process: psutil.Process) -> float:
    """Processor seconds of a process and of all that it started, of which some have ended."""
    return float(sum(sum(one.cpu_times()[:4]) for one in [process, *process.children(recursive=True)]))


def resident(process: psutil.Process) -> float:
    """Resident memory in megabytes."""
    return float(process.memory_info().rss / 1e6)


def started(kind: str) -> dict[str, float]:
    """One start of a service with a worker: seconds until it is ready, and megabytes of each process once idle."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"NUMBA_CACHE_DIR": f"{folder}/loops"} if kind == FIRST else {}
        options = ["--data-dir", str(Path(folder) / "data"), "--log-level", "warning"]
        begun = time.perf_counter()
        with serving("app", "serve", *options, ready="/health/ready", **environment) as (_, process):
            found = {"seconds": time.perf_counter() - begun}
            time.sleep(_SETTLE_SECONDS)
            found |= {"work": work(process), "service": resident(process)}
            beside = [one for one in process.children(recursive=True) if "worker" in one.cmdline()]
            return found | {"worker": max(map(resident, beside))}


def run(report: Report, plan: Plan) -> None:
    """Write the table."""
    report.say("A service with a worker and a store; memory is what is resident some seconds later.")
    rows = []
    for kind in [LATER] if plan.tiny else REPEATS:
        runs = [started(kind) for _ in range(1 if plan.tiny else REPEATS[kind])]
        ready, worked, *memory = (Times([one[name] for one in runs]) for name in ("seconds", "work", *MEMORY))
        told = [f"{ready.spread()} s", *(f"{one.median:.0f} MB" for one in memory)]
        rows.append((kind, told[0], f"{worked.median:.1f} s", *told[1:]))
        report.at_most(f"start to ready, {kind}", ready.median, READY[kind], told[0], " s")
        for (name, most), one, megabytes in zip(MEMORY.items(), memory, told[1:], strict=True):
            report.at_most(f"idle memory of the {name}, start: {kind}", one.median, most, megabytes, " MB")
    report.table(("start", "ready after", "processor time of all", *MEMORY), rows)
