"""How full a process is at a moment: set once a second from what its parts know anyway, at no cost to requests."""

from app.api.admission import Admission
from app.metrics import declared
from app.metrics.meters import Meters, gauge
from app.services.cache import Cache


class Gauges:
    """The gauges of a process that serves requests."""

    def __init__(self, meters: Meters, admission: Admission, cache: Cache) -> None:
        self._meters, self._admission, self._cache = meters, admission, cache
        self._in_flight, self._connections = gauge(declared.IN_FLIGHT), gauge(declared.CONNECTIONS)
        self._taken, self._places = gauge(declared.PLACES_TAKEN), gauge(declared.PLACES)
        self._waiting = gauge(declared.WAITING)
        self._bodies, self._answers = gauge(declared.BODIES_BYTES), gauge(declared.ANSWERS_BYTES)
        self._cache_bytes, self._cache_entries = gauge(declared.CACHE_BYTES), gauge(declared.CACHE_ENTRIES)
        gauge(declared.CACHE_LIMIT).set(cache.limit)

    def sample(self) -> None:
        """Set them."""
        self._in_flight.set(self._meters.in_flight)
        self._connections.set(self._meters.connections)
        for of, places in self._admission.places.items():
            self._taken.labels(of).set(places.taken)
            self._places.labels(of).set(places.most)
        for waits_for, waiting in self._admission.waiting.items():
            self._waiting.labels(waits_for).set(waiting)
        self._bodies.set(self._admission.senders.taken)
        self._answers.set(self._admission.readers.taken)
        self._cache_bytes.set(self._cache.nbytes)
        self._cache_entries.set(self._cache.entries)
