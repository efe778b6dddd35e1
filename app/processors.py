"""Number of processors that this process may use."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def available(root: Path = Path("/")) -> int:
    """Return the number of processors that the process may run on, or fewer if its control groups allow it less time.

    A fraction of a processor counts as one. Both versions of Linux control groups are read, from the process's own
    group up to the root; other systems have none. `root` is the root of the file system.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *(math.ceil(quota) for quota in _quotas(root))]))


def _quotas(root: Path) -> Iterator[float]:
    """Yield the quotas of the control groups of this process, in processors."""
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            number, controllers, group = line.split(":", 2)
            # Inside a container its own group is mounted at the top, under whatever path the host knows it.
            for path in (Path(group), *Path(group).parents):
                at = path.relative_to("/")
                with suppress(OSError, ValueError):
                    if number == "0":
                        quota, period = (root / "sys/fs/cgroup" / at / "cpu.max").read_text().split()
                    elif "cpu" in controllers.split(","):
                        folder = root / "sys/fs/cgroup/cpu" / at
                        quota, period = ((folder / f"cpu.cfs_{of}_us").read_text() for of in ("quota", "period"))
                    else:
                        continue
                    if float(quota) > 0:  # "max" and -1 mean no quota
                        yield float(quota) / float(period)
