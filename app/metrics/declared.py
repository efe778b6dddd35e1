"""Every metric of the service: name, labels and meaning. The reference documentation is generated from this."""

from functools import partial
from typing import Literal, NamedTuple

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
INFO = _gauge("bochner_info", "1, with versions.", ("version", "numpy", "scipy", "python"))
ASKED = tuple(one for one in [*globals().values()] if isinstance(one, Declared) and one not in COUNTED)
"""Metrics that are read at each report, most from the store: all services on one store report the same of it."""
