"""The record of a map, as clients see it."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from app.core.errors import InvalidInput
from app.core.spec import MapSpec
from app.store.errors import StoreDamaged
from app.store.maps import MapManifest


class MapRecord(BaseModel):
    """A map: its spec with all defaults filled in, and what became of it."""

    name: str
    status: Literal["building", "ready", "failed"]
    spec: MapSpec
    n_frequencies: int = Field(description="Number of frequencies (hashes, for kernel gmm) after building.")
    n_output: int = Field(description="Columns of a transformed row (codes of a row, for kernel gmm).")
    digest: str = Field(description="SHA-256 over spec and frozen arrays; also the ETag.")
    bytes: int = Field(description="Size of the frozen arrays.")
    created_at: datetime
    generator: dict[str, str] = Field(description="Versions that drew the arrays. The arrays are kept, not redrawn.")
    parameter_stream: int | None = Field(
        description="For kernel gmm, version of the random parameters; codes of one version are the same for ever."
    )
    signature: str | None = Field(description="Link of the signs of the weights, if some are negative.")
    job: str | None = Field(description="Link of the job that builds the map, if one does.")
    warnings: tuple[str, ...] = Field(description="What is doubtful about this combination, and what would be better.")


class MapPage(BaseModel):
    """Maps in order of their names."""

    maps: list[MapRecord]
    next: str | None = Field(description="Cursor of the next page, null on the last one.")


def spec_of(manifest: MapManifest) -> MapSpec:
    """The spec of a stored map.

    Raises:
        StoreDamaged: this version of the service does not know such a spec.
    """
    try:
        return MapSpec.model_validate_json(manifest.spec)
    except (ValidationError, InvalidInput) as error:
        raise StoreDamaged(f"the spec of map {manifest.name!r} is none that this version can read") from error


def record(manifest: MapManifest) -> MapRecord:
    """The record of a stored map."""
    return MapRecord(
        name=manifest.name,
        status="ready",
        spec=spec_of(manifest),
        n_frequencies=manifest.n_frequencies,
        n_output=manifest.n_output,
        digest=manifest.digest,
        bytes=manifest.nbytes,
        created_at=manifest.created_at,
        generator=manifest.generator,
        parameter_stream=manifest.parameter_stream,
        signature=f"/v1/maps/{manifest.name}/signature" if "signature" in manifest.arrays else None,
        job=None,
        warnings=manifest.warnings,
    )
