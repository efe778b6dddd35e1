"""Request context for routes, and parameters that several routes share."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated, cast

from fastapi import Depends, Path, Query, Request, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from app import metrics
from app.api.access import Access, Hosts, KnownKeys, Rates, permit
from app.api.admission import Admission, Asked, Together
from app.api.interest import Interest, Shutdown
from app.container import Container
from app.core.model import NAME_PATTERN
from app.metrics import Heartbeat, Meters, gauge
from app.request_context import start_spans
from app.services.cache import Cache
from app.services.status import Readiness
from app.settings import Settings

# Seconds to wait for the store before the readiness that was seen last is told: probes wait for some 4 s.
_LOOK_SECONDS = 2.0


class Context(Container):
    """Services of one process, and what only its requests need."""

    def __init__(self, settings: Settings, meters: Meters) -> None:
        self.meters, self.spans = meters, start_spans(settings.traces)
        super().__init__(settings, self._hear_store, meters.count_use)
        self.find_map = Asked(self.find_map)
        self.admission = Admission(settings, meters.count_wait, self.spans.part)
        self.access = Access(
            settings.keys_required,
            Hosts(settings.hosts, near=not settings.allowed_hosts),
            KnownKeys(self.keys_changed, self.note_use),
            Rates(self.take_requests),
        )
        self.interest, self.shutdown = Interest(), Shutdown()
        self.together = Together(self.admission, meters.batch)
        self._look = Asked(lambda _: self.admission.ask(self.status.readiness), one_at_a_time=True)
        self.heartbeat = Heartbeat(meters.slot, "server", Gauges(meters, self.admission, self.cache).sample)

    async def readiness(self) -> Readiness:
        """Return whether the service is ready; what was seen last if the store takes long to answer."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._look("")), _LOOK_SECONDS)
        except TimeoutError:
            return self.status.seen

    def _hear_store(self, command: str, seconds: float, failed: bool) -> None:
        self.meters.asked_store(command, seconds, failed)
        self.spans.asked_store(command, seconds, failed)


class Gauges:
    """Gauges of a process that serves requests."""

    def __init__(self, meters: Meters, admission: Admission, cache: Cache) -> None:
        self._meters, self._admission, self._cache = meters, admission, cache
        self._in_flight, self._connections = gauge(metrics.IN_FLIGHT), gauge(metrics.CONNECTIONS)
        self._taken, self._places = gauge(metrics.PLACES_TAKEN), gauge(metrics.PLACES)
        self._waiting = gauge(metrics.WAITING)
        self._bodies, self._answers = gauge(metrics.BODIES_BYTES), gauge(metrics.ANSWERS_BYTES)
        self._cache_bytes, self._cache_entries = gauge(metrics.CACHE_BYTES), gauge(metrics.CACHE_ENTRIES)
        gauge(metrics.CACHE_LIMIT).set(cache.limit)

    def sample(self) -> None:
        """Set all gauges to their current values."""
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


async def _context(request: Request) -> Context:
    return cast(Context, request.app.state.context)


ContextOf = Annotated[Context, Depends(_context)]


async def _inside(context: ContextOf) -> AsyncIterator[Context]:
    with context.admission.inside:
        yield context


async def _listening(context: ContextOf) -> AsyncIterator[Context]:
    with context.admission.listening:
        yield context


Admitted = Annotated[Context, Depends(_inside)]
"""Context of a request that counts in `Admission` until its answer is sent."""
Listening = Annotated[Context, Depends(_listening)]
"""Context of a client that watches a job, and counts as a watching client until it disconnects."""
MapName = Annotated[str, Path(pattern=NAME_PATTERN, description="Name of a map.")]
DatasetName = Annotated[str, Path(pattern=NAME_PATTERN, description="Name of a dataset.")]
AliasName = Annotated[str, Path(pattern=NAME_PATTERN, description="Name of an alias.")]
IndexName = Annotated[str, Path(pattern=NAME_PATTERN, description="Name of an index.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most; `next` leads to more.")]
Cursor = Annotated[str | None, Query(description="`next` of the page before.", max_length=128)]
# A year. To keep something longer, leave `ttl` out.
_LONGEST_TTL = 366 * 24 * 3600
_USED = "Seconds after its last use after which it is deleted by itself; without it, it stays."
_KEPT = "Seconds after which it is deleted by itself; without it, it stays."
MapTtl = Annotated[int | None, Query(ge=1, le=_LONGEST_TTL, description=_USED)]
DatasetTtl = Annotated[int | None, Query(ge=1, le=_LONGEST_TTL, description=_KEPT)]
Prefix = Annotated[str, Query(description="Start of the names wanted.", max_length=128)]


async def check_request(request: Request) -> None:
    """Refuse a request whose role does not include its operation, before its body is read.

    Also refuse query parameters that are unknown or occur twice. The framework would ignore them.
    """
    route = request.scope["route"]
    if isinstance(route, APIRoute):
        permit(route.operation_id or route.name, request.scope["state"])
        if request.scope["query_string"]:
            _refuse_unclear_parameters(request, route)


def _refuse_unclear_parameters(request: Request, route: APIRoute) -> None:
    known = {field.alias for field in get_flat_params(route.dependant) if isinstance(field.field_info, params.Query)}
    takes = ", ".join(sorted(known)) or "none"
    unknown = sorted(set(request.query_params) - known)
    faults = [(name[:80], f"not known here; this address takes {takes}") for name in unknown]
    came = Counter(name for name, _ in request.query_params.multi_items())
    faults += [(name, f"expected once, got {times} times") for name, times in came.items() if times > 1]
    if faults:
        name, detail = faults[0]
        raise RequestValidationError([{"loc": ("query", name), "msg": detail}])
