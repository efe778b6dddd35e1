"""The short way to calls of vectors: matching all routes and solving dependencies takes longer than one row."""

import re
from collections.abc import Awaitable, Callable

from fastapi import Request, Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from app.api.context import Context
from app.api.roles import permit
from app.core.model import NAME_PATTERN

Call = Callable[[str, Request, Context], Awaitable[Response]]


class Direct(BaseRoute):
    """Calls `POST /v1/maps/{name}/{call}` for requests whose parameters need no check, as they have none.

    It stands before the routes of the same calls, which take all other requests and are those that are documented.
    """

    def __init__(self, context: Context, calls: dict[str, Call]) -> None:
        self._context, self._calls = context, calls
        self._path = re.compile(f"/v1/maps/({NAME_PATTERN.strip('^$')})/({'|'.join(calls)})")

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether a request has nothing but a name to check."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["query_string"]:
            return Match.NONE, {}
        found = self._path.fullmatch(scope["path"])
        return (Match.NONE, {}) if found is None else (Match.FULL, {"direct": found.groups()})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request. It counts in `Admission` until its answer is sent."""
        name, call = scope["direct"]
        permit(call, scope["state"])
        request = Request(scope, receive, send)
        with self._context.admission.inside:
            response = await self._calls[call](name, request, self._context)
            await response(scope, receive, send)
