"""Pages of other origins that may use the service (CORS): those that a setting names, and none by default."""

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.answer_headers import EXPOSED

_METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE")
# Seconds that a browser may remember what a page may do.
_REMEMBERED = 600


class CrossOrigin(CORSMiddleware):
    """Lets pages of these origins read answers. Requests of any other are answered as if there were no such thing.

    A page sends a key as any client does, in `Authorization`: cookies have no meaning here.
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=_METHODS,
            allow_headers=["*"],
            expose_headers=EXPOSED,
            max_age=_REMEMBERED,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what a browser asks first, or let the request through and tell whose pages may read the answer."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            wanted = headers.get("access-control-request-method", "GET")
            # Refusals are problem documents, which the application writes.
            if not self.is_allowed_origin(headers.get("origin", "")) or wanted not in _METHODS:
                await self.app(scope, receive, send)
                return
        await super().__call__(scope, receive, send)
