"""Faults that are planted one at a time, and which tests find them: `python -m service_tests.planted [NAME ...]`.

They are in `planted.toml`. Each changes a line of a copy of the project. The quick tests beside what it changes run
first, for a minute; only where they find nothing, the gate tests run too. Whoever takes tests away runs this before and
after: what was found must still be found.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SECONDS = 60
"""For the tests beside a fault."""


class Fault(NamedTuple):
    """A wrong line in the place of a right one, and the tests of what it is part of."""

    path: str
    right: str
    wrong: str
    tests: str

    def plant(self, root: Path) -> str:
        """Put the fault into the project at `root`; gives the text that was there."""
        file = root / self.path
        before = file.read_text()
        file.write_text(before.replace(self.right, self.wrong))
        return before


FAULTS = {
    name: Fault(**fault) for name, fault in tomllib.loads((ROOT / "service_tests" / "planted.toml").read_text()).items()
}


def copy(to: Path) -> Path:
    """A copy of the project, with what is compiled already."""
    left_out = shutil.ignore_patterns(".venv*", ".git", "node_modules", "build", ".*_cache", "bochner-data")
    return Path(shutil.copytree(ROOT, to, ignore=left_out))


def find(root: Path, marks: str, seconds: float | None, *tests: str) -> str | None:
    """The first test that fails; None if all pass, or none has failed in time."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-n", "2", "-m", marks, *tests]
    environment = os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{root / 'client'}"}
    with subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate()
    failures = [line for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if not failures and process.returncode not in (0, 2, 5):
        raise RuntimeError(said[-2000:])
    return failures[0].split(" - ")[0] if failures else None


def main() -> int:
    """Plant the faults that are named, or all; give how many were not found."""
    parser = argparse.ArgumentParser(prog="python -m service_tests.planted", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a fault; all without any")
    parser.add_argument("--quick", action="store_true", help="leave out the gate tests")
    asked = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as directory:
        root = copy(Path(directory) / "copy")
        for name in asked.names or FAULTS:
            fault, began = FAULTS[name], time.monotonic()
            before = fault.plant(root)
            found = find(root, "not gate and not nightly", SECONDS, *fault.tests.split())
            if found is None and not asked.quick:
                found = find(root, "not nightly", None)
            (root / fault.path).write_text(before)
            missed += found is None
            sys.stdout.write(f"{name}: {found or 'NOT FOUND'} ({time.monotonic() - began:.0f} s)\n")
            sys.stdout.flush()
    return missed


if __name__ == "__main__":
    sys.exit(main())
