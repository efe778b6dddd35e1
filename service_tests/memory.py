"""How much memory a process has held."""

import re
import resource
import sys
from pathlib import Path

KiB = 1 << 10


def peak() -> int:
    """Most memory that this process has held, in bytes.

    Linux begins its count for `getrusage` at what the parent held when it started this process; /proc does not.
    """
    if sys.platform == "linux":
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert found is not None
        return int(found[1]) * KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
