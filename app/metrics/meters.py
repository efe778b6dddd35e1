"""What a process counts, and how it is told."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from app.metrics import declared
from app.metrics.declared import Declared
from app.metrics.slots import LIVE_SUM, Slot

_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE"})


def counter(of: Declared) -> Counter:
    """A counter as it was declared. It is told by the slot of the process, and in no registry."""
    return Counter(of.name, of.told, of.labels, registry=None)


def gauge(of: Declared) -> Gauge:
    """A gauge likewise."""
    return Gauge(of.name, of.told, of.labels, registry=None, multiprocess_mode=LIVE_SUM)


def histogram(of: Declared) -> Histogram:
    """A histogram likewise."""
    return Histogram(of.name, of.told, of.labels, registry=None, buckets=of.buckets)


class Meters:
    """The counters of a process that serves requests, in its slot. A process has one."""

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
        # Looking a series up by its labels takes as long as counting in it.
        self._series: dict[tuple[str, ...], Any] = {}
        self.in_flight = 0
        """Requests in work."""
        self.connections = 0
        """Connections of clients."""

    def request(self, method: str, route: str, status: int, seconds: float, rows: int, came: int, sent: int) -> None:
        """Count a request that is over."""
        method = method if method in _METHODS else "other"
        self._of(self._requests, method, route, str(status)).inc()
        self._of(self._seconds, method, route).observe(seconds)
        if rows:
            self._of(self._rows, route).observe(rows)
        if came:
            self._of(self._came, method, route).inc(came)
        if sent:
            self._of(self._sent, method, route).inc(sent)

    def unread(self, problem: str) -> None:
        """Count a request that was refused before it could be read."""
        self._of(self._unread, problem).inc()

    def waited(self, waits_for: str, seconds: float) -> None:
        """Count the time that work has waited for a thread."""
        self._of(self._waited, waits_for).observe(seconds)

    def batch(self, requests: int, rows: int) -> None:
        """Count small requests that are computed together."""
        self._batch_requests.observe(requests)
        self._batch_rows.observe(rows)

    def used(self, was_ready: bool) -> None:
        """Count a use of what may be ready in memory."""
        (self._hits if was_ready else self._misses).inc()

    def asked_store(self, command: str, seconds: float, failed: bool) -> None:
        """Count a call to the store."""
        self._of(self._store, command, "error" if failed else "ok").observe(seconds)

    def told(self, accept: str, asked: Collector) -> tuple[bytes, str]:
        """All that the processes of the service have counted, and what `asked` collects besides; and its media type."""
        registry = CollectorRegistry()
        self.slot.register(registry)
        registry.register(asked)
        encode, media_type = choose_encoder(accept)
        return encode(registry), media_type

    def _of(self, metric: Any, *labels: str) -> Any:
        series = self._series.get((metric, *labels))
        if series is None:
            series = self._series[(metric, *labels)] = metric.labels(*labels)
        return series
