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
from app.store.errors import QuotaExceeded, StoreUnavailable, store_errors

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
        self._client = client
        self._most = ["" if most is None else most for most in quota]
        every = scripts.CHARGE, scripts.CHECK, scripts.DISCARD, scripts.USAGE, scripts.TIDY
        self._charge, self._check, self._discard, self._usage, self._tidy = map(client.register_script, every)

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
        with store_errors():
            told = cast("list[Any]", self._charge(args=[*self._most, owner, within, UNCOMMITTED_TTL, *args]))
        _refuse(told, entries)
        return int(told[1])

    def check(self, nbytes: int, owner: str = "") -> None:
        """Raise QuotaExceeded if there is no room for one more name with so many bytes."""
        with store_errors():
            told = cast("list[Any] | None", self._check(args=[*self._most, owner, nbytes, 1]))
        _refuse(told or [b""], [Entry("", nbytes, 1)])

    def discard(self, keys: Sequence[str], entries: Sequence[str]) -> None:
        """Remove keys and entries that still have a time to live, as what they were written for has failed.

        A store that is full must not stay full of what was never committed; one that is away removes them in time.
        """
        with suppress(StoreUnavailable), store_errors():
            self._discard(keys=keys, args=entries)

    def usage(self, owner: str = "") -> Usage:
        """How much an owner keeps, or all together."""
        with store_errors():
            return Usage(*(int(one or 0) for one in cast("list[Any]", self._usage(args=[owner]))))

    def allow(self, owner: str, quota: Quota) -> None:
        """Limit what an owner may keep; without limits, forget them."""
        with store_errors():
            for what, most in zip(("bytes", "names"), quota, strict=True):
                field = f"max_{what} {owner}"
                if most is None:
                    self._client.hdel("bochner:account", field)
                else:
                    self._client.hset("bochner:account", field, most)

    def unknown(self, entries: Sequence[str]) -> set[str]:
        """Those of so many entries that the account does not have."""
        if not entries:
            return set()
        with store_errors():
            found = cast("list[bytes | None]", self._client.hmget(scripts.ENTRIES, entries))
        return {entry for entry, there in zip(entries, found, strict=True) if there is None}

    def tidy(self) -> None:
        """Forget what a version without account has removed, and let end what it has let end."""
        cursor = 0
        while True:
            with store_errors():
                cursor, found = cast(
                    "tuple[int, Any]", self._client.hscan(scripts.ENTRIES, cursor, count=scripts.AT_ONCE)
                )
                self._tidy(args=list(found))
            if not cursor:
                return


def _refuse(told: list[Any], entries: Sequence[Entry]) -> None:
    """Raise QuotaExceeded for the limit that a script has named, if it has."""
    if told[0]:
        limit, allowed, there = told[0].decode(), int(told[1]), int(told[2])
        wanted = sum(entry.names if limit.endswith("names") else entry.nbytes for entry in entries)
        raise QuotaExceeded(limit, allowed, there, wanted)
