"""Account of the stored data: usage in all and by owner, and quotas.

Data stored in chunks is an entry of the account, named by the prefix of its keys: `bochner:{map:m}:<token>` for all
arrays of a map, `bochner:{job:j}:payload` for a part of a job. An entry has a size in bytes, a number of names (1 for a
map, a dataset, an index or a job's record, else 0) and an owner; it ends when its keys expire or are deleted.

Data is entered before it is written, and refused if there is no room. The scripts that make keys permanent, give them a
time to live or delete them do the same with the entry, so that the sums are those of the entries at any moment.

Each shard of a store keeps an account of its own, see `places`. The hash `bochner:account:entries` has the entries, the
sorted set `bochner:account:ends` the end times of entries that end, and the hash `bochner:account` the sums in all and
by owner. No script sees the sums of all shards. So data is entered in its own shard first; then all sums are read, and
the entry is removed again if they exceed a limit. Room for what a script enters itself, such as vectors of an index, is
held by an entry until then. Two simultaneous writes may thus both be refused although there was room for one, but
accepted data never exceeds the limit.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, cast

import redis

from app.store import lua
from app.store.connection import acknowledge, at_once, places_of, root_of
from app.store.errors import QuotaExceeded, StoreUnavailable, store_errors

# Seconds for which chunks are kept that are never committed.
UNCOMMITTED_TTL = 900
# Seconds for which room is held at most, if its process ends: longer than the script takes that it is held for.
_HELD_SECONDS = 60


class Quota(NamedTuple):
    """Limits of a store's usage; None for no limit."""

    max_store_bytes: int | None = None
    max_store_names: int | None = None


UNLIMITED = Quota()


class Usage(NamedTuple):
    """Usage: how much is stored."""

    nbytes: int
    """Bytes of arrays, specs and data of jobs, including bytes reserved for the maps that jobs build."""
    names: int
    """Number of maps, datasets, indexes and jobs."""


class Entry(NamedTuple):
    """Entry of the account."""

    key: str
    """Prefix of the keys of its chunks."""
    nbytes: int
    names: int = 0


