"""The application, put together."""

import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import Depends, FastAPI

from app.api import documents, problems
from app.api.admission import Admission
from app.api.context import Context
from app.api.middleware import HeadAsGet, RequestId
from app.api.queries import refuse_unclear_parameters
from app.api.routes import ROUTERS
from app.api.shutdown import Shutdown
from app.settings import Settings
from app.wiring import Wired, wire


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service over the store at `settings.redis_url`; settings come from the environment if not given."""
    settings = settings or Settings()
    wired = wire(settings)
    shutdown = Shutdown()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        shutdown.notice()
        # On a thread of its own: the process answers at once, and is ready when everything is compiled.
        threading.Thread(target=wired.status.warm_up, name="warm-up", daemon=True).start()
        threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()
        yield
        wired.close()

    app = FastAPI(
        title="Bochner",
        summary="Kernel features and hash codes from frozen feature maps",
        version=version("bochner"),
        lifespan=lifespan,
        redirect_slashes=False,
        # Those of the framework load scripts of another host; app/api/routes/docs_page.py has ours.
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(refuse_unclear_parameters)],
    )
    app.add_middleware(HeadAsGet)
    app.add_middleware(RequestId)
    for router in ROUTERS:
        app.include_router(router)
    problems.install(app)
    documents.install(app)
    app.state.context = _context(settings, wired, shutdown)
    return app


def _context(settings: Settings, wired: Wired, shutdown: Shutdown) -> Context:
    return Context(
        limits=wired.limits,
        every_limit=settings.limits,
        max_request_seconds=settings.max_request_seconds,
        max_wait_seconds=settings.max_wait_seconds,
        admission=Admission(settings.max_requests, settings.threads, settings.client_timeout),
        maps=wired.maps,
        datasets=wired.datasets,
        recommendations=wired.recommendations,
        measurements=wired.measurements,
        jobs=wired.jobs,
        status=wired.status,
        shutdown=shutdown,
    )


def _end_with_parent() -> None:
    """Shut down when the process that started this one has gone. Alone it would hold its port for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
