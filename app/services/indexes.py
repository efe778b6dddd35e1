"""Makes indexes, lists and deletes them, and opens those in use."""

import hashlib
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

import cachetools

from app.core.indexes.banding import Banding
from app.core.indexes.image import Layout
from app.core.maps import FeatureMap
from app.services.errors import IndexExists, IndexNotFound
from app.services.index_codes import IndexCodes
from app.services.index_spec import AskedIndex, IndexPage, IndexRecord, layout, record
from app.services.maps import Maps
from app.store.errors import NewerVersion, QuotaExceeded, StoreDamaged, StoreUnavailable
from app.store.indexes import IndexManifest, IndexState, IndexStore, MapOfIndex
from app.store.manifest import now
from app.store.maps import MapStore
from app.store.named import end
from app.store.pins import Index, Pins

logger = logging.getLogger(__name__)

# Manifests that are remembered, for one call to the store to do.
_REMEMBERED = 1024


class OpenIndex(NamedTuple):
    """An index that is being used."""

    manifest: IndexManifest
    state: IndexState
    feature_map: FeatureMap
    """The map that its codes are of."""
    codes: IndexCodes
    layout: Layout


class Indexes:
    """The indexes of the service. One that has expired is not there.

    Every method may raise StoreUnavailable or StoreDamaged; those that take a name of an index to use, IndexNotFound.
    `unfit` says why the store cannot be trusted with new indexes, None if it can.
    """

    def __init__(
        self,
        store: IndexStore,
        pins: Pins,
        map_store: MapStore,
        maps: Maps,
        unfit: Callable[[], str | None],
    ) -> None:
        self._store, self._pins, self._map_store, self._maps, self._unfit = store, pins, map_store, maps, unfit
        self._known: cachetools.LRUCache[str, IndexManifest] = cachetools.LRUCache(_REMEMBERED)
        self._knowing = Lock()

    def create(
        self, name: str, asked: AskedIndex, ttl: int | None, owner: str = "", banding: Banding | None = None
    ) -> tuple[IndexRecord, bool]:
        """Make an index, unless the same is there; it lives `ttl` seconds after its last use, None for ever.

        A new one is `owner`'s in the account of the store. Where its bands were left to a target, it has this banding.

        Returns:
            The record, and whether the index is new.

        Raises:
            IndexExists: another one has the name.
            MapNotFound: there is no such map.
            MapNotReady: it is still being built, or could not be.
            InvalidInput: it gives no codes, or not as many as the bands want.
            QuotaExceeded: there is no room for another name.
        """
        text = asked.model_dump_json(exclude_none=True)
        while True:
            there, created = self._store.find(name), False
            if there is None:
                there, created = self._made(name, asked, banding or asked.banding, text, ttl, owner)
            if there is None:  # nor is the map any more
                continue
            found = self._same(there, text, ttl, created)
            if found is not None:
                return found, created

    def there(self, name: str, asked: AskedIndex, ttl: int | None) -> IndexRecord | None:
        """The record of an index that was asked for in the same way, which lives on as `ttl` says; None without one.

        Raises:
            IndexExists: another one has the name.
        """
        there = self._store.find(name)
        return None if there is None else self._same(there, asked.model_dump_json(exclude_none=True), ttl)

    def _same(self, there: IndexManifest, asked: str, ttl: int | None, created: bool = False) -> IndexRecord | None:
        """The record of an index that was put again, or just now; None if it is gone."""
        if there.asked != asked:
            raise IndexExists(there.name)
        renewed = there if created else self._store.renew(there, ttl)
        found = None if renewed is None else self._store.look(there.name, renewed)
        return None if found is None else record(*found)

    def get(self, name: str) -> IndexRecord:
        """The record of an index."""
        found = self._store.look(name)
        if found is None:
            raise IndexNotFound(name)
        return record(*found)

    def list(self, prefix: str, cursor: str | None, limit: int) -> IndexPage:
        """A page of records in order of their names."""
        manifests, after = self._store.page(prefix, cursor, limit)
        every = (self._store.look(manifest.name, manifest) for manifest in manifests)
        return IndexPage(indexes=[record(*found) for found in every if found is not None], next=after)

    def delete(self, name: str) -> None:
        """Remove an index, with all that is kept for it; of many at once, one removes it."""
        gone: list[IndexManifest] = []

        def note(stored: bytes, _: str) -> None:
            with suppress(StoreDamaged, NewerVersion):
                gone[:] = [IndexManifest.parse(stored)]

        if not self._store.delete(name, note):
            raise IndexNotFound(name)
        for manifest in gone:
            self._pins.unpin(manifest.map.name, Index(name, manifest.token))

    def open(self, name: str) -> OpenIndex:
        """An index to be used, which so lives on, as it is now."""
        with self._knowing:
            known = self._known.get(name)
        found = self._store.look(name, known)
        if found is None:
            raise IndexNotFound(name)
        manifest, state = found
        if manifest is not known:
            with self._knowing:
                self._known[name] = manifest
        if manifest.is_due:
            self._note_use(manifest)
        feature_map = self._maps.of_index(manifest.map)
        if feature_map is None:
            raise StoreDamaged(f"index {name!r} is over a map {manifest.map.name!r} that is not there any more")
        return OpenIndex(manifest, state, feature_map, IndexCodes.of(feature_map, "the map"), layout(manifest))

    def _made(
        self, name: str, asked: AskedIndex, banding: Banding | None, text: str, ttl: int | None, owner: str
    ) -> tuple[IndexManifest | None, bool]:
        """Make an index, and have its map stay; what has the name then, and whether it is this one.

        It is None where the map has gone meanwhile.
        """
        if reason := self._unfit():
            raise StoreUnavailable(f"{reason}; no index is created there")
        opened = self._maps.open(asked.map)
        codes = IndexCodes.of(opened.feature_map, f"map {asked.map!r}")
        asked.check(codes.s)
        there = self._map_store.find(asked.map)
        if there is None or there.digest != opened.digest:
            return None, False
        manifest = IndexManifest(
            schema_version=IndexManifest.newest,
            token=secrets.token_hex(8),
            name=name,
            digest=_digest(text, opened.digest),
            created_at=now(),
            map=MapOfIndex(name=asked.map, token=there.token, digest=opened.digest),
            asked=text,
            bits=codes.bits,
            s=codes.s,
            bands=None if banding is None else banding.bands,
            rows_per_band=None if banding is None else banding.rows_per_band,
            keep=asked.keep,
            ttl=ttl,
            expires_at=end(ttl),
        )
        pin = Index(name, manifest.token)
        if not self._pins.pin(there, pin):
            return None, False
        try:
            stored = self._store.create(manifest, owner)
        except QuotaExceeded:
            self._pins.unpin(asked.map, pin)
            raise
        if stored.token != manifest.token:  # another was faster
            self._pins.unpin(asked.map, pin)
        return stored, stored.token == manifest.token

    def _note_use(self, manifest: IndexManifest) -> None:
        try:
            self._store.note_use(manifest)
        except (StoreUnavailable, StoreDamaged) as error:  # a store that takes no writes still gives what it has
            logger.warning("the use of index %r is not noted: %s", manifest.name, error)


def _digest(asked: str, of_map: str) -> str:
    return "sha256:" + hashlib.sha256(f"{of_map} {asked}".encode()).hexdigest()
