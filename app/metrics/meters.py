"""Counting in the processes of a service, and the report of their counts together.

Each process holds a slot: a number that no other living process holds, secured by a lock that the system releases when
the process ends. The process counts in memory-mapped files of its slot, those of the Prometheus client library, so that
its counts remain if it is killed. The next process that takes the slot continues where the dead one stopped: no counter
goes down, and there are only as many files as there were processes at the same time. Gauges of a slot that no process
holds are removed.

Once a second each process records that it lives, and how much memory and time it takes.
"""

import fcntl
import logging
import os
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Literal

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, multiprocess, values
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from app.metrics import declared
from app.metrics.declared import Declared

logger = logging.getLogger(__name__)

# Counting must never wait for a disk: a page of a file cannot be changed while it is written back.
_MEMORY = Path("/dev/shm")  # noqa: S108 - directories there are made by mkdtemp
_PREFIX = "bochner-metrics-"
_SERVICE = "service.lock"
_KIB = 1 << 10
# Sizes of the files of a process, allocated from the start: if a mapped page finds no room, the process dies.
_SIZES = {"counter": 256 * _KIB, "histogram": 1024 * _KIB, "gauge_livesum": 64 * _KIB}
# Containers have 64 MiB in /dev/shm.
_LEAST_FREE = 32 << 20
# Seconds that a service may take from making its directory to locking it.
_NEW_SECONDS = 60.0

# Time between two heartbeats.
_SECONDS = 1.0

LIVE_SUM: Literal["livesum"] = "livesum"
"""Mode of all gauges: the sum over the living processes."""


@contextmanager
def share_directory() -> Iterator[Path]:
    """Make a directory for the processes of a service, for the duration of a with block.

    Directories that killed services have left are removed.
    """
    for parent in {*_parents()}:
        for left in parent.glob(_PREFIX + "*"):
            _remove(left)
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=next(_parents())))
    with _lock(directory / _SERVICE):
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


