"""Manifests: descriptions of stored things and of their arrays."""

import hashlib
import json
from datetime import UTC, datetime
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from app.store.errors import IsAlias, NewerVersion, StoreDamaged


class ArrayEntry(BaseModel):
    """Stored array: little-endian, in C order, cut into chunks."""

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


class Manifest(BaseModel):
    """Description of a stored thing, without its arrays. Written last, so that a thing is complete or does not exist.

    Manifests of older versions can be read; a manifest that is written again gets the newest version.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClassVar[str]
    """Name of the kind of thing, also used in its keys."""
    dtypes: ClassVar[frozenset[str]]
    """Dtypes that its arrays may have; a manifest with any other was not written by this service."""
    newest: ClassVar[int]
    """Version of the manifests that are written; raise it with every change of their format."""

    schema_version: int
    token: str
    """Random token, new for each attempt to create a thing; part of the keys of its chunks."""
    name: str
    arrays: dict[str, ArrayEntry]
    digest: str
    created_at: datetime

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return sum(entry.nbytes for entry in self.arrays.values())

    @property
    def lengths(self) -> dict[str, int]:
        """Bytes of everything stored in chunks, by the name that is part of the chunks' keys."""
        return {name: entry.nbytes for name, entry in self.arrays.items()}

    @property
    def stored(self) -> bytes:
        """Manifest in its stored form, JSON."""
        return self.model_dump_json(exclude_defaults=True).encode()

    def check_seal(self, digest: str) -> None:
        """Raise StoreDamaged if the manifest was changed; `digest` is the digest computed from its fields now."""
        if digest != self.digest:
            raise StoreDamaged(f"the manifest of {self.kind} {self.name!r} does not have the digest it was stored with")

    @classmethod
    def parse(cls, stored: bytes) -> Self:
        """Read a stored manifest.

        Raises:
            IsAlias: the name is an alias.
            NewerVersion: a newer version wrote the manifest.
            StoreDamaged: the manifest cannot be read.
        """
        try:
            manifest = cls.model_validate_json(stored)
        except ValidationError as error:
            cls._refuse_others(stored)
            raise StoreDamaged(f"a manifest of {len(stored)} bytes is none that this version can read") from error
        if manifest.schema_version > cls.newest:
            cls._refuse_others(stored)
        if not {entry.dtype for entry in manifest.arrays.values()} <= cls.dtypes:
            raise StoreDamaged(f"{cls.kind} {manifest.name!r} has arrays of an unknown dtype")
        return manifest

    @classmethod
    def _refuse_others(cls, stored: bytes) -> None:
        """Raise IsAlias for an alias, and NewerVersion for a newer version, whatever else has changed in it."""
        try:
            read = from_json(stored)
        except ValueError:
            return
        if not isinstance(read, dict):
            return
        made = read.get("schema_version")
        if "alias_of" not in cls.model_fields and isinstance(target := read.get("alias_of"), str):
            raise IsAlias(cls.kind, str(read.get("name")), target)
        if isinstance(made, int) and made > cls.newest:
            raise NewerVersion(f"{cls.kind} {read.get('name')!r}", f"schema version {made}", cls.newest)


def digest_of(arrays: dict[str, ArrayEntry], **others: Any) -> str:
    """Return the digest of arrays and all else that answers depend on; equal exactly if the answers are equal."""
    hashed = {"arrays": {name: entry.model_dump(mode="json") for name, entry in arrays.items()}, **others}
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def now() -> datetime:
    """Return the current time, rounded down to the second."""
    return datetime.now(UTC).replace(microsecond=0)
