"""Manifests of indexes: what an index is over, and how it is searched. What it holds is told by its state."""

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.store.manifest import ArrayEntry, Manifest, use_is_due

Keep = Literal["codes", "vectors"]


class MapOfIndex(BaseModel):
    """The map that the codes of an index are of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClassVar[str] = "map"

    name: str
    token: str
    digest: str


class IndexManifest(Manifest):
    """Everything about an index but its vectors. It never changes, but for its time to live."""

    kind = "index"
    dtypes = frozenset()
    newest = 1

    map: MapOfIndex
    asked: str
    """What the client has asked for, as JSON: the same request finds the same index."""
    bits: int
    """Of a code."""
    s: int
    """Codes of a vector."""
    bands: int | None = None
    """None where a search looks at all codes."""
    rows_per_band: int | None = None
    keep: Keep
    arrays: dict[str, ArrayEntry] = Field({})
    ttl: int | None = None
    """Seconds that it lives after its last use; None for ever."""
    expires_at: datetime | None = None
    """When it may be gone if it is not used before."""

    @property
    def code_bytes(self) -> int:
        """Bytes of the codes of a vector."""
        return -(-self.s * self.bits // 8)

    @property
    def is_due(self) -> bool:
        """Whether a use is to be noted, so that it lives on."""
        return use_is_due(self.ttl, self.expires_at)
