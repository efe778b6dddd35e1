"""References to maps and indexes (pins): what an index or an alias refers to is neither deleted nor expires.

An index refers to its map, and an alias to what it stands for. The hash `bochner:{map:m}:pins` has, for each of them,
its name and token, and the time when it was entered. A reference is entered before its user is made, and removed after
the user is deleted. A process that dies in between leaves a reference without a user. So a reference counts while its
user exists, and for a while after it was entered. Pins of indexes are the same.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, cast

import redis

from app.store import lua
from app.store.connection import acknowledge, at_once
from app.store.errors import IsAlias, NewerVersion, StoreDamaged, StoreUnavailable, in_full, store_errors
from app.store.named import LUA, LivingManifest, LivingStore, State

logger = logging.getLogger(__name__)

_YOUNG_SECONDS = 60
_AT_ONCE = 500
_TIDY_SECONDS = 60.0
# Share of a processor that tidying may take: some 250 references a second.
_SHARE = 0.05
_RETRY_SECONDS = 10.0

_PIN, _SETTLE, _USERS = (LUA + lua.read(f"pins/{name}") for name in ("pin", "settle", "users"))


class User(NamedTuple):
    """Index or alias that refers to a map or to an index."""

    name: str
    token: str
    kind: str = "index"

    @property
    def field(self) -> str:
        """Field of the user in the hash; no name has a colon. That of an index has no kind, as in earlier versions."""
        return f"{self.name}:{self.token}" + (f":{self.kind}" if self.kind != "index" else "")


Find = Callable[[str], LivingManifest | None]
"""Finds the index, or the alias, that itself has a name; may raise what `NamedStore.find_own` raises."""


class Pins:
    """References to things of one kind. `pin`, `users` and `tidy` raise StoreUnavailable if the store does not answer.

    `settle` and `unpin` do not, as what they follow has been done, and references count rightly without them, if later.
    `users` has, for each kind of users, a function that finds one by its name.
    """

    def __init__(self, client: redis.Redis, things: LivingStore[Any], users: Mapping[str, Find]) -> None:
        self._client, self._things, self._find = client, things, users
        self._pin, self._settle, self._users = map(client.register_script, (_PIN, _SETTLE, _USERS))

    @acknowledge()
    def pin(self, there: LivingManifest, user: User) -> bool:
        """Enter the reference of a user that is about to be made; False if the thing is gone."""
        with store_errors():
            keys = [self._things.key(there.name), self._pins(there.name)]
            if not self._pin(keys=keys, args=[there.token, user.field]):
                return False
        found = self._set_life(there.name)
        if found is None or found.token != there.token:  # it has just expired
            self.unpin(there.name, user)
            return False
        return True

    def settle(self, name: str, user: User) -> None:
        """Make the reference of an existing user count for as long as the user exists, and no longer."""
        with _left_for_later(name), store_errors():
            self._settle(keys=[self._pins(name)], args=[user.field])

    def unpin(self, name: str, user: User) -> None:
        """Remove the reference of a user. Without other references, the thing has its own time to live again."""
        with _left_for_later(name):
            self._remove(name, [user])

    def users(self, name: str) -> list[User]:
        """Return the indexes and aliases that refer to a thing, or are about to; remove references of missing ones."""
        with store_errors():
            found = cast("list[tuple[bytes, int]]", self._users(keys=[self._pins(name)], args=[_YOUNG_SECONDS]))
        young = {User(*field.decode().split(":")): is_young for field, is_young in found}
        users = {user for user, is_young in young.items() if is_young or self._is_there(user)}
        if gone := young.keys() - users:
            self._remove(name, gone)
        return sorted(users)

    def tidy(self) -> None:
        """Remove, for all things, the references of users that have expired or were left by a process that died."""
        after, more = None, True
        while more:
            page, after = self._things.page("", after, _AT_ONCE)
            more = after is not None
            pinned = at_once(self._client, page, lambda asked, there: asked.exists(self._pins(there.name)))
            for there, is_pinned in zip(page, pinned, strict=True):
                try:
                    is_used = is_pinned and self.users(there.name)
                    if not is_used and there.ttl is not None and there.expires_at is None:
                        self._set_life(there.name)
                except (StoreDamaged, NewerVersion, StoreUnavailable) as error:
                    logger.warning("the life of %s %r is not looked after: %s", there.kind, there.name, error)

    def _remove(self, name: str, users: Iterable[User]) -> None:
        with store_errors():
            self._client.hdel(self._pins(name), *(user.field for user in users))
        with suppress(StoreDamaged, NewerVersion):
            self._set_life(name)

    def _set_life(self, name: str) -> LivingManifest | None:
        """Make a thing live for ever if something refers to it, else for its own time to live; a script decides.

        Return the thing, None if it is gone.
        """
        with suppress(IsAlias):
            while (there := self._things.find_own(name)) is not None:
                changed: LivingManifest | None = there
                if there.ttl is not None and there.state is State.ready:
                    changed = self._things.renew(there, there.ttl)
                if changed is not None:
                    return changed
        return None

    def _is_there(self, user: User) -> bool:
        try:
            found = self._find[user.kind](user.name)
        except IsAlias:
            return False
        except (StoreDamaged, NewerVersion):
            return True  # the unreadable thing may be this one
        return found is not None and found.token == user.token and found.state is not State.failed

    def _pins(self, name: str) -> str:
        return self._things.key(name).removesuffix("manifest") + "pins"


@contextmanager
def _left_for_later(name: str) -> Iterator[None]:
    try:
        yield
    except StoreUnavailable as error:
        logger.warning("the references to %r are set right later: %s", name, in_full(error))


def keep_tidy(every: Sequence[Pins]) -> None:
    """Tidy now and every minute from then on, less often if it takes long; never return."""
    while True:
        began = time.monotonic()
        try:
            for pins in every:
                pins.tidy()
            time.sleep(max(_TIDY_SECONDS, (time.monotonic() - began) / _SHARE))
        except (StoreUnavailable, StoreDamaged) as error:
            logger.warning("what indexes and aliases no longer need is not yet freed: %s", in_full(error))
            time.sleep(_RETRY_SECONDS)
