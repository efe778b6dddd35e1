"""The record of a map, as clients see it."""

from datetime import datetime
from importlib.metadata import version
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from app.core.errors import InvalidInput
from app.core.spec import MapSpec
from app.jobs.record import JobError, link
from app.services.left_open import LeftOpen
from app.store.errors import StoreDamaged
from app.store.maps import MapManifest

# The text of a longer spec is not read to be shown: that takes up to forty times its length, and holds the interpreter.
_LONG_SPEC = 1 << 16
_VERSION = version("bochner")
_NO_SPEC = '"spec":{}'
_AS_PUT = "As it was put, while a job is still to find numbers for what was left to a dataset."


class MapRecord(BaseModel):
    """A map: its spec with all defaults filled in, and what became of it."""

    name: str
    status: Literal["building", "ready", "failed"]
    spec: MapSpec | Annotated[dict[str, Any], Field(description=_AS_PUT)]
    error: JobError | None = Field(description="Why its job failed.")
    n_frequencies: int | None = Field(
        description="Number of frequencies (hashes, for kernel gmm) after building, null before."
    )
    n_output: int | None = Field(
        description="Columns of a transformed row (codes of a row, for kernel gmm), null before building."
    )
    digest: str | None = Field(
        description="SHA-256 over spec and frozen arrays, null before building; also the ETag. Built anew on another "
        "kind of processor, learned sets and landmark maps have another."
    )
    bytes: int = Field(description="Size of the frozen arrays.")
    created_at: datetime
    ttl: int | None = Field(
        description="Seconds that it lives after its last use: a transform, a diagnostic, whatever reads its arrays. "
        "null for ever."
    )
    expires_at: datetime | None = Field(
        description="When it is deleted by itself if it is not used before; null for never, and while a job builds it. "
        "A use moves it on where more than a sixteenth of `ttl` has passed."
    )
    generator: dict[str, str] = Field(description="Versions that drew the arrays. The arrays are kept, not redrawn.")
    parameter_stream: int | None = Field(
        description="For kernel gmm, version of the random parameters; codes of one version are the same for ever."
    )
    signature: str | None = Field(description="Link of the signs of the weights, if some are negative.")
    job: str | None = Field(description="Link of the job that builds the map, or could not; null when it is ready.")
    report: dict[str, float] | None = Field(
        description="How a learned set came out: start and end of its objective (normalised D² over the box; for a "
        "reweighted grid and for differences data the mean squared error over pairs of rows), sum of the weights and "
        "points kept. Where a dataset was at hand also relative Frobenius errors of Gram matrices, of the set "
        "(gram_error) and of what learning began with (gram_error_start): on up to 500 rows that may have been learned "
        "from, and, with _held_out, on rows_held_out others; of a box they were part of the column ranges only. null "
        "for sets that are not learned."
    )
    warnings: tuple[str, ...] = Field(description="What is doubtful about this combination, and what would be better.")


class MapPage(BaseModel):
    """Maps in order of their names."""

    maps: list[MapRecord]
    next: str | None = Field(description="Cursor of the next page, null on the last one.")


def read_spec(name: str, text: str) -> MapSpec:
    """The spec of a map from its stored text; StoreDamaged if this version of the service does not know such a spec."""
    try:
        return MapSpec.model_validate_json(text)
    except (ValidationError, InvalidInput) as error:
        raise StoreDamaged(f"the spec of map {name!r} is none that this version can read") from error


def record(manifest: MapManifest, spec: MapSpec | str) -> MapRecord:
    """The record of a stored map, or of one that a job builds or could not build; raises what `read_spec` raises."""
    known = read_spec(manifest.name, spec) if isinstance(spec, str) else spec
    if not manifest.is_open:
        return _record(manifest, known)
    return _record(manifest, LeftOpen.model_validate_json(manifest.asked).shown(known))


def written(manifest: MapManifest, spec: str) -> bytes:
    """The record as JSON; a long spec of this version stands in it as it is stored. Raises what `record` raises."""
    by = manifest.generator.get("bochner", _VERSION)  # missing where a job still builds it
    is_known = manifest.schema_version == MapManifest.newest and by == _VERSION and not manifest.is_open
    if len(spec) < _LONG_SPEC or not is_known:
        return record(manifest, spec).model_dump_json().encode()
    before, _, after = _record(manifest, {}).model_dump_json().partition(_NO_SPEC)
    return f'{before}"spec":{spec}{after}'.encode()


def _record(manifest: MapManifest, spec: MapSpec | dict[str, Any]) -> MapRecord:
    return MapRecord(
        name=manifest.name,
        status=manifest.state.value,
        error=None if manifest.error is None else JobError.model_validate(manifest.error),
        spec=spec,
        n_frequencies=manifest.n_frequencies,
        n_output=manifest.n_output,
        digest=manifest.digest or None,
        bytes=manifest.nbytes,
        created_at=manifest.created_at,
        ttl=manifest.ttl,
        expires_at=manifest.expires_at,
        generator=manifest.generator,
        parameter_stream=manifest.parameter_stream,
        signature=f"/v1/maps/{manifest.name}/signature" if "signature" in manifest.arrays else None,
        job=None if manifest.job is None else link(manifest.job),
        report=manifest.report,
        warnings=manifest.warnings,
    )
