"""The container of the services and stores that requests and jobs use. Workers import it without a web framework."""

from collections.abc import Awaitable, Callable
from functools import partial

from app.jobs.jobs import Jobs
from app.services import indexes, maps
from app.services.aliases import Aliases, AliasKind
from app.services.cache import Cache
from app.services.datasets import Datasets
from app.services.index_copies import IndexCopies
from app.services.index_duplicates import IndexDuplicates
from app.services.index_images import Images
from app.services.index_jobs import IndexCreation
from app.services.index_recall import IndexRecall
from app.services.index_upserts import IndexUpserts
from app.services.index_vectors import IndexVectors
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
from app.store.aliases import AliasStore, IndexAlias, MapAlias
from app.store.connection import Client, Heard, connect, connect_loop
from app.store.datasets import DatasetStore
from app.store.indexes import IndexStore
from app.store.keys import KeyStore, RateStore, note_use, reload
from app.store.maps import MapManifest, MapStore
from app.store.pins import Pins, keep_tidy
from app.store.servers import StoreInfo, check_writable, keeping


class Container:
    """Services and stores of one process, on the store at `settings.redis_url`; requests and jobs use them.

    Args:
        settings: those of the process.
        heard: is called after each call to the store.
        used: is called for each use of the cache, with whether the object was in memory.
    """

    def __init__(
        self, settings: Settings, heard: Heard | None = None, used: Callable[[bool], None] = lambda _: None
    ) -> None:
        client, loop_client = store_client(settings), connect_loop(settings.store_url, settings.store_timeout)
        if heard is not None:
            client.heard = loop_client.heard = heard
        self.settings, self._client, self._loop_client = settings, client, loop_client
        self.limits = limits = Limits(*(getattr(settings, limit) for limit in Limits._fields))
        quota, threads = quota_of(settings), settings.threads
        self.status = Status(self._read_store_info, lambda: check_writable(client), settings.allow_volatile_store)
        self.account = Account(client, quota)
        self.cache = Cache(settings.cache_bytes, used)
        self.jobs = Jobs(client, settings.max_queued_jobs, settings.job_ttl, quota)
        self.figures = StoreFigures(client, self.account, quota, self.jobs, self.status)

        self.keys = KeyService(KeyStore(client, settings.max_keys), self.account)
        self.keys_changed = partial(reload, client, loop_client)
        self.note_use = partial(note_use, loop_client)
        self.take_requests = RateStore(loop_client).take

        self.map_store, index_store = MapStore(client, quota), IndexStore(client, quota)
        map_aliases, index_aliases = (AliasStore(client, kind, quota) for kind in (MapAlias, IndexAlias))
        pins = Pins(client, self.map_store, {"index": index_store.find_own, "alias": map_aliases.find_own})
        index_pins = Pins(client, index_store, {"alias": index_aliases.find_own})
        self.keep_pins_tidy = partial(keep_tidy, (pins, index_pins))
        of_maps = AliasKind(
            MapAlias, map_aliases, pins, lambda name: maps.require_ready(name, self.map_store.find(name))
        )
        of_indexes = AliasKind(
            IndexAlias, index_aliases, index_pins, lambda name: indexes.require_ready(name, index_store.find(name))
        )
        self.aliases = Aliases({"map": of_maps, "index": of_indexes}, self.status.unfit)
        self.find_map: Callable[[str], Awaitable[MapManifest | None]] = partial(self.map_store.find_by, loop_client)
        self.datasets = Datasets(DatasetStore(client, quota), limits, self.cache, self.status.unfit)
        self.maps = Maps(self.map_store, limits, self.cache, threads, self.jobs, pins)
        self.map_creation = MapCreation(self.map_store, limits, threads, self.status.unfit, self.jobs, self.datasets)
        self.measurements = Measurements(self.jobs, limits, threads)
        self.recommendations = Recommendations(self.datasets, limits, threads)

        self.indexes = Indexes(index_store, index_pins, pins, self.map_store, self.maps, self.status.unfit, self.jobs)
        images = Images(index_store, self.cache)
        self.index_vectors = IndexVectors(index_store, self.indexes, images, self.datasets, limits, threads)
        self.index_upserts = IndexUpserts(index_store, self.indexes, images, self.datasets, limits, threads)
        self.duplicates = IndexDuplicates(index_store, self.indexes, images, self.jobs, limits, threads)
        self.copies = IndexCopies(index_store, self.indexes, self.maps, self.index_upserts, self.jobs)
        self.recall = IndexRecall(index_store, self.indexes, images, self.jobs, limits, threads)
        self.adviser = Adviser(self.maps, self.datasets, limits, threads)
        self.index_creation = IndexCreation(index_store, self.indexes, self.adviser, self.jobs, limits)

    def _read_store_info(self) -> StoreInfo:
        identity.settle(self._client)
        return keeping(self._client)

    async def close(self) -> None:
        """Close the connections of the event loop.

        Those of threads end with the process: background threads may be waiting for an answer of the store.
        """
        await self._loop_client.aclose()


def store_client(settings: Settings) -> Client:
    """Return a client of the store at `settings.redis_url`."""
    return connect(settings.store_url, settings.store_timeout, settings.min_free_bytes, settings.store_replicas)


def quota_of(settings: Settings) -> Quota:
    """Return the most that the store may keep."""
    return Quota(*(getattr(settings, limit) for limit in Quota._fields))
