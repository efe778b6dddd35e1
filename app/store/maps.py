"""Maps in the store."""

import json
import secrets
from typing import Any, NamedTuple

import numpy as np
import redis

from app.store.manifest import ArrayEntry, Manifest, digest_of, now
from app.store.named import Arrays, NamedStore


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


class MapStore(NamedStore[MapManifest]):
    """Create, find, list, read and delete maps."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client, MapManifest)

    def create(self, new: NewMap) -> tuple[MapManifest, bool]:
        """Store a map unless its name is taken.

        Returns:
            The manifest that stands under the name now, and whether it is this call's.
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
        )
        return self._create(manifest, arrays)


def digest(spec: str, arrays: dict[str, ArrayEntry], parameter_stream: int | None) -> str:
    """The digest of all that a map's answers hang on."""
    others: dict[str, Any] = {"spec": json.loads(spec)}
    if parameter_stream is not None:
        others["parameter_stream"] = parameter_stream
    return digest_of(arrays, **others)
