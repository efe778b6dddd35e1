"""References from indexes to maps (pins): a map is neither deleted nor expires while an index refers to it.

The hash `bochner:{map:m}:pins` has, for each such index, its name and token, and the time when it was entered. A
reference is entered before its index is made, and removed after the index is deleted. A process that dies in between
leaves a reference without an index. So a reference counts while its index exists, and for a while after it was entered.
"""

import logging
import time
from contextlib import suppress
from typing import NamedTuple, cast

import redis

from app.store import lua
from app.store.connection import acknowledge, at_once
from app.store.errors import NewerVersion, StoreDamaged, StoreUnavailable, in_full, store_errors
from app.store.indexes import IndexStore
from app.store.maps import MapManifest, MapStore
from app.store.named import LUA, State

logger = logging.getLogger(__name__)

_YOUNG_SECONDS = 60
_AT_ONCE = 500
_TIDY_SECONDS = 60.0
# Share of a processor that tidying may take.
_SHARE = 0.01
_RETRY_SECONDS = 10.0

_PIN, _USERS = (LUA + lua.read(f"pins/{name}") for name in ("pin", "users"))


class Index(NamedTuple):
    """Index that refers to a map."""

    name: str
    token: str

    @property
    def field(self) -> str:
        """Field of the index in the hash; no name has a colon."""
        return f"{self.name}:{self.token}"


class Pins:
    """References from indexes to maps. Every method raises StoreUnavailable if the store does not answer."""

    def __init__(self, client: redis.Redis, maps: MapStore, indexes: IndexStore) -> None:
        self._client, self._maps, self._indexes = client, maps, indexes
        self._pin, self._users = map(client.register_script, (_PIN, _USERS))

    @acknowledge()
    def pin(self, there: MapManifest, index: Index) -> bool:
        """Enter the reference of an index that is about to be made; False if the map is gone."""
        with store_errors():
            keys = [self._maps.key(there.name), self._pins(there.name)]
            if not self._pin(keys=keys, args=[there.token, index.field]):
                return False
        self._set_life(there.name)
        return True

    def settle(self, name: str, index: Index) -> None:
        """Make the reference of an existing index count for as long as the index exists, and no longer."""
        with store_errors():
            self._client.hset(self._pins(name), index.field, 0)

    def unpin(self, name: str, index: Index) -> None:
        """Remove the reference of an index. Without other references, the map has its own time to live again."""
        with store_errors():
            self._client.hdel(self._pins(name), index.field)
        with suppress(StoreDamaged, NewerVersion):
            self._set_life(name)

    def users(self, name: str) -> list[str]:
        """Return the names of the indexes that refer to a map, or are about to; remove references of missing ones."""
        with store_errors():
            found = cast("list[tuple[bytes, int]]", self._users(keys=[self._pins(name)], args=[_YOUNG_SECONDS]))
        users = set()
        for field, is_young in found:
            index = Index(*field.decode().split(":"))
            if is_young or self._is_there(index):
                users.add(index.name)
            else:
                self.unpin(name, index)
        return sorted(users)

    def keep_tidy(self) -> None:
        """Tidy now and every minute from then on, less often if it takes long; never return."""
        while True:
            began = time.monotonic()
            try:
                self.tidy()
                time.sleep(max(_TIDY_SECONDS, (time.monotonic() - began) / _SHARE))
            except (StoreUnavailable, StoreDamaged) as error:
                logger.warning("maps are not yet freed of indexes that are gone: %s", in_full(error))
                time.sleep(_RETRY_SECONDS)

    def tidy(self) -> None:
        """Remove, for all maps, the references of indexes that have expired or were left by a process that died."""
        after, more = None, True
        while more:
            page, after = self._maps.page("", after, _AT_ONCE)
            more = after is not None
            pinned = at_once(self._client, page, lambda asked, there: asked.exists(self._pins(there.name)))
            for there, is_pinned in zip(page, pinned, strict=True):
                try:
                    if not (is_pinned and self.users(there.name)) and there.expires_at is None:
                        self._set_life(there.name)
                except (StoreDamaged, StoreUnavailable) as error:
                    logger.warning("the life of map %r is not looked after: %s", there.name, error)

    def _set_life(self, name: str) -> None:
        """Make a map live for ever if indexes refer to it, else for its own time to live; a script decides which."""
        while (there := self._maps.find(name)) is not None and there.ttl is not None and there.state is State.ready:
            if self._maps.renew(there, there.ttl) is not None:
                return

    def _is_there(self, index: Index) -> bool:
        try:
            found = self._indexes.find(index.name)
        except (StoreDamaged, NewerVersion):
            return True  # the unreadable index may be this one
        return found is not None and found.token == index.token and found.state is not State.failed

    def _pins(self, name: str) -> str:
        return self._maps.key(name).removesuffix("manifest") + "pins"
