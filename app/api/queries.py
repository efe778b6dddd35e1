"""Query parameters: those that all lists have, and the refusal of those that no route knows."""

from collections import Counter
from typing import Annotated

from fastapi import Query, Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

Limit = Annotated[int, Query(ge=1, le=1000)]
Cursor = Annotated[str | None, Query(description="`next` of the page before.", max_length=128)]
Prefix = Annotated[str, Query(description="Start of the names wanted.", max_length=128)]


async def refuse_unclear_parameters(request: Request) -> None:
    """Refuse query parameters that are unknown or come twice. The framework would ignore them."""
    route = request.scope["route"]
    if not isinstance(route, APIRoute):
        return
    known = {
        field.alias for field in get_flat_params(route.dependant) if field.field_info.__class__.__name__ == "Query"
    }
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        takes = ", ".join(sorted(known)) or "none"
        detail = f"not known here; this address takes {takes}"
        raise RequestValidationError([{"loc": ("query", unknown[0][:80]), "msg": detail, "type": "unknown"}])
    for name, times in Counter(name for name, _ in request.query_params.multi_items()).items():
        if times > 1:
            detail = f"came {times} times; once is wanted"
            raise RequestValidationError([{"loc": ("query", name), "msg": detail, "type": "repeated"}])
