"""The application: routes, middleware and services put together."""

import atexit
import logging
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, nullcontext
from functools import cache, partial
from importlib.metadata import version

from fastapi import Depends, FastAPI, Request, Response
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from app.api import documents, problems, schemas
from app.api.access import Authorization, CrossOrigin, permit
from app.api.bodies import UNCOMPRESSED
from app.api.context import Context, check_request
from app.api.etags import NotModified, not_modified_response
from app.api.middleware import Content, Delivery, Observation, shorten_addresses
from app.api.routes import (
    aliases,
    datasets,
    diagnostics,
    indexes,
    inference,
    jobs,
    keys,
    maps,
    page,
    service,
    vectors,
)
from app.core.model import NAME_PATTERN
from app.logs import ACCESS
from app.metrics import Meters, Slot, share_directory
from app.own_process import ended_soon_after
from app.services.warm_up import get_ready
from app.settings import Settings, counters, share_counters

Call = Callable[[str, Request, Context], Awaitable[Response]]


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the service that uses the store at `settings.redis_url`; settings default to those of the environment."""
    settings = settings or Settings()
    context = Context(settings, _meters())
    app = FastAPI(
        title="Bochner",
        summary="Kernel features and hash codes from frozen feature maps",
        version=version("bochner"),
        lifespan=partial(_running, context),
        redirect_slashes=False,
        # The framework's pages load scripts from another host, and write the document again for each request;
        # app/api/routes/page.py replaces them.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(check_request)],
        responses=schemas.PROBLEM_ANSWER,
        exception_handlers=problems.HANDLERS | {NotModified: not_modified_response},
    )
    # Innermost first: middleware added later sees a request earlier, and its answer later.
    app.add_middleware(Content, readers=context.admission.readers)
    # At a higher level, compression would be slower than computing the answers.
    app.add_middleware(GZipMiddleware, minimum_size=1024, compresslevel=1, exclude_content_types=UNCOMPRESSED)
    app.add_middleware(Authorization, access=context.access)
    senders = context.admission.senders
    app.add_middleware(Delivery, client_timeout=settings.client_timeout, shutdown=context.shutdown, senders=senders)
    if settings.origins:
        app.add_middleware(CrossOrigin, origins=settings.origins)
    app.add_middleware(Observation, meters=context.meters, spans=context.spans, settings=settings)
    app.router.routes.append(Direct(context, {"transform": vectors.transform, "codes": vectors.codes}))
    # The framework tries routes one after another, so that those for short answers come first.
    for part in (service, maps, indexes, vectors, inference, datasets, diagnostics, jobs, aliases, keys, page):
        app.include_router(part.router)
    app.openapi = partial(documents.document, app, settings.keys_required)  # type: ignore[method-assign]
    app.state.context = context
    return app


@cache
def _meters() -> Meters:
    """Return the metrics of this process; makes their directory unless the service's processes share one already."""
    directory = counters()
    if directory is None:
        own = ExitStack()
        directory = own.enter_context(share_directory())
        atexit.register(own.close)
        share_counters(directory)
    return Meters(Slot(directory))


@asynccontextmanager
async def _running(context: Context, _: FastAPI) -> AsyncIterator[dict[str, Settings | Meters]]:
    """Run a process of the service: start its background threads, and close the services after the last request."""
    context.shutdown.notice()
    logging.getLogger(ACCESS).addFilter(shorten_addresses)
    # In a separate thread: the process accepts requests at once, and is ready when everything is compiled.
    threading.Thread(target=get_ready, name="warm-up", daemon=True).start()
    threading.Thread(target=context.status.watch, name="readiness", daemon=True).start()
    threading.Thread(target=context.keep_pins_tidy, name="pins", daemon=True).start()
    context.heartbeat.start()
    threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()
    yield {"settings": context.settings, "meters": context.meters}  # for the connections
    # One of several processes ends after this; a single one has yet to stop its store.
    with nullcontext() if multiprocessing.parent_process() is None else ended_soon_after():
        await context.close()
        context.spans.close()


def _end_with_parent() -> None:
    """Shut down when the parent process has ended. Otherwise this process would hold the port for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


class Direct(BaseRoute):
    """Route for `POST /v1/maps/{name}/{call}` requests without query parameters, which need no validation.

    It precedes the documented routes of the same calls, which handle all other requests.
    """

    def __init__(self, context: Context, calls: dict[str, Call]) -> None:
        self._context, self._calls = context, calls
        self._path = re.compile(f"/v1/maps/({NAME_PATTERN.strip('^$')})/({'|'.join(calls)})")

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a POST request that has no query and names a map and one of the calls."""
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
