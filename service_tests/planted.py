"""Faults that are planted one at a time, and which tests find them: `python -m service_tests.planted [NAME ...]`.

Each fault changes a line of a copy of the project. The quick tests beside what it changes run first, for a minute; only
where they find nothing, the gate tests run too. Whoever takes tests away runs this before and after: what was found
must still be found.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
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


CORE, API, STORE, JOBS = "service_tests/core", "service_tests/api", "service_tests/store", "service_tests/jobs"
FAULTS = {
    "wrong sign in a kernel": Fault(
        "app/core/kernels/gaussian.py", "np.exp(-(lags**2) / 2)", "np.exp(-(lags**2))", f"{CORE}/kernels"
    ),
    "wrong law of frequencies": Fault(
        "app/core/kernels/gaussian.py",
        "gammaincinv(dim / 2, uniforms)",
        "gammaincinv(dim, uniforms)",
        f"{CORE}/kernels",
    ),
    "lengths along the wrong axis": Fault(
        "app/core/samplers/orthogonal.py",
        "np.sqrt(rng.chisquare(input_dim, s))[:, None]",
        "np.sqrt(rng.chisquare(input_dim, input_dim))",
        f"{CORE}/samplers",
    ),
    "no mirror images": Fault(
        "app/core/samplers/antithetic.py",
        "np.concatenate([half, -half])",
        "np.concatenate([half, half])",
        f"{CORE}/samplers",
    ),
    "origin of a sequence": Fault(
        "app/core/samplers/halton.py", 'self.skip + (self.scramble != "random")', "self.skip", f"{CORE}/samplers"
    ),
    "digits in the wrong place": Fault(
        "app/core/samplers/halton.py", "base**n_digits <= last", "base**n_digits < last", f"{CORE}/samplers"
    ),
    "moments with another divisor": Fault(
        "app/core/samplers/moment_matching.py",
        "row_products(rows.T, rows.T) / len(rows)",
        "row_products(rows.T, rows.T) / (len(rows) - 1)",
        f"{CORE}/samplers",
    ),
    "mean counted once": Fault(
        "app/core/discrepancy/box_discrepancy.py",
        "pulls -= 2 * self.means(",
        "pulls -= self.means(",
        f"{CORE}/discrepancy",
    ),
    "expected discrepancy": Fault(
        "app/core/discrepancy/box_discrepancy.py",
        "(0.0 - math.expm1(min(0.0, self.log_energy))) / s",
        "(0.0 - math.expm1(min(0.0, self.log_energy))) / (s - 1)",
        f"{CORE}/discrepancy {CORE}/diagnostics",
    ),
    "lost half of a narrow product": Fault(
        "app/core/panels.py", "k, out, adds or first > 0)", "k, out, adds)", f"{CORE}/test_panels.py"
    ),
    "wrong sign in a rotation": Fault(
        "app/core/hadamard.py",
        "c[i], d[i] = sum_1 - sum_2, difference_1 - difference_2\n        part",
        "c[i], d[i] = sum_2 - sum_1, difference_1 - difference_2\n        part",
        f"{CORE}/test_hadamard.py {CORE}/maps",
    ),
    "samples rounded the wrong way": Fault(
        "app/core/hashing/sampling.py",
        "a = kappa[h] - r[h] * np.floor(",
        "a = kappa[h] - r[h] * np.ceil(",
        f"{CORE}/hashing",
    ),
    "bits that leave a pattern": Fault(
        "app/core/hashing/encodings.py",
        "words ^= words >> np.uint64(27)",
        "words ^= words >> np.uint64(26)",
        f"{CORE}/hashing",
    ),
    "rows shifted the wrong way": Fault(
        "app/core/input.py", "changed -= self._shifts", "changed += self._shifts", f"{CORE}/test_input.py"
    ),
    "correction of a sum": Fault(
        "app/core/hashing/signed_codes.py", "terms[:, -2]) / 24", "terms[:, -2]) / 12", f"{CORE}/hashing"
    ),
    "stale cache": Fault(
        "app/services/cache.py",
        '{manifest.kind} {manifest.digest}"',
        '{manifest.kind} {manifest.name}"',
        "service_tests/services",
    ),
    "no sync of a name": Fault("app/store/data_files.py", "    os.fsync(descriptor)", "    pass", STORE),
    "no sync of a write": Fault(
        "app/store/server.py", '("--appendfsync", "always")', '("--appendfsync", "everysec")', STORE
    ),
    "an entry that stays booked": Fault(
        "app/store/account.py", "  add_to(owner, -bytes, -names)\n", "", f"{STORE} service_tests/services"
    ),
    "an owner's limit is not looked at": Fault(
        "app/store/account.py",
        "  if owner ~= '' then\n    for what",
        "  if owner == '-' then\n    for what",
        STORE,
    ),
    "a bucket never empties": Fault("app/store/keys.py", "left = left - taken\n", "", f"{STORE}/test_rates.py {API}"),
    "off by one in a page": Fault(
        "app/store/named.py", "start=0, num=limit + 1)", "start=0, num=limit)", f"{STORE} {API}/routes"
    ),
    "one job too many waits": Fault("app/jobs/scripts.py", "if own >= left then", "if own > left then", JOBS),
    "a lease that is lost is kept": Fault(
        "app/jobs/scripts.py",
        "if not mine() then return 'lost' end\nif get('cancel')",
        "if get('cancel')",
        JOBS,
    ),
    "a cancelled job goes on": Fault(
        "app/jobs/scripts.py", "if get('cancel') ~= '' then return 'cancelled' end\n", "", JOBS
    ),
    "swapped order of a file": Fault(
        "app/formats/npy.py", 'order="F" if fortran_order else "C"', 'order="C" if fortran_order else "F"', API
    ),
    "short rows are taken": Fault(
        "app/formats/json/rows.py",
        "if len(row) != width:",
        "if len(row) > width:",
        f"service_tests/formats {API}",
    ),
    "a packed body may end early": Fault("app/api/bodies.py", "if not self._unpacker.eof:", "if False:", API),
    "two keys in one request": Fault(
        "app/api/access.py",
        "if len(came) > 1:\n        raise unauthorized(",
        "if len(came) > 2:\n        raise unauthorized(",
        API,
    ),
    "an unknown host": Fault("app/api/access.py", "if not self._hosts.allow(host):", "if False:", API),
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
