"""Query parameters: those of all lists, and those that no route knows."""

from typing import Annotated

from fastapi import Query, Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

Limit = Annotated[int, Query(ge=1, le=1000)]
Cursor = Annotated[str | None, Query(description="`next` of the page before.", max_length=128)]
Prefix = Annotated[str, Query(description="Start of the names wanted.", max_length=128)]


async def refuse_unknown_parameters(request: Request) -> None:
    """Refuse a misspelt query parameter, which would otherwise be accepted and ignored."""
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
