"""The container of the services and stores that requests and jobs use. Workers import it without a web framework."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from app.jobs.jobs import Jobs
from app.services.cache import Cache
from app.services.datasets import Datasets
from app.services.index_jobs import IndexCreation, IndexDuplicates
from app.services.index_vectors import Images, IndexVectors
from app.services.indexes import Indexes
from app.services.keys import KeyService
from app.services.limits import Limits
from app.services.map_creation import MapCreation
from app.services.maps import Maps
from app.services.measurements import Adviser, Measurements
from app.services.recommendations import Recommendations
from app.services.status import Status, StoreFigures
from app.settings import Settings
from app.store import identity
from app.store.account import Account, Quota
from app.store.connection import Client, Heard, connect, connect_loop
from app.store.datasets import DatasetStore
from app.store.indexes import IndexStore
from app.store.keys import Keys, KeyStore, RateStore, Taken, note_use, reload
from app.store.maps import MapManifest, MapStore
from app.store.pins import Pins
from app.store.servers import StoreInfo, check_writable, keeping


@dataclass(frozen=True)
class Wired:
    """Container of the services and stores that both requests and jobs use."""

    settings: Settings
    close: Callable[[], Awaitable[None]]
    find_map: Callable[[str], Awaitable[MapManifest | None]]
    """Asks the store for a map, on the event loop."""
    map_store: MapStore
    account: Account
    """Usage of the store in total and by owner."""
    keep_pins_tidy: Callable[[], None]
    """Releases maps whose indexes are gone; never returns."""
    keys: KeyService
    keys_changed: Callable[[Keys], Awaitable[Keys]]
    """Reads the current keys from the store, on the event loop."""
    note_use: Callable[[str], Awaitable[None]]
    take_requests: Callable[[str, float, int, int], Awaitable[Taken]]
    """Takes requests of a key from its rate limit in the store, see `RateStore.take`."""
    limits: Limits
    status: Status
    figures: StoreFigures
    """Figures of the store and of jobs, for operators."""
    cache: Cache
    jobs: Jobs
    maps: Maps
    map_creation: MapCreation
    datasets: Datasets
    indexes: Indexes
    index_vectors: IndexVectors
    """Upserts, deletions and searches of the vectors of indexes."""
    duplicates: IndexDuplicates
    recommendations: Recommendations
    adviser: Adviser
    index_creation: IndexCreation
    measurements: Measurements


def store_client(settings: Settings) -> Client:
    """Return a client of the store at `settings.redis_url`."""
    return connect(settings.store_url, settings.store_timeout, settings.min_free_bytes, settings.store_replicas)


def wire(settings: Settings, heard: Heard | None = None, used: Callable[[bool], None] = lambda _: None) -> Wired:
    """Return all services, using the store at `settings.redis_url`.

    `heard`, if given, is called after each call to the store; `used` for each use of the cache, with whether it was a
    hit.
    """
    client = store_client(settings)
    loop_client = connect_loop(settings.store_url, settings.store_timeout)
    if heard is not None:
        client.heard = loop_client.heard = heard

    async def close() -> None:
        client.close()
        await loop_client.aclose()

    limits = Limits(*(getattr(settings, limit) for limit in Limits._fields))

    def read_store_info() -> StoreInfo:
        identity.settle(client)
        return keeping(client)

    status = Status(read_store_info, lambda: check_writable(client), settings.allow_volatile_store)
    quota = quota_of(settings)
    account = Account(client, quota)
    jobs = Jobs(client, settings.max_queued_jobs, settings.job_ttl, quota)
    cache = Cache(settings.cache_bytes, used)
    map_store, dataset_store = MapStore(client, quota), DatasetStore(client, quota)
    datasets = Datasets(dataset_store, limits, cache, status.unfit)
    index_store = IndexStore(client, quota)
    pins = Pins(client, map_store, index_store)
    maps = Maps(map_store, limits, cache, settings.threads, jobs, pins)
    indexes = Indexes(index_store, pins, map_store, maps, status.unfit, jobs)
    adviser = Adviser(maps, datasets, settings.threads)
    images = Images(index_store, cache)
    return Wired(
        settings=settings,
        close=close,
        find_map=partial(map_store.find_by, loop_client),
        map_store=map_store,
        account=account,
        keep_pins_tidy=pins.keep_tidy,
        keys=KeyService(KeyStore(client, settings.max_keys), account),
        keys_changed=partial(reload, client, loop_client),
        note_use=partial(note_use, loop_client),
        take_requests=RateStore(loop_client).take,
        limits=limits,
        status=status,
        cache=cache,
        figures=StoreFigures(client, account, quota, jobs, status),
        jobs=jobs,
        maps=maps,
        map_creation=MapCreation(map_store, limits, settings.threads, status.unfit, jobs, datasets),
        datasets=datasets,
        indexes=indexes,
        index_vectors=IndexVectors(index_store, indexes, images, datasets, limits, settings.threads),
        duplicates=IndexDuplicates(indexes, images, jobs, limits, settings.threads),
        recommendations=Recommendations(datasets, limits, settings.threads),
        adviser=adviser,
        index_creation=IndexCreation(index_store, indexes, adviser, jobs, limits),
        measurements=Measurements(jobs, limits, settings.threads),
    )


def quota_of(settings: Settings) -> Quota:
    """Return the most that the store may keep."""
    return Quota(*(getattr(settings, limit) for limit in Quota._fields))
