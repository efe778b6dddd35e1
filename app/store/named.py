"""Named things in the store, each a manifest and arrays in chunks: the common part of maps, datasets and indexes.

A thing `m` of kind `map` is the key `bochner:{map:m}:manifest` and its chunks `bochner:{map:m}:<token>:<name>:<i>`, all
in the shard of its name, see `places`; the sorted set `bochner:maps` lists the names. Chunks are written first, under a
new token and with a time to live, so that a process that dies leaves nothing for long. One script then commits chunks,
manifest and list entry together, for ever or for the thing's time to live.

Each script atomically changes all keys of a thing and their entries in the account. The client library repeats a call
whose reply was lost, so a script may run twice. The scripts therefore compare the stored state with the caller's: a
repeated commit finds its own manifest and returns it; a repeated delete finds the receipt that the first one stored.

A reservation is the manifest of a thing that has no arrays yet, and names the job that makes them. The script that
submits the job stores the reservation; the one that cancels the job removes it, the one that fails the job marks it,
and the one that stores the job's result replaces it. A name whose job has failed is free again.
"""

import asyncio
import hashlib
import logging
import secrets
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import accumulate, chain
from math import prod
from threading import Lock, Thread
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
import redis
import redis.asyncio
from numpy.typing import NDArray

from app.core.arrays import octets
from app.store import account, identity, lua, pieces
from app.store.account import Account, Entry, Quota
from app.store.connection import acknowledge, at_once, by_root, check_room, inside, places_of
from app.store.errors import Gone, IsAlias, NewerVersion, StoreDamaged, StoreUnavailable, left_out, store_errors
from app.store.manifest import Manifest, now
from app.store.pieces import PIECE_BYTES

logger = logging.getLogger(__name__)

SPEC = "spec.json"
"""Name of the chunks of a thing's spec; no array has a dot in its name."""
# Longer than the time in which a client library repeats a call.
RECEIPT_SECONDS = 300


class State(StrEnum):
    """State of a thing: a job is making it, its job has failed, or it can be used."""

    building = "building"
    failed = "failed"
    ready = "ready"


class Reservation(NamedTuple):
    """Reservation of a name for the thing that a job will make."""

    key: str
    """Key of the manifest."""
    listing: str
    """Sorted set that lists the names."""
    name: str
    manifest: bytes
    pieces: list[str]
    """Keys of the chunks written for the reservation, with a time to live."""
    entry: str
    """Key of the reservation's entry in the account."""


