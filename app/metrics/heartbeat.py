"""Once a second each process writes down that it lives, and how much memory and time it takes."""

import resource
import threading
import time
from collections.abc import Callable

import psutil

from app.metrics import declared
from app.metrics.meters import counter, gauge
from app.metrics.slots import Slot

_SECONDS = 1.0


class Heartbeat:
    """Tells of this process.

    Args:
        slot: that of the process.
        role: what the process is, as in `declared.LABELS`.
        sample: sets gauges of the process besides.
    """

    def __init__(self, slot: Slot, role: str, sample: Callable[[], None] = lambda: None) -> None:
        self._slot = slot
        counter(declared.STARTS).labels(role).inc()
        gauge(declared.PROCESSES).labels(role).set(1)
        self._cpu = counter(declared.CPU).labels(role)
        self._resident = gauge(declared.RESIDENT).labels(role)
        self._open_files = gauge(declared.OPEN_FILES).labels(role)
        self._sample = sample
        self._process, self._told = psutil.Process(), 0.0
        self._beating = threading.Lock()

    def start(self) -> None:
        """Beat until the process ends."""
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()

    def beat(self) -> None:
        """Tell how things are now."""
        with self._beating:  # else two threads would both add what is new
            used = _cpu_seconds()
            self._cpu.inc(max(0.0, used - self._told))
            self._told = used
            self._resident.set(self._process.memory_info().rss)
            self._open_files.set(self._process.num_fds())
            self._sample()

    def _run(self) -> None:
        while True:
            self.beat()
            time.sleep(_SECONDS)


def _cpu_seconds() -> float:
    """Processor time of this process, and of its children that have ended: the processes of jobs."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
