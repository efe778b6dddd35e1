"""API keys in the store: what each may do, and a hash of its text.

All keys are fields of the hash `bochner:keys`, so that a process reads them at once. `bochner:keys:state` names the
state that they are in: each change draws it anew. A process that knows the state need not read the keys again, and
notices a store that was emptied, or restored from a copy, as it notices a revoked key.

How often a key may ask is one count in the store for all processes.
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

from app.store import identity
from app.store.connection import acknowledge
from app.store.errors import store_errors
from app.store.manifest import now
from app.store.named import RECEIPT_SECONDS
from app.store.places import inside, places_of

logger = logging.getLogger(__name__)

KEYS, STATE, USED = "bochner:keys", "bochner:keys:state", "bochner:keys:used"
NEWEST = 2
"""Version of what is written, to be raised with every change of it. Since 2 a key may expire."""
_YEAR_SECONDS = 366 * 24 * 3600
_ID_BYTES, _SECRET_BYTES = 8, 32
_TEXT = re.compile(rb"bochner_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_SHOWN = re.compile(r"(bochner_[0-9a-f]{16}_)[A-Za-z0-9_-]+")

# A call that is repeated because its reply was lost must find what the first one has done, whatever others have done
# since: whoever revokes a key leaves a trace of it for a while, longer than a client library repeats a call.

# KEYS: keys, state, trace. ARGV: id, record, new state, most keys. Gives 1, or 0 where there are too many.
_CREATE = """
if redis.call('EXISTS', KEYS[3]) == 1 then return 1 end
if redis.call('HGET', KEYS[1], ARGV[1]) == false and #redis.call('HGETALL', KEYS[1]) >= 2 * ARGV[4] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('SET', KEYS[2], ARGV[3])
return 1
"""

# KEYS: keys, state, trace. ARGV: id, new state. Gives 1, or 0 where there is no such key.
_REVOKE = f"""
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  return redis.call('GET', KEYS[3]) == ARGV[2] and 1 or 0
end
redis.call('SET', KEYS[2], ARGV[2])
redis.call('SET', KEYS[3], ARGV[2], 'EX', {RECEIPT_SECONDS})
return 1
"""


class Role(StrEnum):
    """What a key may do. Each role includes those before it."""

    metrics = "metrics"
    read = "read"
    write = "write"
    admin = "admin"

    def includes(self, needed: "Role") -> bool:
        """Whether who has this role may do what that one is needed for."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(needed)


