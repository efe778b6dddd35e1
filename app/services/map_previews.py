"""What a spec would make and cost, found out without storing anything."""

import time
from typing import Any

from pydantic import BaseModel, Field

from app.core.building import Building
from app.core.maps import build, family_of
from app.core.maps.terms import Built
from app.core.progress import OutOfTime, TimedProgress, begin_anew
from app.core.spec import MapSpec
from app.services.asked import settled
from app.services.building import kept_rows
from app.services.left_open import NOTHING, AskedSpec, LeftOpen, Settled
from app.services.map_creation import MapCreation


class MapPreview(BaseModel):
    """What a spec would make, had it been put. Nothing is stored."""

    name: str
    exists: bool = Field(description="Whether a map of this name and spec is there already, or being built.")
    spec: MapSpec | dict[str, Any] = Field(
        description="With all defaults filled in, and numbers found in datasets where there was time to find them."
    )
    at_once: bool = Field(
        description="Whether it was built in the time of this request. If not, a job would go on with it; sizes are "
        "then the most that they can become, and building may have more to warn of, or refuse the spec."
    )
    n_frequencies: int = Field(description="Number of frequencies, hashes or landmarks.")
    n_output: int = Field(description="Columns of a transformed row; codes of a row, for kernel gmm.")
    bytes: int = Field(description="Size of the frozen arrays.")
    building_bytes: int = Field(description="Most memory that building takes.")
    seconds: float | None = Field(
        description="What building took, or would take, by the steps done in the time of this request; null where "
        "that is not known."
    )
    report: dict[str, float] | None = Field(description="As of the record.")
    warnings: tuple[str, ...] = Field(description="What is doubtful about this combination, as far as it is known.")


def preview(
    creation: MapCreation, name: str, asked: AskedSpec, progress: TimedProgress | None, owner: str = ""
) -> MapPreview:
    """Check a spec as a creation would, and build it until the progress ends that; without one, only check it.

    Raises what `MapCreation.create` does, but what has to do with jobs.
    """
    exists = creation.is_there(name, asked)
    digests, building_bytes = creation.checked(asked)
    if not exists:
        creation.check_store(asked, owner)
    numbers, made, seconds = Settled(asked.spec), None, None
    is_open = asked.left_open.input is not None or asked.left_open.kernel is not None
    began = time.monotonic()
    try:
        if progress is not None:
            rows = kept_rows(creation.datasets, digests)
            numbers = settled(asked, rows, creation.threads, lambda: progress.checkpoint(begin_anew))
            is_open = False
            if building_bytes <= creation.limits.max_build_bytes:
                made = build(numbers.spec, Building(creation.threads, progress, rows))
                seconds = time.monotonic() - began
    except OutOfTime as over:
        seconds = (time.monotonic() - began) * over.of / over.step if over.step else None
    left_open = asked.left_open if is_open else LeftOpen(draws_seed=asked.left_open.draws_seed)
    sizes = _sizes(numbers.spec, made)
    return MapPreview(
        name=name,
        exists=exists,
        spec=numbers.spec if left_open == NOTHING else left_open.shown(numbers.spec),
        at_once=made is not None,
        building_bytes=building_bytes,
        seconds=seconds,
        report=None if made is None else made.report,
        warnings=numbers.warnings + (() if made is None else made.warnings),
        **sizes,
    )


def _sizes(spec: MapSpec, made: Built | None) -> dict[str, int]:
    """Numbers of frequencies, columns and bytes: of what was made, else the most that may become of the spec."""
    if made is not None:
        nbytes = sum(array.nbytes for array in made.arrays.values())
        return {"n_frequencies": made.n_frequencies, "n_output": made.n_output, "bytes": nbytes}
    family = family_of(spec.sampler)
    s, columns = family.largest(spec)
    return {"n_frequencies": s, "n_output": columns, "bytes": family.frozen_bytes(spec)}
