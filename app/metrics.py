"""Every metric of the service: name, labels and meaning. The reference documentation is generated from this."""

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
from functools import partial
from itertools import count
from pathlib import Path
from typing import Literal, NamedTuple

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, multiprocess, values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

Kind = Literal["counter", "gauge", "histogram"]


class Declared(NamedTuple):
    """A metric. The name of a counter ends with `_total` in reports."""

    kind: Kind
    name: str
    told: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_BRIEF_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0)
_ROWS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
_BATCH = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_counter, _gauge, _histogram = partial(Declared, "counter"), partial(Declared, "gauge"), partial(Declared, "histogram")

REQUESTS = _counter("bochner_requests", "Requests that are over.", ("method", "route", "status"))
REQUEST_SECONDS = _histogram(
    "bochner_request_seconds",
    "Seconds from the head of a request to the end of its answer. Events of jobs last as long as somebody listens.",
    ("method", "route"),
    _SECONDS,
)
REQUEST_ROWS = _histogram(
    "bochner_request_rows", "Rows of a request that has some: posted, or of datasets that it names.", ("route",), _ROWS
)
REQUEST_BYTES = _counter("bochner_request_bytes", "Bytes of bodies that came.", ("method", "route"))
RESPONSE_BYTES = _counter("bochner_response_bytes", "Bytes of bodies that were sent.", ("method", "route"))
UNREAD = _counter(
    "bochner_unread_requests",
    "Requests refused before they could be read, as heads too long or too slow: no other metric has them.",
    ("problem",),
)
IN_FLIGHT = _gauge("bochner_requests_in_flight", "Requests in work or waiting.")
CONNECTIONS = _gauge("bochner_connections", "Connections of clients.")
PLACES_TAKEN = _gauge("bochner_places_taken", "Places that are taken.", ("of",))
PLACES = _gauge("bochner_places", "Places there are; beyond them, 503.", ("of",))
WAITING = _gauge("bochner_waiting", "Requests that wait for a thread.", ("waits_for",))
WAITED_SECONDS = _histogram(
    "bochner_waited_seconds", "Seconds that work has waited for a thread.", ("waits_for",), _BRIEF_SECONDS
)
BATCH_REQUESTS = _histogram("bochner_batch_requests", "Small requests for one map, computed together.", buckets=_BATCH)
BATCH_ROWS = _histogram("bochner_batch_rows", "Rows of small requests, computed together.", buckets=_ROWS)
BODIES_BYTES = _gauge("bochner_bodies_bytes", "Memory of the bodies of requests in work.")
ANSWERS_BYTES = _gauge("bochner_answers_bytes", "Memory of long answers that are being sent.")
CACHE_HITS = _counter("bochner_cache_hits", "Uses of a map, dataset or index that was ready in memory.")
CACHE_MISSES = _counter("bochner_cache_misses", "Loads of a map, dataset or index from the store.")
CACHE_BYTES = _gauge("bochner_cache_bytes", "Memory of maps, datasets and indexes kept ready.")
CACHE_LIMIT = _gauge("bochner_cache_limit_bytes", "Memory that maps, datasets and indexes kept ready may take.")
CACHE_ENTRIES = _gauge("bochner_cache_entries", "Maps, datasets and indexes kept ready.")
STORE_SECONDS = _histogram(
    "bochner_store_seconds",
    "Seconds of a call to the store, with all that is tried again.",
    ("command", "outcome"),
    _BRIEF_SECONDS,
)
DAMAGED = _counter("bochner_store_damaged", "Answers that told of something in the store that is damaged.")
STARTS = _counter("bochner_process_starts", "Processes started; more than there should be have died.", ("role",))
PROCESSES = _gauge("bochner_processes", "Processes that live.", ("role",))
CPU = _counter(
    "bochner_process_cpu_seconds",
    "Processor time of all processes, dead ones too. That of a job is added when it has ended.",
    ("role",),
)
RESIDENT = _gauge("bochner_process_resident_bytes", "Resident memory of all processes.", ("role",))
OPEN_FILES = _gauge("bochner_process_open_files", "Files and sockets that all processes have open.", ("role",))
COUNTED = tuple(one for one in [*globals().values()] if isinstance(one, Declared))
"""Metrics that the processes of one service count; their sum is reported."""