class NameTaken(Exception):
    """A name is taken, or the reservation to be replaced is gone."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the name {name!r} is taken")


LUA = account.LUA + lua.read("named/shared", PIECE_BYTES=PIECE_BYTES, SPEC=SPEC, RECEIPT_SECONDS=RECEIPT_SECONDS)


M = TypeVar("M", bound=Manifest)
Found = TypeVar("Found")
Arrays = dict[str, NDArray[Any]]


_PAGE_BYTES = 1 << 22
# Answer of `RENEW` if something refers to the thing.
_FOR_EVER = 2
# Names examined whenever a thing with a time to live is created.
_LOOKED_AT = 8

Buffer = bytes | memoryview


class NamedStore(Generic[M]):
    """Store of things of one kind: finds, reads, lists and deletes them; subclasses create them.

    Every method raises StoreUnavailable if the store does not answer.
    """

    def __init__(self, client: redis.Redis, manifest: type[M], quota: Quota) -> None:
        self._client, self._manifest, self._places = client, manifest, places_of(client)
        self._account = Account(client, quota)
        self.check_room = self._account.check
        self._indexes = {root: inside(root, f"bochner:{manifest.kind}s") for root in self._places.roots}
        every = COMMIT, RENEW, DELETE, FORGET
        self._commit, self._renew, self._delete, self._forget = map(client.register_script, every)

    def find(self, name: str) -> M | None:
        """Return the manifest of a thing, of the one that an alias stands for; None if there is no such thing."""
        return through_alias(self.find_own, name)

    def find_own(self, name: str) -> M | None:
        """Return the manifest of the thing that itself has a name, None if there is none; IsAlias for an alias."""
        return self._parse(self._store(name), name)

    async def find_by(self, client: redis.asyncio.Redis, name: str) -> M | None:
        """Return the manifest of a thing like `find`, with an asyncio client and without blocking the event loop."""
        try:
            return await self._find_own_by(client, name)
        except IsAlias as alias:
            with suppress(IsAlias):
                if (found := await self._find_own_by(client, alias.target)) is not None:
                    return found
        return await asyncio.to_thread(self.find, name)

    async def _find_own_by(self, client: redis.asyncio.Redis, name: str) -> M | None:
        with store_errors():
            stored = cast(bytes | None, await client.get(self.key(name)))
            if stored is None:
                root = self._places.of(name)
                mark = await client.get(inside(root, identity.KEY))
                identity.compare(self._client, root, cast(bytes | None, mark))
        return self._parse(stored, name)

    def read(self, manifest: M, array_name: str) -> NDArray[Any]:
        """Return one array, after verifying its digest.

        Raises:
            Gone: the thing no longer exists.
            StoreDamaged: the array is not what was written.
        """
        entry = manifest.arrays[array_name]
        read = self._read(manifest, array_name, entry.sha256)
        return np.frombuffer(read, np.dtype(entry.dtype).newbyteorder("<")).reshape(entry.shape)

    def read_all(self, manifest: M) -> Arrays:
        """Return all arrays of a thing, by name; raises what `read` raises."""
        return {array_name: self.read(manifest, array_name) for array_name in manifest.arrays}

    def read_in_blocks(self, manifest: M, array_name: str, blocks: Sequence[slice]) -> Iterator[NDArray[Any]]:
        """Yield one array in blocks of rows, in order, so that it is never in memory as a whole.

        Raises:
            StoreDamaged: a chunk is missing, or the array is not what was written, raised before the last block.
            Gone: the thing was deleted, or has expired.
        """
        entry = manifest.arrays[array_name]
        coming = pieces.parts(self._client, self._prefix(manifest, array_name), pieces.count(entry.nbytes))
        dtype, read, digest = np.dtype(entry.dtype).newbyteorder("<"), bytearray(), hashlib.sha256()
        for block in blocks:
            shape = (block.stop - block.start, *entry.shape[1:])
            nbytes = prod(shape) * dtype.itemsize
            while len(read) < nbytes:
                try:
                    piece = next(coming)
                except StoreDamaged as error:
                    raise self._missing(manifest, array_name) from error
                digest.update(piece)
                read += piece
            if block.stop == entry.shape[0] and digest.hexdigest() != entry.sha256:
                raise StoreDamaged(f"{array_name} of {manifest.kind} {manifest.name!r} does not have its digest")
            yield np.frombuffer(bytes(read[:nbytes]), dtype).reshape(shape)
            del read[:nbytes]

    def damages(self) -> Iterator[str]:
        """Yield a sentence for each damaged thing; read all stored data and compare it with its digests."""
        for index in self._indexes.values():
            with store_errors():
                names = cast(list[bytes], self._client.zrange(index, 0, -1))
            for name in map(bytes.decode, names):
                try:
                    if (manifest := self.find(name)) is not None:
                        self.verify(manifest)
                    elif self._is_lost(name):
                        yield f"the manifest of {self._manifest.kind} {name!r} is missing: PUT it anew"
                except StoreDamaged as error:
                    yield f"{error}: DELETE it, then PUT it anew"
                except (Gone, NewerVersion):
                    continue

    def _is_lost(self, name: str) -> bool:
        """Return whether a thing has permanent chunks but no manifest; when a thing expires, all its chunks do."""
        with store_errors():
            stay = any(self._client.ttl(key) == -1 for key in self._pieces(name, b""))
        return stay and self._store(name) is None

    def verify(self, manifest: M) -> None:
        """Raise StoreDamaged unless a thing's data is exactly as it was written."""
        for array_name in manifest.arrays:
            self.read(manifest, array_name)

    @acknowledge()
    def delete(self, name: str, free: Callable[[bytes, str], None] = lambda _, __: None) -> bool:
        """Remove a thing and all its keys; False if there is none, or if another client removes it at the same time.

        `free` is called before the removal, with the stored manifest and the receipt that the removal will store.
        """
        receipt = secrets.token_hex(8)
        while (stored := self._store(name)) is not None:
            free(stored, receipt)
            if self._compare_and_remove(name, stored, receipt):
                return True
        return False

    def _compare_and_remove(self, name: str, stored: bytes, receipt: str) -> bool:
        """Remove a thing and store a receipt; False if its manifest is no longer `stored`."""
        keys = self._pieces(name, stored)
        entries = {key.rsplit(":", 2)[0] for key in keys}
        with store_errors():
            args: list[bytes | str] = [stored, name, receipt, *entries]
            return bool(self._delete(keys=[self.key(name), self._index(name), *keys], args=args))

    def page(self, prefix: str, after: str | None, limit: int) -> tuple[list[M], str | None]:
        """Return up to `limit` things in order of their names, and the name after which to continue, None at the end.

        Names start with `prefix` and come after `after`. Names of expired things count towards the limit, and are
        removed from the list; unreadable things are left out. A page of more than one thing has at most `_PAGE_BYTES`.
        """
        lowest = f"[{prefix}" if after is None or after < prefix else f"({after}"
        found = at_once(
            self._client,
            self._indexes.values(),
            lambda asked, index: asked.zrangebylex(index, lowest, f"[{prefix}\x7f", start=0, num=limit + 1),
        )
        names = [name.decode() for name in sorted(chain.from_iterable(found))[: limit + 1]]
        keys = [self.key(name) for name in names[:limit]]
        n = fitting(at_once(self._client, keys, lambda asked, key: asked.strlen(key)))
        page = names[:limit][:n]
        roots = self._places.roots
        marks = [inside(root, identity.KEY) for root in roots]
        read = at_once(self._client, [*keys[:n], *marks], lambda asked, key: asked.get(key))
        # A list must not lack what a backup will put back.
        for root, mark in zip(roots, read[len(page) :], strict=True):
            identity.compare(self._client, root, mark)
        stored = read[: len(page)]
        if None in stored:
            self._forget_expired_names([name for name, one in zip(page, stored, strict=True) if one is None])
        things = []
        for name, one in zip(page, stored, strict=True):
            with left_out(), suppress(IsAlias):  # an alias has the name of a thing that has expired
                if (thing := self._parse(one, name)) is not None:
                    things.append(thing)
        return things, page[-1] if len(names) > len(page) else None

    def _read(self, manifest: M, name: str, sha256: str) -> bytearray:
        """Return the verified bytes of an array or a spec, joined from chunks; raises what `read` raises."""
        length = manifest.lengths[name]
        buffer, end = bytearray(length), 0
        try:
            for piece in pieces.parts(self._client, self._prefix(manifest, name), pieces.count(length)):
                buffer[end : end + len(piece)] = piece
                end += len(piece)
        except StoreDamaged as error:
            raise self._missing(manifest, name) from error
        if hashlib.sha256(buffer).hexdigest() != sha256:
            called = f"{name} of {manifest.kind} {manifest.name!r}"
            raise StoreDamaged(f"{called} does not have the digest it was stored with")
        return buffer

    def _missing(self, manifest: M, name: str) -> Exception:
        """Return the error for a missing piece of an array or a spec: the thing is damaged, or it is gone."""
        there = self.find(manifest.name)
        if there is not None and there.token == manifest.token:
            return StoreDamaged(f"a piece of {name} of {manifest.kind} {manifest.name!r} is missing")
        return Gone(f"{manifest.kind} {manifest.name!r} was deleted, or has expired, while it was read")

    def _parse(self, stored: bytes | None, name: str) -> M | None:
        try:
            found = None if stored is None else self._manifest.parse(stored)
        except StoreDamaged as error:
            raise StoreDamaged(f"{self._manifest.kind} {name!r} has {error}") from error
        if found is not None and found.name != name:
            raise StoreDamaged(f"{self._manifest.kind} {name!r} has a manifest that names {found.name!r}")
        return found

    def _store(self, name: str) -> bytes | None:
        with store_errors():
            stored = cast(bytes | None, self._client.get(self.key(name)))
        if stored is None:
            identity.check(self._client, self._places.of(name))
        return stored

    def key(self, name: str, kind: str = "") -> str:
        """Return the key of the manifest of a thing, of another kind if that is given."""
        return f"{self._places.of(name)}{{{kind or self._manifest.kind}:{name}}}:manifest"

    def _entry(self, manifest: M) -> str:
        return f"{self._places.of(manifest.name)}{{{manifest.kind}:{manifest.name}}}:{manifest.token}"

    def _prefix(self, manifest: M, name: str) -> str:
        return f"{self._entry(manifest)}:{name}"

    def _piece_keys(self, manifest: M) -> list[str]:
        every = manifest.lengths.items()
        return [key for name, length in every for key in pieces.keys(self._prefix(manifest, name), length)]

    def _put(
        self,
        manifest: M,
        contents: Mapping[str, Buffer],
        ttl: int | None = None,
        replaced: M | None = None,
        announce: Callable[[list[str]], None] = lambda _: None,
        owner: str = "",
    ) -> bytes:
        """Store a thing for `ttl` seconds (None: for ever), unless its name holds something unexpected.

        `replaced` is the reservation expected under the name, which has reserved the room; None for a free name.
        `announce` is called with the keys of the chunks before they are written.

        Returns:
            The manifest under the name now, which is the given one if the thing was stored; b"" for none.

        Raises:
            QuotaExceeded: there is no room for the thing.
        """
        announce(self._piece_keys(manifest))
        self._write(manifest, contents, owner, "" if replaced is None else self._entry(replaced))
        keys = [self.key(manifest.name), self._index(manifest.name), *self._piece_keys(manifest)]
        token = "" if replaced is None else replaced.token
        args = [manifest.stored, manifest.name, token, "" if ttl is None else ttl, manifest.token]
        with acknowledge(), store_errors():
            stored = cast(bytes | None, self._commit(keys=keys, args=args))
        if stored is None:
            raise StoreUnavailable(f"pieces of {manifest.kind} {manifest.name!r} expired before they were all written")
        return stored

    def _write(
        self, manifest: M, contents: Mapping[str, Buffer], owner: str, within: str = "", promised: int = 0
    ) -> None:
        """Write the chunks of a thing, with a time to live; QuotaExceeded if there is no room for them.

        `within` is the entry that has reserved the room; `promised` is the bytes to reserve for the thing's successor.
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

    def _change_lifetime(self, there: M, lives: Callable[[M], tuple[dict[str, Any], int | None]]) -> M | None:
        """Change a thing's time to live from now on; StoreDamaged if chunks of it are missing.

        `lives` takes the current manifest, and returns the fields to change and the seconds that the keys will live,
        None for ever.

        Returns:
            The new manifest; None if the thing is gone, or another client changes it at the same time.
        """
        if (now_there := self._read_stored(there)) is None:
            return None
        stored, found = now_there
        changes, ttl = lives(found)
        renewed = found.model_copy(update={"schema_version": self._manifest.newest, **changes})
        args = [renewed.token, stored, renewed.stored, "" if ttl is None else ttl]
        with store_errors():
            told = self._renew(keys=[self.key(there.name), *self._piece_keys(there)], args=args)
        if told is None:
            raise StoreDamaged(f"pieces of {there.kind} {there.name!r} are missing")
        if told == _FOR_EVER:
            return self._change_lifetime(there, lambda found: (lives(found)[0] | {"expires_at": None}, None))
        return renewed if told else None

    @acknowledge()
    def confirm(self, there: M) -> M | None:
        """Return a thing that needs no change once replicas acknowledge it; None if it is gone."""
        return None if self._read_stored(there) is None else there

    def _read_stored(self, there: M) -> tuple[bytes, M] | None:
        """Return the current manifest, as bytes and parsed; None if the thing is gone or another has its name."""
        stored = self._store(there.name)
        with suppress(IsAlias):
            found = self._parse(stored, there.name)
            return None if stored is None or found is None or found.token != there.token else (stored, found)
        return None

    def _tidy(self, name: str) -> None:
        """Remove some names of expired things from the list of a name, so that an unread list does not grow for ever.

        As eight names are examined for each one added, at most about one name in eight is of an expired thing.
        """
        with suppress(StoreUnavailable), store_errors():  # the request itself has succeeded
            names = cast(list[bytes], self._client.zrandmember(self._index(name), _LOOKED_AT))
            self._forget_expired_names([name.decode() for name in names])

    def _forget_expired_names(self, names: list[str]) -> None:
        """Remove names without a manifest from their lists. Errors are ignored, as no answer depends on it."""
        named = {self.key(name): name for name in names}
        for root, keys in by_root(named).items():
            with suppress(StoreUnavailable), store_errors():
                self._forget(keys=[self._indexes[root], *keys], args=[named[key] for key in keys])

    def _index(self, name: str) -> str:
        """Return the key of the list that has a name."""
        return self._indexes[self._places.of(name)]

    def _pieces(self, name: str, stored: bytes) -> list[str]:
        """Return the keys of a thing's chunks; if its manifest cannot be read, find them by prefix."""
        with suppress(StoreDamaged, NewerVersion):
            if (found := self._parse(stored, name)) is not None:
                return self._piece_keys(found)
        key = self.key(name)
        with store_errors():
            keys = list(self._client.scan_iter(match=key.removesuffix("manifest") + "*"))
        return [piece.decode() for piece in keys if piece != key.encode()]


