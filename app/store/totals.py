"""What a store of several places keeps in all, and the refusal of more.

No script sees the sums of all places. So what is to be written is entered in its own place first, and then all sums are
read: where they pass a limit, it is taken out again. Two that come at once may then both be refused where there was
room for one; what was let in never passes the limit.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import redis

from app.store import account_scripts as scripts
from app.store.errors import QuotaExceeded, store_errors
from app.store.places import places_of, root_of


class _Sums(NamedTuple):
    nbytes: int
    names: int
    own_nbytes: int
    """Of one owner, like those that follow."""
    own_names: int
    most_own_nbytes: int | None
    most_own_names: int | None


class Totals:
    """Sums over the places of a store. Methods raise StoreUnavailable where one does not answer."""

    def __init__(self, client: redis.Redis, most_bytes: int | None, most_names: int | None) -> None:
        self._client, self._most_bytes, self._most_names = client, most_bytes, most_names
        self._sums = [root + scripts.SUMS for root in places_of(client).roots]
        self._sweep = client.register_script(scripts.USAGE)

    def require_room(self, owner: str, nbytes: int, names: int, entered: bool) -> None:
        """Raise QuotaExceeded if there is no room for so much, which is entered already or is not."""
        if self._passed(owner, nbytes, names, entered) is None:
            return
        for sums in self._sums:  # what has expired there may be counted still
            with store_errors():
                self._sweep(keys=[sums], args=[owner])
        refusal = self._passed(owner, nbytes, names, entered)
        if refusal is not None:
            raise refusal

    def owner_of(self, entry: str) -> str:
        """Whose an entry is; "" for nobody's, and for one that is not there."""
        with store_errors():
            found = cast("bytes | None", self._client.hget(root_of(entry) + scripts.ENTRIES, entry))
        return "" if found is None else found.decode().split(" ", 2)[2]

    def _passed(self, owner: str, nbytes: int, names: int, entered: bool) -> QuotaExceeded | None:
        for limit, most, there, wanted in self._limits(self._read(owner), owner, nbytes, names):
            before = there - wanted if entered else there
            if most is not None and wanted > 0 and before + wanted > most:
                return QuotaExceeded(limit, most, before, wanted)
        return None

    def _limits(self, sums: _Sums, owner: str, nbytes: int, names: int) -> Iterator[tuple[str, int | None, int, int]]:
        yield "max_store_bytes", self._most_bytes, sums.nbytes, nbytes
        yield "max_store_names", self._most_names, sums.names, names
        if owner:
            yield "key_bytes", sums.most_own_nbytes, sums.own_nbytes, nbytes
            yield "key_names", sums.most_own_names, sums.own_names, names

    def _read(self, owner: str) -> _Sums:
        own = [f"{what} {owner}" for what in ("bytes", "names", "max_bytes", "max_names")]
        with store_errors(), self._client.pipeline(transaction=False) as asked:
            for sums in self._sums:
                asked.hmget(sums, ["bytes", "names", *own])
            told = cast("list[list[Any]]", asked.execute())
        *added, most_bytes, most_names = zip(*told, strict=True)
        totals = [sum(int(one or 0) for one in each) for each in added]
        # The limits of an owner stand in every place; one that is not there yet has none.
        limits = [max((int(one) for one in each if one is not None), default=None) for each in (most_bytes, most_names)]
        return _Sums(totals[0], totals[1], totals[2], totals[3], *limits)
