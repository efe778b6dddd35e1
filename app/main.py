"""The application: wiring only."""

import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import NamedTuple

from fastapi import Depends, FastAPI

from app.api import documents, problems
from app.api.admission import Admission
from app.api.context import Context
from app.api.middleware import HeadAsGet, RequestId
from app.api.queries import refuse_unclear_parameters
from app.api.routes import ROUTERS
from app.api.shutdown import Shutdown
from app.jobs.handlers import Handlers
from app.jobs.job_limits import JobLimits
from app.jobs.jobs import Jobs
from app.jobs.worker import run_jobs
from app.services import building, run_or_submit
from app.services.cache import Cache
from app.services.datasets import Datasets
from app.services.diagnostics import Diagnostics
from app.services.hashing import Hashing
from app.services.limits import Limits
from app.services.maps import Maps
from app.services.recommendations import Recommendations
from app.services.run_or_submit import Measuring
from app.services.status import Status
from app.services.vectors import Vectors
from app.services.warm_up import warm_up
from app.settings import Settings
from app.store.connection import check_writable, connect, keeping
from app.store.datasets import DatasetStore
from app.store.maps import MapStore


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service over the store at `settings.redis_url`; settings come from the environment if not given."""
    settings = settings or Settings()
    wired = _wired(settings)
    shutdown = Shutdown()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        shutdown.notice()
        # On a thread of its own: the process is live at once, and ready when what it compiles is compiled.
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
    app.state.context = Context(
        limits=wired.limits,
        every_limit=settings.limits,
        max_request_seconds=settings.max_request_seconds,
        max_wait_seconds=settings.max_wait_seconds,
        admission=Admission(settings.max_requests, settings.threads, settings.client_timeout),
        maps=wired.maps,
        datasets=wired.datasets,
        vectors=Vectors(wired.maps, wired.datasets, wired.limits),
        hashing=Hashing(wired.maps, wired.datasets, wired.limits),
        measuring=Measuring(
            wired.diagnostics,
            wired.recommendations,
            wired.jobs,
            settings.max_result_bytes,
            settings.max_job_bytes,
        ),
        jobs=wired.jobs,
        status=wired.status,
        shutdown=shutdown,
    )
    return app


def job_handlers(settings: Settings) -> Handlers:
    """Every kind of job of the service, over the store at `settings.redis_url`."""
    wired = _wired(settings)
    return {
        building.KIND: partial(building.build, wired.map_store, wired.datasets, settings.threads),
        **run_or_submit.job_handlers(wired.diagnostics, wired.recommendations),
    }


def run_worker(settings: Settings, handlers: Handlers) -> None:
    """Do jobs until the process is told to stop; call it in the main thread."""
    # Here, as a process for each job would otherwise compile or load again what all of them use.
    warm_up()
    limits = JobLimits(settings.max_job_seconds, settings.max_job_bytes)
    run_jobs(_store_url(settings), settings.store_timeout, handlers, limits, settings.job_ttl)


class _Wired(NamedTuple):
    """What requests and jobs both work with."""

    close: Callable[[], None]
    map_store: MapStore
    limits: Limits
    status: Status
    jobs: Jobs
    maps: Maps
    datasets: Datasets
    diagnostics: Diagnostics
    recommendations: Recommendations


def _wired(settings: Settings) -> _Wired:
    client = connect(_store_url(settings), settings.store_timeout)
    limits = Limits(*(getattr(settings, limit) for limit in Limits._fields))
    status = Status(lambda: keeping(client), lambda: check_writable(client), settings.allow_volatile_store)
    jobs = Jobs(client, settings.max_queued_jobs, settings.job_ttl)
    cache = Cache(settings.cache_bytes)
    map_store = MapStore(client)
    datasets = Datasets(DatasetStore(client), limits, cache, status.unfit)
    maps = Maps(map_store, limits, cache, settings.threads, status.unfit, jobs, datasets)
    diagnostics = Diagnostics(maps, datasets, limits, settings.threads)
    recommendations = Recommendations(datasets, limits, settings.max_job_bytes)
    return _Wired(client.close, map_store, limits, status, jobs, maps, datasets, diagnostics, recommendations)


def _store_url(settings: Settings) -> str:
    if settings.redis_url is None:
        raise ValueError("the application needs a store: set REDIS_URL, or start it with `bochner serve`")
    return settings.redis_url


def _end_with_parent() -> None:
    """Shut down when the process that started this worker is gone; a lone worker would hold its port for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
