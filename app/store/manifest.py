"""The manifest of a stored map: what it is, and where its frozen arrays lie."""

import hashlib
import json
from datetime import UTC, datetime
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from app.store.errors import StoreDamaged

SCHEMA_VERSION = 1
PIECE_BYTES = 1 << 20

# What a frozen array may be; anything else read back was not written here.
_DTYPES = {"float32", "float64", "int8"}


class ArrayEntry(BaseModel):
    """One frozen array: little-endian, in C order, cut into pieces of PIECE_BYTES."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dtype: str
    shape: tuple[int, ...]
    sha256: str

    @classmethod
    def of(cls, array: NDArray[Any]) -> "ArrayEntry":
        """Describe an array in C order."""
        return cls(dtype=array.dtype.name, shape=array.shape, sha256=hashlib.sha256(array.data).hexdigest())

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def pieces(self) -> int:
        """Number of pieces."""
        return -(-self.nbytes // PIECE_BYTES)


class Manifest(BaseModel):
    """Everything about a map but its numbers. Written last, so that a map is there whole or not at all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = SCHEMA_VERSION
    token: str
    """Drawn anew for each attempt to create a map; part of its pieces' keys."""
    name: str
    spec: str
    arrays: dict[str, ArrayEntry]
    digest: str
    n_frequencies: int
    n_output: int
    created_at: datetime
    generator: dict[str, str]
    parameter_stream: int | None = None
    """Version of the stream of parameters that takes the place of arrays; None where there is none."""
    warnings: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """Size of the frozen arrays."""
        return sum(entry.nbytes for entry in self.arrays.values())

    @classmethod
    def parse(cls, stored: bytes) -> "Manifest":
        """Read a manifest back.

        Raises:
            StoreDamaged: it is no manifest, or one of a later schema.
        """
        try:
            manifest = cls.model_validate_json(stored)
        except ValidationError as error:
            raise StoreDamaged(f"a manifest of {len(stored)} bytes is none that this version can read") from error
        if manifest.schema_version != SCHEMA_VERSION:
            raise StoreDamaged(f"map {manifest.name!r} has schema version {manifest.schema_version}, not 1")
        if not {entry.dtype for entry in manifest.arrays.values()} <= _DTYPES:
            raise StoreDamaged(f"map {manifest.name!r} has arrays of an unknown dtype")
        return manifest


def digest(spec: str, arrays: dict[str, ArrayEntry], parameter_stream: int | None) -> str:
    """The digest of all that a map's answers hang on: equal exactly for maps that give the same."""
    hashed: dict[str, Any] = {
        "spec": json.loads(spec),
        "arrays": {name: entry.model_dump(mode="json") for name, entry in arrays.items()},
    }
    if parameter_stream is not None:
        hashed["parameter_stream"] = parameter_stream
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def now() -> datetime:
    """The time of creation, to the second."""
    return datetime.now(UTC).replace(microsecond=0)