def through_alias(find: Callable[[str], Found | None], name: str) -> Found | None:
    """Return what `find` finds under a name, or under the name that this one is an alias of; None if there is none."""
    before = None
    while True:
        try:
            return find(name)
        except IsAlias as alias:
            if alias.target == before:
                return None
            before = alias.target
            with suppress(IsAlias):  # an alias of an alias stands for nothing
                if (found := find(before)) is not None:
                    return found
            # The alias may have moved, and what it stood for be deleted, since it was read: read it again.


def contents(arrays: Arrays) -> dict[str, Buffer]:
    """Return the bytes of arrays, by name."""
    return {name: octets(array) for name, array in arrays.items()}


def end(ttl: int | None) -> datetime | None:
    """Return when a thing may expire; rounded down and computed before storing, so it lives at least until then."""
    return None if ttl is None else now() + timedelta(seconds=ttl)


def fitting(lengths: Iterable[int]) -> int:
    """Return how many of the first things fit on a page, given their lengths in bytes; at least one."""
    return max(1, bisect_right(list(accumulate(lengths)), _PAGE_BYTES))


_STAND = LUA + lua.read("named/stand")
COMMIT, RENEW, DELETE = (_STAND + lua.read(f"named/{name}") for name in ("commit", "renew", "delete"))