class Key(BaseModel):
    """A key, without its text, which is nowhere but with its user."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int
    id: str
    name: str
    role: Role
    created_at: datetime
    rate: float | None
    """Requests a second; None for any number."""
    burst: int | None
    """Requests at once after a pause; None where there is no rate."""
    quota: int | None
    """Bytes that what it has created may take; None for any number."""
    sha256: str
    """Of its text. That is 32 random bytes, which nobody finds by trying, however fast the hash."""
    expires_at: datetime | None = None

    @property
    def is_valid(self) -> bool:
        """Whether it has not expired."""
        return self.expires_at is None or now() < self.expires_at

    def opens_with(self, text: bytes) -> bool:
        """Whether this is the text of the key, in a time that tells nothing about it."""
        return hmac.compare_digest(hashlib.sha256(text).hexdigest(), self.sha256)


class NewKey(NamedTuple):
    """A key, and its text, which is shown once."""

    key: Key
    text: str


class TooManyKeys(Exception):
    """There are as many keys as there may be."""

    limit = "max_keys"

    def __init__(self, allowed: int) -> None:
        super().__init__(f"there are {allowed} keys, as many as there may be; revoke some")
        self.allowed = allowed


def draw_key(rate: float | None = None, burst: int | None = None, **others: Any) -> NewKey:
    """A new key, which is not stored yet. Without `burst`, as many requests at once as `rate` allows in a second.

    `others` are further fields of `Key`.
    """
    key_id = secrets.token_hex(_ID_BYTES)
    text = f"bochner_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    if rate is not None and burst is None:
        burst = max(1, round(rate))
    key = Key(
        schema_version=NEWEST if others.get("expires_at") else 1,  # which older versions know
        id=key_id,
        created_at=now(),
        rate=rate,
        burst=None if rate is None else burst,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        **others,
    )
    return NewKey(key, text)


def id_in(text: bytes) -> str | None:
    """The id of the key that a text would be of; None if it is the text of no key."""
    found = _TEXT.fullmatch(text)
    return None if found is None else found[1].decode()


def hidden(text: str) -> str:
    """A text without the secrets of keys that stand in it."""
    return _SHOWN.sub(r"\1...", text)


class KeyStore:
    """Create, list and revoke keys. Every method raises StoreUnavailable where the store does not answer."""

    def __init__(self, client: redis.Redis, most: int) -> None:
        self._client, self._most = client, most
        # All in one place, as a script changes them at once.
        self._root = places_of(client).roots[0]
        self._create = client.register_script(_CREATE)
        self._revoke = client.register_script(_REVOKE)

    @acknowledge()
    def create(self, key: Key) -> None:
        """Keep a key; TooManyKeys if there are enough."""
        record = key.model_dump_json(exclude_defaults=True)
        with store_errors():
            created = self._create(keys=self._keys(key.id), args=[key.id, record, secrets.token_hex(8), self._most])
        if not created:
            raise TooManyKeys(self._most)

    @acknowledge()
    def revoke(self, key_id: str) -> bool:
        """Remove a key; False if there is none."""
        with store_errors():
            return bool(self._revoke(keys=self._keys(key_id), args=[key_id, secrets.token_hex(8)]))

    def all(self) -> list[Key]:
        """Every key, oldest first."""
        with store_errors():
            stored = cast(dict[bytes, bytes], self._client.hgetall(inside(self._root, KEYS)))
        return sorted(_readable(stored.values()), key=lambda key: (key.created_at, key.id))

    def last_uses(self, ids: list[str]) -> list[datetime | None]:
        """When each key was used last, to a minute; None where that was over a year ago, or never."""
        with store_errors():
            stored = cast(list[bytes | None], self._client.mget([_use(self._root, key_id) for key_id in ids]))
        return [None if one is None else datetime.fromisoformat(one.decode()) for one in stored]

    def _keys(self, key_id: str) -> list[str]:
        return [inside(self._root, key) for key in (KEYS, STATE, f"bochner:deleted:{key_id}")]


class Keys(NamedTuple):
    """All keys, by their ids, and the state that they are in; None if none was ever made."""

    by_id: dict[str, Key]
    state: bytes | None


async def reload(own: redis.Redis, client: redis.asyncio.Redis, known: Keys) -> Keys:
    """The keys as they are now; the known ones where nothing has changed. For a client of an event loop.

    `own` remembers which store it is: StoreUnavailable if it came back empty.
    """
    root = places_of(client).roots[0]
    with store_errors():
        # Before the keys: one that is changed in between is then read once more, and never missed.
        state = cast(bytes | None, await client.get(inside(root, STATE)))
        if state == known.state and state is not None:
            return known
        stored = cast(dict[bytes, bytes], await client.hgetall(inside(root, KEYS)))
        if not stored:
            identity.compare(own, root, cast(bytes | None, await client.get(inside(root, identity.KEY))))
    return Keys({key.id: key for key in _readable(stored.values())}, state)


async def note_use(client: redis.asyncio.Redis, key_id: str) -> None:
    """Write down that a key is used now. For a client of an event loop."""
    with store_errors():
        await client.set(_use(places_of(client).roots[0], key_id), now().isoformat(), ex=_YEAR_SECONDS)


def _use(root: str, key_id: str) -> str:
    return inside(root, f"{USED}:{key_id}")


def _readable(stored: Iterable[bytes]) -> Iterable[Key]:
    """The keys that this version can read. Others let nobody in."""
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


# A bucket that fills with `rate` requests a second up to `burst`. One that is full again is not kept, and a
# refusal writes nothing.
# KEYS: bucket. ARGV: rate, burst, wanted. Gives how many may come now, and milliseconds until there is one more.
_TAKE = """
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] + time[2] / 1e6
local left = burst
local kept = redis.call('GET', KEYS[1])
if kept then
  local had, at = string.match(kept, '(%S+) (%S+)')
  left = math.min(burst, had + math.max(0, now - at) * rate)
end
local taken = math.min(tonumber(ARGV[3]), math.floor(left))
left = left - taken
if taken > 0 then
  redis.call('SET', KEYS[1], string.format('%.6f %.6f', left, now), 'PX', math.ceil((burst - left) / rate * 1000))
end
return {taken, math.ceil(math.max(0, 1 - left) / rate * 1000)}
"""


class Taken(NamedTuple):
    """How many requests may come now, and seconds until there may be one more."""

    requests: int
    wait: float


class RateStore:
    """Takes requests out of the buckets of keys; for the event loop of its client."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        self._take = client.register_script(_TAKE)

    async def take(self, key_id: str, rate: float, burst: int, wanted: int) -> Taken:
        """Take up to `wanted` requests; StoreUnavailable where the store does not answer."""
        with store_errors():
            taken = await self._take(keys=[f"bochner:rate:{key_id}"], args=[rate, burst, wanted])
        requests, milliseconds = cast(list[int], taken)
        return Taken(requests, milliseconds / 1000)
