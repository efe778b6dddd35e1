"""Manifests: what a stored thing is, and where its arrays lie."""

import hashlib
import json
from datetime import UTC, datetime
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from app.store.errors import NewerVersion, StoreDamaged


class ArrayEntry(BaseModel):
    """One stored array: little-endian, in C order, cut into pieces."""

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
    """Everything about a stored thing but its numbers. Written last, so that a thing is there whole or not at all.

    Older versions are read. What is written again is written in the newest.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClassVar[str]
    """What the thing is called, also in its keys."""
    dtypes: ClassVar[frozenset[str]]
    """What its arrays may be; anything else read back was not written here."""
    newest: ClassVar[int]
    """Version of what is written, to be raised with every change of it."""

    schema_version: int
    token: str
    """Drawn anew for each attempt to create a thing; part of its pieces' keys."""
    name: str
    arrays: dict[str, ArrayEntry]
    digest: str
    created_at: datetime

    @property
    def nbytes(self) -> int:
        """Size of the arrays."""
        return sum(entry.nbytes for entry in self.arrays.values())

    @property
    def lengths(self) -> dict[str, int]:
        """Bytes of everything that is kept in pieces, by the name that is part of their keys."""
        return {name: entry.nbytes for name, entry in self.arrays.items()}

    @property
    def stored(self) -> bytes:
        """The manifest as it is stored."""
        return self.model_dump_json(exclude_defaults=True).encode()

    def check_seal(self, digest: str) -> None:
        """Raise StoreDamaged if the manifest was changed; `digest` is what it says of the thing now."""
        if digest != self.digest:
            raise StoreDamaged(f"the manifest of {self.kind} {self.name!r} does not have the digest it was stored with")

    @classmethod
    def parse(cls, stored: bytes) -> Self:
        """Read a manifest back; StoreDamaged if it is none, NewerVersion if it is one of a newer version."""
        try:
            manifest = cls.model_validate_json(stored)
        except ValidationError as error:
            cls._refuse_newer(stored)
            raise StoreDamaged(f"a manifest of {len(stored)} bytes is none that this version can read") from error
        if manifest.schema_version > cls.newest:
            cls._refuse_newer(stored)
        if not {entry.dtype for entry in manifest.arrays.values()} <= cls.dtypes:
            raise StoreDamaged(f"{cls.kind} {manifest.name!r} has arrays of an unknown dtype")
        return manifest

    @classmethod
    def _refuse_newer(cls, stored: bytes) -> None:
        """Raise NewerVersion if that is what it is, whatever else a newer version may have changed."""
        try:
            read = from_json(stored)
        except ValueError:
            return
        made = read.get("schema_version") if isinstance(read, dict) else None
        if isinstance(made, int) and made > cls.newest:
            raise NewerVersion(f"{cls.kind} {read.get('name')!r}", f"schema version {made}", cls.newest)


def digest_of(arrays: dict[str, ArrayEntry], **others: Any) -> str:
    """The digest of arrays and of what else answers hang on: equal exactly for things that give the same."""
    hashed = {"arrays": {name: entry.model_dump(mode="json") for name, entry in arrays.items()}, **others}
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def now() -> datetime:
    """The time of creation, to the second."""
    return datetime.now(UTC).replace(microsecond=0)
