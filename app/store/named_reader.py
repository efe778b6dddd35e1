"""Finding named things in the store, and reading their arrays: each is a manifest and arrays in pieces.

A thing `m` of a kind `map` is the key `bochner:{map:m}:manifest` and its pieces `bochner:{map:m}:<token>:<name>:<i>`,
all in the place of its name, see `places`.
"""

import hashlib
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Generic, TypeVar, cast

import numpy as np
import redis
import redis.asyncio
from numpy.typing import NDArray

from app.store import identity, pieces
from app.store.errors import Gone, StoreDamaged, store_errors
from app.store.manifest import Manifest
from app.store.places import inside, places_of

M = TypeVar("M", bound=Manifest)
Arrays = dict[str, NDArray[Any]]


class NamedReader(Generic[M]):
    """Find and read things of one kind.

    Every method raises StoreUnavailable where the store does not answer.
    """

    def __init__(self, client: redis.Redis, manifest: type[M]) -> None:
        self._client = client
        self._manifest = manifest
        self._places = places_of(client)

    def find(self, name: str) -> M | None:
        """The manifest of a thing, None if there is none."""
        return self._parsed(self._stored(name))

    async def find_by(self, client: redis.asyncio.Redis, name: str) -> M | None:
        """The manifest of a thing, None if there is none: `find` for a client of an event loop, which it keeps free."""
        with store_errors():
            stored = cast(bytes | None, await client.get(self._key(name)))
            if stored is None:
                root = self._places.of(name)
                mark = await client.get(inside(root, identity.KEY))
                identity.compare(self._client, root, cast(bytes | None, mark))
        return self._parsed(stored)

    def read(self, manifest: M, array_name: str) -> NDArray[Any]:
        """One array, its digest verified.

        Raises:
            Gone: the thing is not there any more.
            StoreDamaged: the array is not what was written.
        """
        entry = manifest.arrays[array_name]
        read = self._read(manifest, array_name, entry.sha256)
        return np.frombuffer(read, np.dtype(entry.dtype).newbyteorder("<")).reshape(entry.shape)

    def read_all(self, manifest: M) -> Arrays:
        """All arrays of a thing, by name; raises what `read` raises."""
        return {array_name: self.read(manifest, array_name) for array_name in manifest.arrays}

    def read_in_blocks(self, manifest: M, array_name: str, blocks: Sequence[slice]) -> Iterator[NDArray[Any]]:
        """One array, some rows at a time in order, so that it never stands in memory as a whole.

        Raises:
            StoreDamaged: a piece is missing, or, before the last block is given, the array is not what was written.
        """
        entry = manifest.arrays[array_name]
        coming = pieces.parts(self._client, self._prefix(manifest, array_name), pieces.count(entry.nbytes))
        dtype, read, digest = np.dtype(entry.dtype).newbyteorder("<"), bytearray(), hashlib.sha256()
        for block in blocks:
            shape = (block.stop - block.start, *entry.shape[1:])
            nbytes = prod(shape) * dtype.itemsize
            while len(read) < nbytes:
                piece = next(coming)
                digest.update(piece)
                read += piece
            if block.stop == entry.shape[0] and digest.hexdigest() != entry.sha256:
                raise StoreDamaged(f"{array_name} of {manifest.kind} {manifest.name!r} does not have its digest")
            yield np.frombuffer(bytes(read[:nbytes]), dtype).reshape(shape)
            del read[:nbytes]

    def _read(self, manifest: M, name: str, sha256: str) -> bytearray:
        """The bytes of an array or a spec, put together from their pieces and verified; raises what `read` raises."""
        length = manifest.lengths[name]
        buffer, end = bytearray(length), 0
        called = f"{name} of {manifest.kind} {manifest.name!r}"
        try:
            for piece in pieces.parts(self._client, self._prefix(manifest, name), pieces.count(length)):
                buffer[end : end + len(piece)] = piece
                end += len(piece)
        except StoreDamaged as error:
            there = self.find(manifest.name)
            if there is not None and there.token == manifest.token:
                raise StoreDamaged(f"a piece of {called} is missing") from error
            raise Gone from error
        if hashlib.sha256(buffer).hexdigest() != sha256:
            raise StoreDamaged(f"{called} does not have the digest it was stored with")
        return buffer

    def _parsed(self, stored: bytes | None) -> M | None:
        return None if stored is None else self._manifest.parse(stored)

    def _stored(self, name: str) -> bytes | None:
        with store_errors():
            stored = cast(bytes | None, self._client.get(self._key(name)))
        if stored is None:
            identity.check(self._client, self._places.of(name))
        return stored

    def _key(self, name: str) -> str:
        return f"{self._places.of(name)}{{{self._manifest.kind}:{name}}}:manifest"

    def _entry(self, manifest: M) -> str:
        return f"{self._places.of(manifest.name)}{{{manifest.kind}:{manifest.name}}}:{manifest.token}"

    def _prefix(self, manifest: M, name: str) -> str:
        return f"{self._entry(manifest)}:{name}"

    def _piece_keys(self, manifest: M) -> list[str]:
        return [
            key
            for name, length in manifest.lengths.items()
            for key in pieces.keys(self._prefix(manifest, name), length)
        ]
