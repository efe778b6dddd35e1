"""The application, put together."""

import atexit
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from functools import cache, partial
from importlib.metadata import version

from fastapi import Depends, FastAPI
from starlette.middleware.gzip import GZipMiddleware

from app.api import documents, problems
from app.api.access import Access, Authorization, without_keys
from app.api.admission import Admission
from app.api.codings import UNCOMPRESSED
from app.api.content import Content
from app.api.context import Context, refuse_unclear_parameters
from app.api.cross_origin import CrossOrigin
from app.api.delivery import Delivery
from app.api.direct import Direct
from app.api.etags import NotModified, not_modified
from app.api.gauges import Gauges
from app.api.hosts import Hosts
from app.api.interest import Interest
from app.api.known_keys import KnownKeys
from app.api.observation import Observation, shortened
from app.api.rates import Rates
from app.api.roles import permitted
from app.api.routes import (
    advice,
    datasets,
    diagnostics,
    docs_page,
    duplicates,
    exports,
    indexes,
    inference,
    jobs,
    keys,
    maps,
    metrics,
    page,
    service,
    vectors,
)
from app.api.shutdown import Shutdown
from app.api.together import Asked, Together
from app.logs import ACCESS
from app.metrics.meters import Heartbeat, Meters, Slot, shared
from app.settings import Settings, counters, share_counters
from app.spans import begun
from app.wiring import wire


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service over the store at `settings.redis_url`; settings come from the environment if not given."""
    settings = settings or Settings()
    context = _context(settings)
    app = FastAPI(
        title="Bochner",
        summary="Kernel features and hash codes from frozen feature maps",
        version=version("bochner"),
        lifespan=partial(_running, context),
        redirect_slashes=False,
        # Those of the framework load scripts of another host, and write the document anew for each request;
        # app/api/routes/docs_page.py has ours.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(permitted), Depends(refuse_unclear_parameters)],
        responses=documents.PROBLEM_ANSWER,
        exception_handlers=problems.HANDLERS | {NotModified: not_modified},
    )
    # The innermost first: what is added later sees a request earlier, and its answer later.
    app.add_middleware(Content, readers=context.admission.readers)
    app.add_middleware(
        GZipMiddleware,
        minimum_size=1024,
        compresslevel=1,  # answers are made faster than a higher level compresses them
        exclude_content_types=UNCOMPRESSED,
    )
    app.add_middleware(Authorization, access=context.access)
    app.add_middleware(
        Delivery,
        client_timeout=settings.client_timeout,
        shutdown=context.shutdown,
        senders=context.admission.senders,
    )
    if settings.origins:
        app.add_middleware(CrossOrigin, origins=settings.origins)
    app.add_middleware(Observation, meters=context.meters, spans=context.spans)
    app.router.routes.append(Direct(context, {"transform": vectors.transform, "codes": vectors.codes}))
    of_maps = (maps, exports, vectors, inference, datasets, indexes, diagnostics, advice, duplicates)
    for part in (*of_maps, jobs, keys, service, metrics, docs_page, page):
        app.include_router(part.router)
    app.openapi = partial(documents.document, app, settings.keys_required)  # type: ignore[method-assign]
    app.state.context = context
    return app


def _context(settings: Settings) -> Context:
    """The services, and what decides who is let in and when: everything that routes ask for as their `Context`."""
    meters, spans = _meters(), begun(settings.traces)

    def heard(command: str, seconds: float, failed: bool) -> None:
        meters.asked_store(command, seconds, failed)
        spans.asked_store(command, seconds, failed)

    wired = wire(settings, heard, meters.used)
    admission = Admission(settings, meters.waited, spans.part)
    access = Access(
        settings.keys_required,
        Hosts(settings.hosts, near=not settings.allowed_hosts),
        KnownKeys(wired.keys_changed),
        Rates(wired.take_requests),
    )
    return Context(
        **(vars(wired) | {"find_map": Asked(wired.find_map)}),
        admission=admission,
        interest=Interest(),
        together=Together(admission, meters.batch),
        shutdown=Shutdown(),
        access=access,
        meters=meters,
        spans=spans,
        heartbeat=Heartbeat(meters.slot, "server", Gauges(meters, admission, wired.cache).sample),
    )


@cache
def _meters() -> Meters:
    """The counters of this process: in a directory of its own, unless it is one of several of a service."""
    directory = counters()
    if directory is None:
        own = ExitStack()
        directory = own.enter_context(shared())
        atexit.register(own.close)
        share_counters(directory)
    return Meters(Slot(directory))


@asynccontextmanager
async def _running(context: Context, _: FastAPI) -> AsyncIterator[dict[str, Settings | Meters]]:
    """The life of a process: start the threads beside the requests, and close the services after the last request."""
    context.shutdown.notice()
    for change in (without_keys, shortened):
        logging.getLogger(ACCESS).addFilter(change)
    # On a thread of its own: the process answers at once, and is ready when everything is compiled.
    threading.Thread(target=context.status.warm_up, name="warm-up", daemon=True).start()
    threading.Thread(target=context.keep_pins_tidy, name="pins", daemon=True).start()
    context.heartbeat.start()
    threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()
    yield {"settings": context.settings, "meters": context.meters}  # for the connections
    await context.close()
    context.spans.close()


def _end_with_parent() -> None:
    """Shut down when the process that started this one has gone. Alone it would hold its port for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
