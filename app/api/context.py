"""Request context for routes, and parameters that several routes share."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Path, Query, Request, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from app.api.access import Access
from app.api.admission import Admission, Asked, Together
from app.api.interest import Interest, Shutdown
from app.core.model import NAME_PATTERN
from app.metrics import Heartbeat, Meters
from app.request_context import Spans
from app.services.status import Readiness
from app.wiring import Wired


@dataclass(frozen=True)
class Context(Wired):
    """Services of one process, and what only its requests need."""

    admission: Admission
    interest: Interest
    together: Together
    readiness: Asked[Readiness]
    shutdown: Shutdown
    access: Access
    meters: Meters
    spans: Spans
    heartbeat: Heartbeat


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


async def refuse_unclear_parameters(request: Request) -> None:
    """Refuse query parameters that are unknown or occur twice. The framework would ignore them."""
    route = request.scope["route"]
    if not isinstance(route, APIRoute):
        return
    known = {field.alias for field in get_flat_params(route.dependant) if isinstance(field.field_info, params.Query)}
    takes = ", ".join(sorted(known)) or "none"
    unknown = sorted(set(request.query_params) - known)
    faults = [(name[:80], f"not known here; this address takes {takes}") for name in unknown]
    came = Counter(name for name, _ in request.query_params.multi_items())
    faults += [(name, f"came {times} times; once is wanted") for name, times in came.items() if times > 1]
    if faults:
        name, detail = faults[0]
        raise RequestValidationError([{"loc": ("query", name), "msg": detail}])
