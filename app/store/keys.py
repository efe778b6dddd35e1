"""API keys in the store: the rights of each, and a hash of its text.

All keys are fields of the hash `bochner:keys`, so that one call reads them all. `bochner:keys:state` is a random value
that each change of the keys replaces. A process that knows this value need not read the keys again, and notices a store
that was emptied, or restored from a copy, just as it notices a revoked key.

Rate limits are counted in the store, for all processes together.
"""

import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, cast

import redis
import redis.asyncio
from pydantic import BaseModel, ConfigDict, ValidationError

from app.store import identity, lua
from app.store.connection import acknowledge, inside, places_of
from app.store.errors import store_errors
from app.store.manifest import now
from app.store.named import RECEIPT_SECONDS

logger = logging.getLogger(__name__)

KEYS, STATE, USED = "bochner:keys", "bochner:keys:state", "bochner:keys:used"
NEWEST = 2
"""Version of the stored format of keys; raise it with every change. Since 2 a key may expire."""
_YEAR_SECONDS = 366 * 24 * 3600
_ID_BYTES, _SECRET_BYTES = 8, 32
_TEXT = re.compile(rb"bochner_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_SHOWN = re.compile(r"(bochner_[0-9a-f]{16}_)[A-Za-z0-9_-]+")

# A call that is repeated because its reply was lost must recognise what its first try has done, whatever has changed
# since. So a revocation leaves a trace for longer than a client library repeats a call.

_CREATE = lua.read("guard") + lua.read("keys/create")

_REVOKE = lua.read("guard") + lua.read("keys/revoke", RECEIPT_SECONDS=RECEIPT_SECONDS)


class Role(StrEnum):
    """Role of a key. Each role includes the rights of the roles before it."""

    metrics = "metrics"
    read = "read"
    write = "write"
    admin = "admin"

    def includes(self, needed: "Role") -> bool:
        """Return whether this role has the rights of the role `needed`."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(needed)


class Key(BaseModel):
    """API key, without its text, which only its user has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int
    id: str
    name: str
    role: Role
    created_at: datetime
    rate: float | None
    """Requests per second; None for no limit."""
    burst: int | None
    """Simultaneous requests allowed after a pause; None if there is no rate."""
    quota: int | None
    """Bytes that all things created with the key may take; None for no limit."""
    sha256: str
    """SHA-256 of the text. The text has 32 random bytes, too many for guessing, however fast the hash."""
    expires_at: datetime | None = None

    @property
    def is_valid(self) -> bool:
        """Whether the key has not expired."""
        return self.expires_at is None or now() < self.expires_at

    def opens_with(self, text: bytes) -> bool:
        """Return whether `text` is the text of the key, in constant time."""
        return hmac.compare_digest(hashlib.sha256(text).hexdigest(), self.sha256)


class NewKey(NamedTuple):
    """New key and its text, which is shown once."""

    key: Key
    text: str


class TooManyKeys(Exception):
    """The store has the maximum number of keys already."""

    limit = "max_keys"

    def __init__(self, allowed: int) -> None:
        super().__init__(f"there are {allowed} keys, as many as there may be; revoke some")
        self.allowed = allowed


def draw_key(rate: float | None = None, burst: int | None = None, **others: Any) -> NewKey:
    """Draw a new key, which is not stored yet; `burst` defaults to the requests that `rate` allows in one second.

    `others` are further fields of `Key`.
    """
    key_id = secrets.token_hex(_ID_BYTES)
    text = f"bochner_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    if rate is not None and burst is None:
        burst = max(1, round(rate))
    key = Key(
        schema_version=NEWEST if others.get("expires_at") else 1,  # older versions can read version 1
        id=key_id,
        created_at=now(),
        rate=rate,
        burst=None if rate is None else burst,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        **others,
    )
    return NewKey(key, text)


def id_in(text: bytes) -> str | None:
    """Return the id of the key in a text; None if the text does not have the form of a key."""
    found = _TEXT.fullmatch(text)
    return None if found is None else found[1].decode()


def hidden(text: str) -> str:
    """Return a text with the secrets of keys in it replaced by dots."""
    return _SHOWN.sub(r"\1...", text)


class KeyStore:
    """Store of keys: creates, lists and revokes them. Methods raise StoreUnavailable if the store does not answer."""

    def __init__(self, client: redis.Redis, most: int) -> None:
        self._client, self._most = client, most
        # All keys are in one shard, as a script changes them atomically.
        self._root = places_of(client).roots[0]
        self._create = client.register_script(_CREATE)
        self._revoke = client.register_script(_REVOKE)

    @acknowledge()
    def create(self, key: Key) -> None:
        """Store a key; TooManyKeys if there is no room for another."""
        record = key.model_dump_json(exclude_defaults=True)
        with store_errors():
            created = self._create(keys=self._keys(key.id), args=[key.id, record, secrets.token_hex(8), self._most])
        if not created:
            raise TooManyKeys(self._most)

    @acknowledge()
    def revoke(self, key_id: str) -> bool:
        """Remove a key; False if there is no such key."""
        with store_errors():
            return bool(self._revoke(keys=self._keys(key_id), args=[key_id, secrets.token_hex(8)]))

    def all(self) -> list[Key]:
        """Return all keys, oldest first."""
        with store_errors():
            stored = cast(dict[bytes, bytes], self._client.hgetall(inside(self._root, KEYS)))
        return sorted(_readable(stored.values()), key=lambda key: (key.created_at, key.id))

    def last_uses(self, ids: list[str]) -> list[datetime | None]:
        """Return when each key was last used, to within a minute; None if that was over a year ago, or never."""
        with store_errors():
            stored = cast(list[bytes | None], self._client.mget([_use(self._root, key_id) for key_id in ids]))
        return [None if one is None else datetime.fromisoformat(one.decode()) for one in stored]

    def _keys(self, key_id: str) -> list[str]:
        return [inside(self._root, key) for key in (KEYS, STATE, f"bochner:deleted:{key_id}")]


class Keys(NamedTuple):
    """All keys by id, and the state of the store's keys; the state is None if no key was ever made."""

    by_id: dict[str, Key]
    state: bytes | None


async def reload(own: redis.Redis, client: redis.asyncio.Redis, known: Keys) -> Keys:
    """Return the current keys, using an asyncio client; `known` itself if nothing has changed.

    `own` is a client that has seen the store's mark: StoreUnavailable if the store came back empty.
    """
    root = places_of(client).roots[0]
    with store_errors():
        # The state is read before the keys: a key that changes in between is then read again, and never missed.
        state = cast(bytes | None, await client.get(inside(root, STATE)))
        if state == known.state and state is not None:
            return known
        stored = cast(dict[bytes, bytes], await client.hgetall(inside(root, KEYS)))
        if not stored:
            identity.compare(own, root, cast(bytes | None, await client.get(inside(root, identity.KEY))))
    return Keys({key.id: key for key in _readable(stored.values())}, state)


async def note_use(client: redis.asyncio.Redis, key_id: str) -> None:
    """Record that a key is used now, using an asyncio client."""
    with store_errors():
        await client.set(_use(places_of(client).roots[0], key_id), now().isoformat(), ex=_YEAR_SECONDS)


def _use(root: str, key_id: str) -> str:
    return inside(root, f"{USED}:{key_id}")


def _readable(stored: Iterable[bytes]) -> Iterable[Key]:
    """Yield the keys that this version can read; all other keys grant no access."""
    for one in stored:
        try:
            key = Key.model_validate_json(one)
        except ValidationError:
            logger.error("a key of %d bytes cannot be read, and lets nobody in", len(one))
            continue
        if key.schema_version > NEWEST:
            logger.error("key %s was made by a newer version, and lets nobody in", key.id)
            continue
        yield key


_TAKE = lua.read("keys/take")


class Taken(NamedTuple):
    """Number of requests that may come now, and the seconds until one more may come."""

    requests: int
    wait: float


class RateStore:
    """Rate limits of keys, as token buckets; for the event loop of its client."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        self._take = client.register_script(_TAKE)

    async def take(self, key_id: str, rate: float, burst: int, wanted: int) -> Taken:
        """Take up to `wanted` requests from a key's bucket; StoreUnavailable if the store does not answer."""
        with store_errors():
            taken = await self._take(keys=[f"bochner:rate:{key_id}"], args=[rate, burst, wanted])
        requests, milliseconds = cast(list[int], taken)
        return Taken(requests, milliseconds / 1000)
