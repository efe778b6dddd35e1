"""Puts together what requests and jobs work with. Workers import this and no web framework."""

from collections.abc import Callable
from typing import NamedTuple

from app import handlers
from app.jobs.job_context import Handlers
from app.jobs.jobs import Jobs
from app.jobs.worker import JobLimits, Worker
from app.services.cache import Cache
from app.services.datasets import Datasets
from app.services.limits import Limits
from app.services.maps import Maps
from app.services.measurements import Measurements
from app.services.recommendations import Recommendations
from app.services.status import Status
from app.services.warm_up import warm_up
from app.settings import Settings
from app.store.connection import check_writable, connect, keeping
from app.store.datasets import DatasetStore
from app.store.maps import MapStore


class Wired(NamedTuple):
    """What requests and jobs both work with."""

    close: Callable[[], None]
    map_store: MapStore
    limits: Limits
    status: Status
    jobs: Jobs
    maps: Maps
    datasets: Datasets
    recommendations: Recommendations
    measurements: Measurements


def wire(settings: Settings) -> Wired:
    """All services, on the store at `settings.redis_url`."""
    client = connect(_store_url(settings), settings.store_timeout)
    limits = Limits(*(getattr(settings, limit) for limit in Limits._fields))
    status = Status(lambda: keeping(client), lambda: check_writable(client), settings.allow_volatile_store)
    jobs = Jobs(client, settings.max_queued_jobs, settings.job_ttl)
    cache = Cache(settings.cache_bytes)
    map_store = MapStore(client)
    datasets = Datasets(DatasetStore(client), limits, cache, status.unfit)
    maps = Maps(map_store, limits, cache, settings.threads, status.unfit, jobs, datasets)
    recommendations = Recommendations(datasets, limits, settings.max_job_bytes, settings.threads)
    measurements = Measurements(jobs, limits, settings.max_job_bytes, settings.threads)
    return Wired(client.close, map_store, limits, status, jobs, maps, datasets, recommendations, measurements)


def job_handlers(settings: Settings) -> Handlers:
    """The handlers of every kind of job, on the store at `settings.redis_url`."""
    wired = wire(settings)
    measuring = handlers.Measuring(wired.maps, wired.datasets, wired.recommendations, wired.measurements)
    return handlers.handlers(wired.map_store, measuring, settings.threads)


def run_worker(settings: Settings, kinds: Handlers) -> None:
    """Do jobs until the process is told to stop; call it in the main thread."""
    # Each job has a process of its own, made from this one. What is compiled here need not be compiled there.
    warm_up()
    limits = JobLimits(settings.max_job_seconds, settings.max_job_bytes)
    Worker(_store_url(settings), settings.store_timeout, kinds, limits, settings.job_ttl).run()


def _store_url(settings: Settings) -> str:
    if settings.redis_url is None:
        raise ValueError("the application needs a store: set REDIS_URL, or start it with `bochner serve`")
    return settings.redis_url
