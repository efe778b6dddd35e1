"""The account of what is kept: how much there is, whose it is, and the refusal of more.

What lies in pieces is an entry of the account, by what its keys begin with: `bochner:{map:m}:<token>` for all arrays of
a map, `bochner:{job:j}:payload` for a part of a job. An entry has a size in bytes, a number of names (1 for a map, a
dataset or the record of a job, else 0) and an owner; it ends when its keys do.

Whatever is to be written is entered first, and so either has room or is refused. The scripts that make it stay, give
it a time to live or remove it do the same with its entry, so that the sums are those of the entries at any moment.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

import redis

from app.store import account_scripts as scripts
from app.store.confirmed import acknowledged
from app.store.errors import QuotaExceeded, StoreUnavailable, store_errors
from app.store.places import places_of, root_of
from app.store.totals import Totals

# Seconds that pieces stay if whoever wrote them never says what they belong to.
UNCOMMITTED_TTL = 900


class Quota(NamedTuple):
    """The most that a store may keep; None for any."""

    max_store_bytes: int | None = None
    max_store_names: int | None = None


UNLIMITED = Quota()


class Usage(NamedTuple):
    """How much is kept."""

    nbytes: int
    """Bytes of arrays, specs, and what belongs to jobs; what has been promised to jobs for the maps they build, too."""
    names: int
    """Maps, datasets and jobs."""


class Entry(NamedTuple):
    """What is to be entered."""

    key: str
    """What the keys of its pieces begin with."""
    nbytes: int
    names: int = 0


class Account:
    """The account of a store. Methods raise StoreUnavailable where the store does not answer.

    An owner is any short text without a space at its start, such as the id of a key; "" for nobody.
    """

    def __init__(self, client: redis.Redis, quota: Quota = UNLIMITED) -> None:
        self._client, self._totals = client, Totals(client, *quota)
        self._roots = places_of(client).roots
        # Where there are several places, none knows what the others hold.
        self._most = ["" if most is None or len(self._roots) > 1 else most for most in quota]
        every = scripts.CHARGE, scripts.CHECK, scripts.DISCARD, scripts.USAGE
        self._charge, self._check, self._discard, self._usage = map(client.register_script, every)

    def charge(self, entries: Sequence[Entry], owner: str = "", within: str = "") -> int:
        """Enter what is about to be written; gives the moment when its keys shall expire, in seconds of the store.

        Args:
            entries: one at least. All are entered, or none.
            owner: whose they are.
            within: the key of an entry that was given the room for them.

        Raises:
            QuotaExceeded: there is no room.
        """
        args = [part for entry in entries for part in entry]
        keys = [root_of(entries[0].key) + scripts.SUMS]
        with store_errors():
            told = cast("list[Any]", self._charge(keys=keys, args=[*self._most, owner, within, UNCOMMITTED_TTL, *args]))
        _refuse(told, entries)
        if len(self._roots) > 1 and not told[2]:
            self._require_room(entries, owner)
        return int(told[1])

    def check(self, nbytes: int, owner: str = "") -> None:
        """Raise QuotaExceeded if there is no room for one more name with so many bytes."""
        if len(self._roots) > 1:
            self._totals.require_room(owner, nbytes, 1, entered=False)
            return
        keys = [self._roots[0] + scripts.SUMS]
        with store_errors():
            told = cast("list[Any] | None", self._check(keys=keys, args=[*self._most, owner, nbytes, 1]))
        _refuse(told or [b""], [Entry("", nbytes, 1)])

    def discard(self, keys: Sequence[str], entries: Sequence[str]) -> None:
        """Remove keys and entries that still have a time to live, as what they were written for has failed.

        A store that is full must not stay full of what was never committed; one that is away removes them in time.
        """
        if keys or entries:
            sums = root_of([*keys, *entries][0]) + scripts.SUMS
            with suppress(StoreUnavailable), store_errors():
                self._discard(keys=[sums, *keys], args=entries)

    def usage(self, owner: str = "") -> Usage:
        """How much an owner keeps, or all together."""
        with store_errors():
            told = [
                cast("list[bytes | None]", self._usage(keys=[root + scripts.SUMS], args=[owner]))
                for root in self._roots
            ]
        return Usage(*(sum(int(one or 0) for one in each) for each in zip(*told, strict=True)))

    @acknowledged()
    def allow(self, owner: str, quota: Quota) -> None:
        """Limit what an owner may keep; without limits, forget them."""
        with store_errors():
            for what, most in zip(("bytes", "names"), quota, strict=True):
                field = f"max_{what} {owner}"
                for root in self._roots:
                    if most is None:
                        self._client.hdel(root + scripts.SUMS, field)
                    else:
                        self._client.hset(root + scripts.SUMS, field, most)

    def _require_room(self, entries: Sequence[Entry], owner: str) -> None:
        """Take entries out again if all places together have no room for them."""
        nbytes, names = sum(entry.nbytes for entry in entries), sum(entry.names for entry in entries)
        try:
            self._totals.require_room(owner, nbytes, names, entered=True)
        except (QuotaExceeded, StoreUnavailable):
            self.discard([], [entry.key for entry in entries])
            raise


def _refuse(told: list[Any], entries: Sequence[Entry]) -> None:
    """Raise QuotaExceeded for the limit that a script has named, if it has."""
    if told[0]:
        limit, allowed, there = told[0].decode(), int(told[1]), int(told[2])
        wanted = sum(entry.names if limit.endswith("names") else entry.nbytes for entry in entries)
        raise QuotaExceeded(limit, allowed, there, wanted)