class Account:
    """Account of a store. Methods raise StoreUnavailable if the store does not answer.

    An owner is any short text that does not start with a space, such as the id of a key; "" for no owner.
    """

    def __init__(self, client: redis.Redis, quota: Quota = UNLIMITED) -> None:
        self._client, self._quota = client, quota
        self._sums = [root + SUMS for root in places_of(client).roots]
        self.is_spread = len(self._sums) > 1
        """Whether there are several shards; none knows the usage of the others."""
        self.most = ["" if most is None or self.is_spread else most for most in quota]
        """Quota as passed to scripts; "" for no limit, and for all limits if there are several shards."""
        self.most_bytes = "" if quota.max_store_bytes is None else quota.max_store_bytes
        """Limit of the store for scripts that know what is `elsewhere`; "" for none."""
        self._charge, self._discard, self._usage = map(client.register_script, (CHARGE, DISCARD, USAGE))

    def charge(self, entries: Sequence[Entry], owner: str = "", within: str = "") -> int:
        """Enter data that is about to be written; return the time when its keys must expire, by the store's clock.

        Args:
            entries: one at least. All are entered, or none.
            owner: owner of the entries.
            within: key of an entry that has reserved the room for them.

        Raises:
            QuotaExceeded: there is no room.
        """
        deadline, is_reserved = self._enter(entries, owner, within)
        if self.is_spread and not is_reserved:
            nbytes, names = sum(entry.nbytes for entry in entries), sum(entry.names for entry in entries)
            try:
                self.check(nbytes, owner, names, entered=True)
            except (QuotaExceeded, StoreUnavailable):
                self.discard([], [entry.key for entry in entries])
                raise
        return deadline

    @contextmanager
    def hold(self, key: str, owner: str, nbytes: int, names: int = 0) -> Iterator[str]:
        """Hold room for what a script is about to enter in the shard of a key, so that others know of it.

        No limit is checked. Yields the key of the entry, which the script removes; "" for one server, whose scripts see
        everything.
        """
        if not self.is_spread:
            yield ""
            return
        held = Entry(f"{root_of(key)}held:{secrets.token_hex(8)}", nbytes, names)
        try:
            self._enter([held], owner, held.key, _HELD_SECONDS)
            yield held.key
        finally:
            self.discard([], [held.key])

    def check(self, nbytes: int, owner: str = "", names: int = 1, *, entered: bool = False) -> None:
        """Raise QuotaExceeded if there is no room for these bytes and names; `entered` if they count already."""
        if self._find_excess(owner, nbytes, names, entered) is None:
            return
        self.usage(owner)  # removes expired entries, which may still count
        refusal = self._find_excess(owner, nbytes, names, entered)
        if refusal is not None:
            raise refusal

    def elsewhere(self, key: str, *owners: str) -> list[int]:
        """Return the bytes of the whole store, and of owners, in all shards but that of a key; 0 for one server."""
        fields = ["bytes", *(f"bytes {owner}" for owner in owners)]
        if not self.is_spread:
            return [0] * len(fields)
        others = [sums for sums in self._sums if root_of(sums) != root_of(key)]
        told = at_once(self._client, others, lambda asked, sums: asked.hmget(sums, fields))
        return [sum(int(one[i] or 0) for one in told) for i in range(len(fields))]

    def owner_of(self, entry: str) -> str | None:
        """Return the owner of an entry; None if there is no such entry."""
        with store_errors():
            stored = cast("bytes | None", self._client.hget(root_of(entry) + ENTRIES, entry))
        return None if stored is None else stored.decode().split(" ", 2)[2]

    def discard(self, keys: Sequence[str], entries: Sequence[str]) -> None:
        """Remove keys and entries that still have a time to live, after the operation that wrote them has failed.

        This frees a full store at once. If the store does not answer, the keys expire later.
        """
        if keys or entries:
            sums = root_of([*keys, *entries][0]) + SUMS
            with suppress(StoreUnavailable), store_errors():
                self._discard(keys=[sums, *keys], args=entries)

    def usage(self, owner: str = "") -> Usage:
        """Return the usage of an owner; "" for the whole store."""
        with store_errors():
            told = [cast("list[bytes | None]", self._usage(keys=[sums], args=[owner])) for sums in self._sums]
        return Usage(*(sum(int(one or 0) for one in each) for each in zip(*told, strict=True)))

    @acknowledge()
    def allow(self, owner: str, quota: Quota) -> None:
        """Set the limits of an owner; a limit of None is removed."""
        with store_errors():
            for what, most in zip(("bytes", "names"), quota, strict=True):
                field = f"max_{what} {owner}"
                for sums in self._sums:
                    if most is None:
                        self._client.hdel(sums, field)
                    else:
                        self._client.hset(sums, field, most)

    def _enter(
        self, entries: Sequence[Entry], owner: str, within: str, seconds: int = UNCOMMITTED_TTL
    ) -> tuple[int, bool]:
        """Return when the keys of the entries must expire, and whether `within` has reserved the room for them."""
        args = [*self.most, owner, within, seconds, *(part for entry in entries for part in entry)]
        with store_errors():
            told = cast("list[Any]", self._charge(keys=[root_of(entries[0].key) + SUMS], args=args))
        refuse(told, sum(entry.nbytes for entry in entries), sum(entry.names for entry in entries))
        return int(told[1]), bool(told[2])

    def _find_excess(self, owner: str, nbytes: int, names: int, entered: bool) -> QuotaExceeded | None:
        """Return the error if these bytes and names exceed a limit, else None. The owner "" has no own limits."""
        fields = ["bytes", "names", *(f"{what} {owner}" for what in ("bytes", "names", "max_bytes", "max_names"))]
        told = at_once(self._client, self._sums, lambda asked, sums: asked.hmget(sums, fields))
        *added, most_bytes, most_names = zip(*told, strict=True)
        # An owner's limits are stored in every shard; a shard where they are not written yet has none.
        limits = [max((int(one) for one in each if one is not None), default=None) for each in (most_bytes, most_names)]
        called, wanted = ("max_store_bytes", "max_store_names", "key_bytes", "key_names"), 2 * (nbytes, names)
        sums = (sum(int(one or 0) for one in each) for each in added)
        before = [there - (more if entered else 0) for there, more in zip(sums, wanted, strict=True)]
        if owner and self._quota.max_store_names is not None:  # no more than it leaves to others
            left = self._quota.max_store_names - before[1]
            limits[1] = left if limits[1] is None else min(limits[1], left)
        for limit, most, there, more in zip(called, (*self._quota, *limits), before, wanted, strict=True):
            if most is not None and more > 0 and there + more > most:
                return QuotaExceeded(limit, most, there, more)
        return None


def refuse(limit: list[Any] | None, nbytes: int = 0, names: int = 0) -> None:
    """Raise QuotaExceeded if a script has returned a limit that these bytes and names would exceed."""
    if limit and limit[0]:
        name, allowed, there = limit[0].decode(), int(limit[1]), int(limit[2])
        raise QuotaExceeded(name, allowed, there, names if name.endswith("names") else nbytes)


SUMS, ENTRIES = "account", "account:entries"
"""Names of keys, without the root of the shard."""
LUA = lua.read("guard") + lua.read("account/shared")
CHARGE, DISCARD, USAGE = (LUA + lua.read(f"account/{name}") for name in ("charge", "discard", "usage"))