class Slot:
    """The slot of this process in a directory. Metrics that are made after it count in its files.

    A process has one slot, and keeps it until it ends.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        for number in count():
            with suppress(_Taken):
                self._held = ExitStack()
                self._held.enter_context(_lock(directory / f"{number}.lock"))
                break
        self._number = number
        multiprocess.mark_process_dead(number, str(directory))
        for kind, size in _SIZES.items():
            path = directory / f"{kind}_{number}.db"
            if not path.exists():
                new = path.with_suffix(".new")  # other processes may read it at any moment, and cannot read half a file
                new.write_bytes(bytes(size))
                new.rename(path)
        values.ValueClass = values.MultiProcessValue(lambda: number)

    def register(self, registry: CollectorRegistry) -> None:
        """Make a registry collect what all processes have counted."""
        for path in self._directory.glob("[0-9]*.lock"):
            if path.stem != str(self._number):
                with suppress(_Taken), _lock(path):  # no process holds it: remove its gauges
                    multiprocess.mark_process_dead(path.stem, str(self._directory))
        multiprocess.MultiProcessCollector(registry, str(self._directory))


def _parents() -> Iterator[Path]:
    """Yield the places where a directory may be, the best first."""
    if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _LEAST_FREE:
        yield _MEMORY
    yield Path(tempfile.gettempdir())


def _remove(left: Path) -> None:
    with suppress(OSError, _Taken):  # of another user, or in use
        if time.time() - left.stat().st_mtime >= _NEW_SECONDS:
            with _lock(left / _SERVICE):
                shutil.rmtree(left, ignore_errors=True)


class _Taken(Exception):
    """Another process has the lock."""


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Lock a file for the duration of a with block; raise _Taken if another process has locked it.

    Processes that begin as copies of this one, as those of jobs do, do not inherit the lock, and their end does not
    release it.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            raise _Taken(path) from error
        yield
    finally:
        os.close(file)


_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE"})


def counter(of: Declared) -> Counter:
    """Make a declared counter. The slot of the process reports it; it is in no registry."""
    return Counter(of.name, of.told, of.labels, registry=None)


def gauge(of: Declared) -> Gauge:
    """Make a declared gauge, which the slot of the process reports."""
    return Gauge(of.name, of.told, of.labels, registry=None, multiprocess_mode=LIVE_SUM)


def histogram(of: Declared) -> Histogram:
    """Make a declared histogram, which the slot of the process reports."""
    return Histogram(of.name, of.told, of.labels, registry=None, buckets=of.buckets)


class Meters:
    """The metrics of a process that serves requests, in its slot. A process has one instance."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self._requests = counter(declared.REQUESTS)
        self._seconds = histogram(declared.REQUEST_SECONDS)
        self._rows = histogram(declared.REQUEST_ROWS)
        self._came, self._sent = counter(declared.REQUEST_BYTES), counter(declared.RESPONSE_BYTES)
        self._unread = counter(declared.UNREAD)
        self._waited = histogram(declared.WAITED_SECONDS)
        self._batch_requests, self._batch_rows = histogram(declared.BATCH_REQUESTS), histogram(declared.BATCH_ROWS)
        self._hits, self._misses = counter(declared.CACHE_HITS), counter(declared.CACHE_MISSES)
        self._store = histogram(declared.STORE_SECONDS)
        self.damaged = counter(declared.DAMAGED)
        self.in_flight = 0
        """Number of requests that have begun and not ended."""
        self.connections = 0
        """Number of open connections of clients."""

    def request(self, method: str, route: str, status: int, seconds: float, rows: int, came: int, sent: int) -> None:
        """Count a request that has ended."""
        method = method if method in _METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
        if rows:
            self._rows.labels(route).observe(rows)
        if came:
            self._came.labels(method, route).inc(came)
        if sent:
            self._sent.labels(method, route).inc(sent)

    def unread(self, problem: str) -> None:
        """Count a request that was refused before it could be read."""
        self._unread.labels(problem).inc()

    def count_wait(self, waits_for: str, seconds: float) -> None:
        """Count the time that work has waited for a thread."""
        self._waited.labels(waits_for).observe(seconds)

    def batch(self, requests: int, rows: int) -> None:
        """Count a batch of small requests that are computed together."""
        self._batch_requests.observe(requests)
        self._batch_rows.observe(rows)

    def count_use(self, was_ready: bool) -> None:
        """Count a use of a map, dataset or index: a cache hit if it was ready in memory, else a miss."""
        (self._hits if was_ready else self._misses).inc()

    def asked_store(self, command: str, seconds: float, failed: bool) -> None:
        """Count a call to the store."""
        self._store.labels(command, "error" if failed else "ok").observe(seconds)

    def render(self, accept: str, asked: Collector) -> tuple[bytes, str]:
        """Return the counts of all processes of the service with what `asked` collects, and the media type."""
        registry = CollectorRegistry()
        self.slot.register(registry)
        registry.register(asked)
        encode, media_type = choose_encoder(accept)
        return encode(registry), media_type


class Heartbeat:
    """Reports once a second that this process lives, and its use of processor, memory and files.

    Args:
        slot: that of the process.
        role: `server` or `worker`, see `declared.LABELS`.
        sample: sets further gauges of the process.
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
        """Start a thread that beats until the process ends."""
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()

    def beat(self) -> None:
        """Update the processor time and the gauges of this process."""
        with self._beating:  # else two threads would both add the same processor time
            # Includes children that have ended, which are the processes of jobs.
            times = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
            used = sum(one.ru_utime + one.ru_stime for one in times)
            self._cpu.inc(max(0.0, used - self._told))
            self._told = used
            self._resident.set(self._process.memory_info().rss)
            self._open_files.set(self._process.num_fds())
            self._sample()

    def _run(self) -> None:
        while True:
            try:
                self.beat()
            except Exception:  # one failure must not end the reports
                logger.exception("the process could not tell how it is")
            time.sleep(_SECONDS)