READY = _gauge("bochner_ready", "1 if the process that was asked is ready, else 0.", ("reason",))
LAST_BACKUP = _gauge("bochner_last_backup_timestamp_seconds", "When the last `bochner backup` ended, since 1970.")
STORE_UP = _gauge("bochner_store_up", "1 if the store has answered just now, else 0.")
STORE_BYTES = _gauge("bochner_store_bytes", "Bytes of arrays, specs and jobs that the store keeps.")
STORE_NAMES = _gauge("bochner_store_names", "Maps, datasets and jobs that the store keeps.")
STORE_BYTES_LIMIT = _gauge("bochner_store_limit_bytes", "Bytes that it may keep; beyond them, 507.")
STORE_NAMES_LIMIT = _gauge("bochner_store_limit_names", "Names that it may keep; beyond them, 507.")
STORE_MEMORY = _gauge("bochner_store_memory_bytes", "Memory of the store's server.")
STORE_WARNINGS = _gauge("bochner_store_warnings", "Warnings of `/health/ready`, as of a disk that is full.")
JOBS = _gauge("bochner_jobs", "Jobs that wait or run.", ("state",))
JOBS_ENDED = _counter("bochner_jobs_ended", "Jobs that have ended.", ("kind", "state"))
JOB_SECONDS_RUN = _histogram("bochner_job_seconds", "Seconds from the first start of a job to its end.", ("kind",))
JOB_SECONDS_WAITED = _histogram("bochner_job_wait_seconds", "Seconds that a job has waited for a worker.", ("kind",))
START = _gauge("bochner_start_time_seconds", "Time when the service was started, in seconds since 1970.")
INFO = _gauge("bochner_info", "1, with versions.", ("version", "numpy", "scipy", "python"))
ASKED = tuple(one for one in [*globals().values()] if isinstance(one, Declared) and one not in COUNTED)
"""Metrics that are read at each report, most from the store: all services on one store report the same of it."""


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
_BEAT_SECONDS = 1.0

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


class Slot(Collector):
    """Numbered place of this process in the metrics directory. Metrics created afterwards count in its files.

    A process has one slot, and keeps it until it ends.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(exist_ok=True)  # somebody may clear /dev/shm
        service = directory / _SERVICE
        self._began = service.stat().st_mtime if service.exists() else time.time()
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
        self._directory.mkdir(exist_ok=True)
        for path in self._directory.glob("[0-9]*.lock"):
            if path.stem != str(self._number):
                with suppress(_Taken), _lock(path):  # no process holds it: remove its gauges
                    multiprocess.mark_process_dead(path.stem, str(self._directory))
        multiprocess.MultiProcessCollector(registry, str(self._directory))
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Yield the time when the service was started."""
        yield GaugeMetricFamily(START.name, START.told, self._began)


def _parents() -> Iterator[Path]:
    """Yield the folders in which the directory of the metrics can be made, the best first."""
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
        self._requests = counter(REQUESTS)
        self._seconds = histogram(REQUEST_SECONDS)
        self._rows = histogram(REQUEST_ROWS)
        self._came, self._sent = counter(REQUEST_BYTES), counter(RESPONSE_BYTES)
        self._unread = counter(UNREAD)
        self._waited = histogram(WAITED_SECONDS)
        self._batch_requests, self._batch_rows = histogram(BATCH_REQUESTS), histogram(BATCH_ROWS)
        self._hits, self._misses = counter(CACHE_HITS), counter(CACHE_MISSES)
        self._store = histogram(STORE_SECONDS)
        self.damaged = counter(DAMAGED)
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
        role: `server` or `worker`.
        sample: sets further gauges of the process.
    """

    def __init__(self, slot: Slot, role: str, sample: Callable[[], None] = lambda: None) -> None:
        self._slot = slot
        counter(STARTS).labels(role).inc()
        gauge(PROCESSES).labels(role).set(1)
        self._cpu = counter(CPU).labels(role)
        self._resident = gauge(RESIDENT).labels(role)
        self._open_files = gauge(OPEN_FILES).labels(role)
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
            time.sleep(_BEAT_SECONDS)
