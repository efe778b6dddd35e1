"""Maps in the store."""

import builtins
import json
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import redis

from app.store.manifest import ArrayEntry, Manifest, digest_of, now
from app.store.named import Arrays, NamedStore
from app.store.pending import Pending, is_pending


class MapManifest(Manifest):
    """Everything about a map but its numbers."""

    kind = "map"
    dtypes = frozenset({"float32", "float64", "int8"})

    spec: str
    n_frequencies: int
    n_output: int
    generator: dict[str, str]
    parameter_stream: int | None = None
    """Version of the stream of parameters that takes the place of arrays; None where there is none."""
    warnings: tuple[str, ...]
    report: dict[str, float] | None = None
    """How a set that was learned came out; None for all others."""

    def sealed(self) -> str:
        """The digest of what the manifest says of spec, arrays and parameters."""
        return digest(self.spec, self.arrays, self.parameter_stream)


class NewMap(NamedTuple):
    """A map to be created."""

    name: str
    spec: str
    arrays: Arrays
    n_frequencies: int
    n_output: int
    generator: dict[str, str]
    warnings: tuple[str, ...]
    parameter_stream: int | None = None
    report: dict[str, float] | None = None


class Withdrawn(Exception):
    """Another thing stands under the name than the caller knew of, or nothing any more."""


class MapStore(NamedStore[MapManifest]):
    """Create, find, list, read and delete maps, and find what stands for those that a job builds."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client, MapManifest)

    def find(self, name: str) -> MapManifest | None:
        """The manifest of a map, None if there is none, or none yet."""
        standing = self.standing(name)
        return standing if isinstance(standing, MapManifest) else None

    def standing(self, name: str) -> MapManifest | Pending | None:
        """The manifest of a map, or what stands for it; None if there is nothing."""
        stored = self._stored(name)
        return None if stored is None else _parse(stored)

    def list(
        self, prefix: str, after: str | None, limit: int
    ) -> tuple[builtins.list[MapManifest | Pending], str | None]:
        """A page of the maps, see `_list`."""
        return self._list(prefix, after, limit, _parse)

    def place(self, name: str) -> tuple[str, str]:
        """The key under which a map, or what stands for it, is found, and the sorted set that lists its name."""
        return self._key(name), self._index

    def create(
        self,
        new: NewMap,
        instead_of: Pending | None = None,
        announce: Callable[[builtins.list[str]], None] = lambda _: None,
    ) -> tuple[MapManifest, bool]:
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
        manifest = MapManifest(
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
            report=new.report,
        )
        replaced = b"" if instead_of is None else instead_of.stored
        stored = self._put(manifest, arrays, instead_of=replaced, announce=announce)
        standing = _parse(stored) if stored else None
        if not isinstance(standing, MapManifest):
            raise Withdrawn(new.name)
        return standing, standing.token == manifest.token

    def _pieces(self, name: str, stored: bytes) -> builtins.list[str]:
        """As for all things; what stands for a map has none."""
        return [] if is_pending(stored) else super()._pieces(name, stored)


def _parse(stored: bytes) -> MapManifest | Pending:
    return Pending.model_validate_json(stored) if is_pending(stored) else MapManifest.parse(stored)


def digest(spec: str, arrays: dict[str, ArrayEntry], parameter_stream: int | None) -> str:
    """The digest of all that a map's answers hang on."""
    others: dict[str, Any] = {"spec": json.loads(spec)}
    if parameter_stream is not None:
        others["parameter_stream"] = parameter_stream
    return digest_of(arrays, **others)
