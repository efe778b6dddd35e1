"""Maps in the store.

A map `m` is the key `bochner:{map:m}:manifest` and its pieces `bochner:{map:m}:<token>:<array>:<i>`; the sorted set
`bochner:maps` lists the names. Pieces are written first, under a token of their own and with a time to live, so that
a creator that dies leaves nothing for long; one script then makes pieces, manifest and listing permanent together.
"""

import builtins
import hashlib
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, cast

import numpy as np
import redis
from numpy.typing import NDArray

from app.store.errors import StoreDamaged, StoreUnavailable, store_errors
from app.store.manifest import PIECE_BYTES, ArrayEntry, Manifest, digest, now
from app.store.pending import Pending, parse

logger = logging.getLogger(__name__)

INDEX = "bochner:maps"
# Seconds that pieces without a manifest stay.
UNCOMMITTED_TTL = 900

# A client library repeats a call whose reply was lost, and the first one may have been carried out. Both scripts
# therefore compare what is there with what the caller means: a repeated commit finds its own manifest and returns
# it, a repeated delete finds nothing left to do.
_COMMIT = """
local present = redis.call('GET', KEYS[1])
local replaced = ARGV[3] or ''
if present and present ~= replaced then return present end
if replaced ~= '' and not present then return false end
for i = 3, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then return false end
end
for i = 3, #KEYS do redis.call('PERSIST', KEYS[i]) end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], 0, ARGV[2])
return ARGV[1]
"""
_DELETE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[2])
for i = 3, #KEYS do redis.call('UNLINK', KEYS[i]) end
"""


class NewMap(NamedTuple):
    """A map to be created."""

    name: str
    spec: str
    arrays: dict[str, NDArray[Any]]
    n_frequencies: int
    n_output: int
    generator: dict[str, str]
    warnings: tuple[str, ...]
    parameter_stream: int | None = None


class Withdrawn(Exception):
    """Another thing stands under the name than the caller knew of, or nothing any more."""


class MapStore:
    """Create, find, list, read and delete maps.

    Every method raises StoreUnavailable where the store does not answer.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._commit = client.register_script(_COMMIT)
        self._delete = client.register_script(_DELETE)

    def find(self, name: str) -> Manifest | None:
        """The manifest of a map, None if there is none, or none yet."""
        standing = self.standing(name)
        return standing if isinstance(standing, Manifest) else None

    def standing(self, name: str) -> Manifest | Pending | None:
        """The manifest of a map, or what stands for it; None if there is nothing."""
        stored = self._stored(name)
        return None if stored is None else parse(stored)

    def create(
        self,
        new: NewMap,
        instead_of: Pending | None = None,
        announce: Callable[[builtins.list[str]], None] = lambda _: None,
    ) -> tuple[Manifest, bool]:
        """Store a map unless its name is taken.

        Args:
            new: the map.
            instead_of: what stands for it, and must still stand there.
            announce: is told the keys of the pieces before they are written.

        Returns:
            The manifest that stands under the name now, and whether it is this call's.

        Raises:
            Withdrawn: `instead_of` does not stand there, or another map is being built there.
        """
        arrays = {name: np.ascontiguousarray(array) for name, array in new.arrays.items()}
        entries = {name: ArrayEntry.of(array) for name, array in arrays.items()}
        manifest = Manifest(
            token=secrets.token_hex(8),
            name=new.name,
            spec=new.spec,
            arrays=entries,
            digest=digest(new.spec, entries, new.parameter_stream),
            n_frequencies=new.n_frequencies,
            n_output=new.n_output,
            created_at=now(),
            generator=new.generator,
            parameter_stream=new.parameter_stream,
            warnings=new.warnings,
        )
        pieces = _piece_keys(manifest)
        announce(pieces)
        try:
            for array_name, array in arrays.items():
                self._write(manifest, array_name, array)
        except StoreUnavailable:
            # A store that is full must not stay full of what was never committed.
            with suppress(StoreUnavailable):
                self._unlink(pieces)
            raise
        replaced = b"" if instead_of is None else instead_of.stored
        with store_errors():
            stored = self._commit(
                keys=[_key(new.name), INDEX, *pieces], args=[manifest.model_dump_json(), new.name, replaced]
            )
        if stored is None and instead_of is not None and self._stored(new.name) is None:
            self._unlink(pieces)
            raise Withdrawn(new.name)
        if stored is None:
            raise StoreUnavailable(f"pieces of map {new.name!r} expired before they were all written")
        standing = parse(cast(bytes, stored))
        created = isinstance(standing, Manifest) and standing.token == manifest.token
        if not created:
            self._unlink(pieces)
        if isinstance(standing, Pending):
            raise Withdrawn(new.name)
        return standing, created

    def delete(self, name: str) -> bool:
        """Remove a map and every key of it; False if there is none."""
        stored = self._stored(name)
        if stored is None:
            return False
        with store_errors():
            # Whatever it answers, the map that was there is gone: deleted now, by a lost first try, or by another.
            self._delete(keys=[_key(name), INDEX, *self._pieces(name, stored)], args=[stored, name])
        return True

    def list(self, prefix: str, after: str | None, limit: int) -> tuple[list[Manifest | Pending], str | None]:
        """Up to `limit` maps in order of their names, and the name to go on after, None at the end.

        Args:
            prefix: names must start with it.
            after: names must come after it.
            limit: how many maps at the most.
        """
        lowest = f"[{prefix}" if after is None or after < prefix else f"({after}"
        with store_errors():
            names = cast(
                list[bytes],
                self._client.zrangebylex(INDEX, lowest, f"[{prefix}\x7f", start=0, num=limit + 1),
            )
            page = [name.decode() for name in names[:limit]]
            stored = cast(list[bytes | None], self._client.mget([_key(name) for name in page])) if page else []
        return [manifest for manifest in map(_readable, stored) if manifest is not None], page[-1] if len(
            names
        ) > limit else None

    def read(self, manifest: Manifest, array_name: str) -> NDArray[Any] | None:
        """One frozen array, its digest verified; None if the map was deleted meanwhile.

        Raises:
            StoreDamaged: the array is not what was written.
        """
        entry = manifest.arrays[array_name]
        buffer = bytearray(entry.nbytes)
        for i in range(entry.pieces):
            with store_errors():
                piece = cast(bytes | None, self._client.get(_piece_key(manifest, array_name, i)))
            if piece is None:
                if self.find(manifest.name) == manifest:
                    raise StoreDamaged(f"piece {i} of {array_name} of map {manifest.name!r} is missing")
                return None
            buffer[i * PIECE_BYTES : (i + 1) * PIECE_BYTES] = piece
        if hashlib.sha256(buffer).hexdigest() != entry.sha256:
            raise StoreDamaged(f"{array_name} of map {manifest.name!r} does not have the digest it was stored with")
        return np.frombuffer(buffer, np.dtype(entry.dtype).newbyteorder("<")).reshape(entry.shape)

    def _stored(self, name: str) -> bytes | None:
        with store_errors():
            return cast(bytes | None, self._client.get(_key(name)))

    def _pieces(self, name: str, stored: bytes) -> "builtins.list[str]":
        """Keys of a map's pieces, found by their names where its manifest cannot be read."""
        try:
            there = parse(stored)
            return [] if isinstance(there, Pending) else _piece_keys(there)
        except StoreDamaged:
            found = self._client.scan_iter(match=_key(name).removesuffix("manifest") + "*")
            return [key.decode() for key in found if key != _key(name).encode()]

    def _unlink(self, pieces: "builtins.list[str]") -> None:
        with store_errors():
            for piece in pieces:
                self._client.unlink(piece)

    def _write(self, manifest: Manifest, array_name: str, array: NDArray[Any]) -> None:
        # One piece a call: a pipeline of many would hold up every other client of the store.
        data = array.data.cast("B")
        for i in range(manifest.arrays[array_name].pieces):
            piece = data[i * PIECE_BYTES : (i + 1) * PIECE_BYTES]
            with store_errors():
                self._client.set(_piece_key(manifest, array_name, i), piece, ex=UNCOMMITTED_TTL)


def _readable(stored: bytes | None) -> Manifest | Pending | None:
    """A manifest, or None for one that is gone or that this version cannot read: the others must still be listed."""
    if stored is None:
        return None
    try:
        return parse(stored)
    except StoreDamaged as error:
        logger.error("left out of the list: %s", error)
        return None


def place(name: str) -> tuple[str, str]:
    """The key under which a map, or what stands for it, is found, and the sorted set that lists its name."""
    return _key(name), INDEX


def _key(name: str) -> str:
    return f"bochner:{{map:{name}}}:manifest"


def _piece_key(manifest: Manifest, array_name: str, i: int) -> str:
    return f"bochner:{{map:{manifest.name}}}:{manifest.token}:{array_name}:{i}"


def _piece_keys(manifest: Manifest) -> list[str]:
    return [
        _piece_key(manifest, array_name, i)
        for array_name, entry in manifest.arrays.items()
        for i in range(entry.pieces)
    ]
