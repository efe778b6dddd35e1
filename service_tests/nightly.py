"""What takes too long for every change: `python -m service_tests.nightly [STEP ...]`, by hand or by a scheduler.

Each step is a command. Its exit code, seconds and memory are written to docs/nightly.md, and added to
benchmarks/nightly.csv, where they can be compared with those of earlier nights. `.ci/nightly` installs what it needs.
"""

import argparse
import csv
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
STEPS = {
    "tests": ["pytest", "-m", "nightly"],
    "soak": ["service_tests.soak.runner", "--steps", "2000"],
    "fuzz": ["service_tests.fuzz", "--count", "50000"],
    "fuzz with keys": ["service_tests.fuzz", "--count", "50000", "--keys"],
}
"""Modules to run, with their arguments."""


class Outcome(NamedTuple):
    """What became of a step."""

    began: str
    step: str
    exit_code: int
    seconds: int
    cpu_seconds: int
    peak_mb: int
    """Resident memory of the largest of its processes."""
    last_line: str


def run(step: str) -> Outcome:
    """Run a step to its end, whatever it finds."""
    began, start = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", *STEPS[step]], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    last = ""
    for line in process.stdout:
        sys.stdout.write(line)
        last = line.strip() or last
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = round(time.monotonic() - start)
    return Outcome(
        began, step, process.returncode, seconds, round(used.ru_utime + used.ru_stime), used.ru_maxrss >> 10, last
    )


def write(outcomes: list[Outcome]) -> None:
    """Write the report of a night, and add its figures to those of the nights before."""
    rows = "\n".join(f"| {' | '.join(str(field).replace('|', ' ') for field in one)} |" for one in outcomes)
    head = " | ".join(Outcome._fields).replace("_", " ")
    (ROOT / "docs" / "nightly.md").write_text(
        f"# The last night\n\n{platform.platform()}, {os.cpu_count()} processors. Written by "
        f"`python -m service_tests.nightly`; an exit code of 0 says that nothing was found.\n\n"
        f"| {head} |\n|{' --- |' * len(Outcome._fields)}\n{rows}\n"
    )
    figures = ROOT / "benchmarks" / "nightly.csv"
    is_new = not figures.exists()
    with figures.open("a", newline="") as file:
        csv.writer(file).writerows([*([Outcome._fields] if is_new else []), *outcomes])


def main() -> int:
    """Run the steps that are named, or all; give 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m service_tests.nightly", description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"{', '.join(STEPS)}; all without any")
    chosen = parser.parse_args().steps or [*STEPS]
    if unknown := [step for step in chosen if step not in STEPS]:
        parser.error(f"there is no step {unknown[0]!r}; there are {', '.join(STEPS)}")
    outcomes = [run(step) for step in chosen]
    write(outcomes)
    return int(any(one.exit_code for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
