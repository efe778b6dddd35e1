"""Takes out of an environment what a running service does not read; the image is a hundred megabytes smaller for it.

That is: tests of packages, sources and headers for compilers, and the names in libraries that only debuggers read.
"""

import shutil
import subprocess
import sys
from pathlib import Path

FOR_COMPILERS = {".a", ".c", ".cpp", ".h", ".hpp", ".pxd", ".pyi", ".pyx"}
# Below that there is little to win. Libraries that a wheel took along (`*.libs`) were changed by a tool whose results
# strip may ruin, and have few names.
WORTH_STRIPPING = 4_000_000


def slim(environment: Path) -> None:
    """Make an environment smaller, in place; CalledProcessError if a library does not load afterwards."""
    (packages,) = environment.glob("lib/python3*/site-packages")
    for tests in sorted(packages.glob("*/**/tests")):
        shutil.rmtree(tests, ignore_errors=True)  # those within others are gone
    for path in sorted(packages.rglob("*.*")):
        if path.suffix in FOR_COMPILERS:
            path.unlink()
        elif path.suffix == ".so" and path.stat().st_size > WORTH_STRIPPING and path.parent.suffix != ".libs":
            subprocess.run(["strip", "--strip-unneeded", path], check=True)
            load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
            subprocess.run([environment / "bin" / "python", "-c", load, path], check=True)


if __name__ == "__main__":
    slim(Path(sys.argv[1]))
