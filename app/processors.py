"""How many processors this process may use."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def available(root: Path = Path("/")) -> int:
    """Processors that the process may run on, or fewer where its control groups grant it less time than that.

    A part of a processor counts as one. Both versions of Linux's control groups are asked, from the process's own group
    up; elsewhere there are none. `root` is where the system's files are.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *(math.ceil(quota) for quota in _quotas(root))]))


def _quotas(root: Path) -> Iterator[float]:
    """The quotas of the groups of this process, in processors."""
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            number, controllers, group = line.split(":", 2)
            # In a container, its own group stands at the top, whatever name the host has for it.
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
                    if float(quota) > 0:  # "max", or −1, is none
                        yield float(quota) / float(period)
