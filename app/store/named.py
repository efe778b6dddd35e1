"""Named things in the store, each a manifest and arrays in pieces: what maps and datasets have in common.

Their keys are told in app/store/named_reader.py; the sorted set `bochner:maps` lists the names. Pieces are written
first, under a token of their own and with a time to live, so that a creator that dies leaves nothing for long; one
script then makes pieces, manifest and listing stay together, for ever or for the time that the thing has to live.
"""

import logging
import secrets
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import accumulate, chain
from typing import Any, cast

import redis

from app.core.arrays import octets
from app.store import identity, pieces, scripts
from app.store.account import Account, Entry, Quota
from app.store.clients import Known, values
from app.store.confirmed import acknowledged
from app.store.connection import check_room
from app.store.errors import NewerVersion, StoreDamaged, StoreUnavailable, store_errors
from app.store.manifest import now
from app.store.named_reader import Arrays, M, NamedReader
from app.store.places import by_root, inside

logger = logging.getLogger(__name__)

_PAGE_BYTES = 1 << 22
# What `scripts.RENEW` gives where indexes are over a map.
_FOR_EVER = 2
# Names looked at with each new thing that will expire.
_LOOKED_AT = 8

Buffer = bytes | memoryview


class NamedStore(NamedReader[M]):
    """List and delete things of one kind, beside reading them; their stores add how they are created.

    Every method raises StoreUnavailable where the store does not answer.
    """

    def __init__(self, client: redis.Redis, manifest: type[M], quota: Quota) -> None:
        super().__init__(client, manifest)
        self._account = Account(client, quota)
        self.check_room = self._account.check
        self._indexes = {root: inside(root, f"bochner:{manifest.kind}s") for root in self._places.roots}
        every = scripts.COMMIT, scripts.RENEW, scripts.DELETE, scripts.FORGET
        self._commit, self._renew, self._delete, self._forget = map(client.register_script, every)

    @acknowledged()
    def delete(self, name: str, free: Callable[[bytes, str], None] = lambda _, __: None) -> bool:
        """Remove a thing and every key of it; False if there is none, or if another removes it at the same time.

        `free` is called before, with the manifest, and with the receipt that is left by what removes the thing.
        """
        receipt = secrets.token_hex(8)
        while (stored := self._stored(name)) is not None:
            free(stored, receipt)
            keys = self._pieces(name, stored)
            entries = {key.rsplit(":", 2)[0] for key in keys}
            with store_errors():
                args: list[bytes | str] = [stored, name, receipt, *entries]
                if self._delete(keys=[self._key(name), self._index(name), *keys], args=args):
                    return True
        return False

    def page(self, prefix: str, after: str | None, limit: int) -> tuple[list[M], str | None]:
        """Up to `limit` things in order of their names, and the name to go on after, None at the end.

        Names start with the prefix and come after `after`. Those of things that expired take part in the count, and are
        then forgotten; what cannot be read is left out. No page has more than `_PAGE_BYTES`, unless of a single thing.
        """
        lowest = f"[{prefix}" if after is None or after < prefix else f"({after}"
        with store_errors():
            with self._client.pipeline(transaction=False) as found:
                for index in self._indexes.values():
                    found.zrangebylex(index, lowest, f"[{prefix}\x7f", start=0, num=limit + 1)
                listed = sorted(chain.from_iterable(cast(list[list[bytes]], found.execute())))
            names = [name.decode() for name in listed[: limit + 1]]
            keys = [self._key(name) for name in names[:limit]]
            with self._client.pipeline(transaction=False) as lengths:
                for key in keys:
                    lengths.strlen(key)
                n = fitting(cast(list[int], lengths.execute()))
            page = names[:limit][:n]
            stored = values(self._client, keys[:n]) if page else []
        if not page:
            for root in self._places.roots:
                identity.check(self._client, root)
        if None in stored:
            self._forget_expired([name for name, one in zip(page, stored, strict=True) if one is None])
        things = []
        for one in stored:
            if one is not None:
                try:
                    things.append(self._manifest.parse(one))
                except (StoreDamaged, NewerVersion) as error:  # the others must still be listed
                    logger.error("left out of the list: %s", error)
        return things, page[-1] if len(names) > len(page) else None

    def _put(
        self,
        manifest: M,
        contents: Mapping[str, Buffer],
        ttl: int | None = None,
        replaced: M | None = None,
        announce: Callable[[list[str]], None] = lambda _: None,
        owner: str = "",
    ) -> bytes:
        """Store a thing for `ttl` seconds, None for ever, unless something else has its name than is expected.

        `replaced` is what is expected there, and was given the room; None for nothing. `announce` is told the keys of
        the pieces before they are written.

        Returns:
            What stands under the name now: the manifest, if the thing was stored, b"" for nothing.

        Raises:
            QuotaExceeded: there is no room for it.
        """
        announce(self._piece_keys(manifest))
        self._write(manifest, contents, owner, "" if replaced is None else self._entry(replaced))
        stored = self._committed(manifest, "" if replaced is None else replaced.token, ttl)
        if stored is None:
            raise StoreUnavailable(f"pieces of {manifest.kind} {manifest.name!r} expired before they were all written")
        return stored

    def _write(
        self, manifest: M, contents: Mapping[str, Buffer], owner: str, within: str = "", promised: int = 0
    ) -> None:
        """Write what is kept in pieces, with a time to live; QuotaExceeded if there is no room for it.

        `within` is the entry that was given the room; `promised` is more room, for what will take this one's place.
        """
        entry = Entry(self._entry(manifest), sum(manifest.lengths.values()) + promised, 1)
        check_room(self._client, entry.nbytes)
        deadline = self._account.charge([entry], owner, within)
        try:
            for name, data in contents.items():
                pieces.write(self._client, self._prefix(manifest, name), data, deadline)
        except StoreUnavailable:
            self._account.discard(self._piece_keys(manifest), [entry.key])
            raise

    @acknowledged()
    def _committed(self, manifest: M, replaced: str, ttl: int | None) -> bytes | None:
        """Commit a manifest in the place of what has a token, "" for a free name; what `scripts.COMMIT` gives."""
        keys = [self._key(manifest.name), self._index(manifest.name), *self._piece_keys(manifest)]
        args = [manifest.stored, manifest.name, replaced, "" if ttl is None else ttl, manifest.token]
        with store_errors():
            return cast(bytes | None, self._commit(keys=keys, args=args))

    def _renewed(self, there: M, lives: Callable[[M], tuple[dict[str, Any], int | None]]) -> M | None:
        """Have a thing live for another time from now on; StoreDamaged if pieces of it are missing.

        `lives` is given the manifest as it stands, and gives what changes of it, and the seconds that its keys live,
        None for ever.

        Returns:
            The manifest as it stands then; None if the thing is gone, or another changes it at the same time.
        """
        if (now_there := self._as_stored(there)) is None:
            return None
        stored, found = now_there
        changes, ttl = lives(found)
        renewed = found.model_copy(update={"schema_version": self._manifest.newest, **changes})
        args = [stored, renewed.stored, "" if ttl is None else ttl, renewed.token]
        with store_errors():
            told = self._renew(keys=[self._key(there.name), *self._piece_keys(there)], args=args)
        if told is None:
            raise StoreDamaged(f"pieces of {there.kind} {there.name!r} are missing")
        if told == _FOR_EVER:
            return self._renewed(there, lambda found: (lives(found)[0] | {"expires_at": None}, None))
        return renewed if told else None

    @acknowledged()
    def _confirmed(self, there: M) -> M | None:
        """A thing that is found as it was wanted; None if it is gone. Replicas may not have it yet."""
        if not (isinstance(self._client, Known) and self._client.replicas):
            return there
        return None if self._as_stored(there) is None else there

    def _as_stored(self, there: M) -> tuple[bytes, M] | None:
        """A manifest as it is stored now, in bytes and read; None if the thing is gone, or another has its name."""
        stored = self._stored(there.name)
        found = self._parsed(stored)
        return None if stored is None or found is None or found.token != there.token else (stored, found)

    def _tidy(self, name: str) -> None:
        """Forget some names beside one, of what expired, so that a list that nobody looks at does not grow for ever.

        With eight names looked at for each that is added, at most about one in eight is of a thing that is gone.
        """
        with suppress(StoreUnavailable), store_errors():  # what was added is there, and that is what was asked for
            names = cast(list[bytes], self._client.zrandmember(self._index(name), _LOOKED_AT))
            self._forget_expired([name.decode() for name in names])

    def _forget_expired(self, names: list[str]) -> None:
        """Take names off the list that have no manifest any more; what is asked for never hangs on that."""
        named = {self._key(name): name for name in names}
        for root, keys in by_root(named).items():
            with suppress(StoreUnavailable), store_errors():
                self._forget(keys=[self._indexes[root], *keys], args=[named[key] for key in keys])

    def _index(self, name: str) -> str:
        """The list that a name stands in."""
        return self._indexes[self._places.of(name)]

    def _pieces(self, name: str, stored: bytes) -> list[str]:
        """Keys of a thing's pieces, found by their names where its manifest cannot be read."""
        try:
            return self._piece_keys(self._manifest.parse(stored))
        except (StoreDamaged, NewerVersion):
            key = self._key(name)
            with store_errors():
                found = list(self._client.scan_iter(match=key.removesuffix("manifest") + "*"))
            return [piece.decode() for piece in found if piece != key.encode()]


def contents(arrays: Arrays) -> dict[str, Buffer]:
    """The bytes of arrays."""
    return {name: octets(array) for name, array in arrays.items()}


def end(ttl: int | None) -> datetime | None:
    """When a thing may be gone: rounded down, and reckoned before it is stored, so it lives so long at least."""
    return None if ttl is None else now() + timedelta(seconds=ttl)


def fitting(lengths: Iterable[int]) -> int:
    """How many of the first things make a page, by their lengths in bytes; one at the least."""
    return max(1, bisect_right(list(accumulate(lengths)), _PAGE_BYTES))
