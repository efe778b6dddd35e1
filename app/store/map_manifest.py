"""Manifests of maps: built, under construction, or failed."""

import hashlib
import json
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.store.manifest import ArrayEntry, Manifest, digest_of, use_is_due
from app.store.reservations import SPEC, State


class SpecEntry(BaseModel):
    """A spec that lies beside its manifest in pieces, so that looking a map up costs the same whatever its length."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nbytes: int
    sha256: str

    @classmethod
    def of(cls, spec: str) -> "SpecEntry":
        """Describe a spec."""
        encoded = spec.encode()
        return cls(nbytes=len(encoded), sha256=hashlib.sha256(encoded).hexdigest())


class MapManifest(Manifest):
    """Everything about a map but its numbers and the text of its spec."""

    kind = "map"
    dtypes = frozenset({"float32", "float64", "int8", "uint8"})
    newest = 4

    state: State = State.ready
    spec: SpecEntry | str
    """Version 1 had the spec itself."""
    asked: str = ""
    """What the client has left to data or to chance, whose numbers the spec has; empty for nothing. Since version 3."""
    is_open: bool = False
    """Whether the spec has something in the place of these numbers still, which the job shall find."""
    job: str | None = None
    """Id of the job that builds the map, or could not."""
    error: dict[str, Any] | None = None
    """Why the job failed."""
    arrays: dict[str, ArrayEntry] = Field({})
    digest: str = ""
    """Empty before the map is built."""
    n_frequencies: int | None = None
    n_output: int | None = None
    generator: dict[str, str] = Field({})
    parameter_stream: int | None = None
    """Version of the stream of parameters that takes the place of arrays; None where there is none."""
    warnings: tuple[str, ...] = ()
    report: dict[str, float] | None = None
    """How a set that was learned came out; None for all others."""
    ttl: int | None = None
    """Seconds that it lives after its last use; None for ever. Since version 4."""
    expires_at: datetime | None = None
    """When it may be gone if it is not used before. None for never, and while a job builds it."""

    @model_validator(mode="after")
    def _built_or_not(self) -> Self:
        if (self.state is State.ready) != bool(self.digest):
            raise ValueError("a map has a digest exactly when it is ready")
        return self

    @property
    def is_due(self) -> bool:
        """Whether a use is to be noted, so that it lives on."""
        return use_is_due(self.ttl, self.expires_at)

    @property
    def lengths(self) -> dict[str, int]:
        """Bytes of the arrays and of the spec, by the name that is part of their keys."""
        spec = {SPEC: self.spec.nbytes} if isinstance(self.spec, SpecEntry) else {}
        return spec | super().lengths


def digest(spec: str, arrays: dict[str, ArrayEntry], parameter_stream: int | None) -> str:
    """The digest of all that a map's answers hang on."""
    others: dict[str, Any] = {"spec": json.loads(spec)}
    if parameter_stream is not None:
        others["parameter_stream"] = parameter_stream
    return digest_of(arrays, **others)