FORGET = lua.read("named/forget")


# Fraction of a thing's time to live. A use within this time after the last recorded one is not recorded; otherwise each
# use would write to the store.
_UNNOTED = 1 / 16
# Pause between two looks at what is in use for long. The shortest time to live is a second.
_NOTE_SECONDS = 0.25


class LivingManifest(Manifest):
    """Manifest of a thing that a job may make and that may have a time to live."""

    state: State = State.ready
    job: str | None = None
    """Id of the job that makes the thing, or has failed to; None if the thing is ready."""
    error: dict[str, Any] | None = None
    """Why the job failed."""
    ttl: int | None = None
    """Time to live in seconds after the last use; None for ever."""
    expires_at: datetime | None = None
    """Time when the thing expires unless it is used before; None for never, and while a job makes the thing."""

    @property
    def is_due(self) -> bool:
        """Whether a use now must be recorded to extend the thing's life."""
        if self.ttl is None or self.expires_at is None:
            return False
        return (self.expires_at - datetime.now(UTC)).total_seconds() < self.ttl * (1 - _UNNOTED)


L = TypeVar("L", bound=LivingManifest)


class LivingStore(NamedStore[L]):
    """Store of things with a time to live: renews them and reserves names; see `NamedStore` for the rest."""

    def __init__(self, client: redis.Redis, manifest: type[L], quota: Quota = account.UNLIMITED) -> None:
        super().__init__(client, manifest, quota)
        self._using, self._noter = Lock(), cast("Thread | None", None)
        self._used = Counter[tuple[str, str]]()
        """Names and tokens of what is in use, and how often."""

    @acknowledge()
    def renew(self, there: L, ttl: int | None) -> L | None:
        """Make a thing live for `ttl` seconds after this and each later use; None for ever.

        While a job makes the thing, its time to live starts only when the job succeeds or fails.

        Returns:
            The new manifest; None if the thing is gone, or another client changes it at the same time.
        """
        if ttl is None and there.ttl is None:
            return self.confirm(there)
        return self._change_lifetime(there, lambda found: self._living(found, ttl))

    def note_use(self, there: L) -> None:
        """Record a use that extends a thing's life. Another client may record its use at the same time."""
        self._change_lifetime(there, lambda found: self._living(found, found.ttl))

    @contextmanager
    def using(self, *things: L) -> Iterator[None]:
        """Record that things are in use for as long as a block runs, so that none of them expires meanwhile."""
        these = Counter((one.name, one.token) for one in things)
        with self._using:
            self._used += these
            if self._noter is None or not self._noter.is_alive():
                self._noter = Thread(target=self._note_uses, name="uses", daemon=True)
                self._noter.start()
        try:
            yield
        finally:
            with self._using:
                self._used -= these

    def _note_uses(self) -> None:
        """Note the uses of what is in use now and then, until nothing is. What is gone is left to who uses it."""
        while True:
            time.sleep(_NOTE_SECONDS)
            with self._using:
                used = [*self._used]
                if not used:
                    self._noter = None
                    return
            for name, token in used:
                with suppress(StoreUnavailable, StoreDamaged, NewerVersion, IsAlias):
                    found = self.find_own(name)
                    if found is not None and found.token == token and found.is_due:
                        self.note_use(found)

    @staticmethod
    def _living(found: L, ttl: int | None) -> tuple[dict[str, Any], int | None]:
        seconds = ttl if found.state is State.ready else None
        return {"ttl": ttl, "expires_at": end(seconds)}, seconds

    def _reserve(self, manifest: L, contents: Mapping[str, Buffer], owner: str, promised: int = 0) -> Reservation:
        """Prepare the reservation of a name; the script that submits the job stores it. Arguments as for `_write`."""
        self._write(manifest, contents, owner, promised=promised)
        at = self.key(manifest.name), self._index(manifest.name), manifest.name
        return Reservation(*at, manifest.stored, self._piece_keys(manifest), self._entry(manifest))
