"""The building of maps: at once, or as a job."""

from collections.abc import Mapping
from typing import Any

from app.core.arrays import Rows
from app.core.building import Building, RowsOf
from app.core.datasets import Reference
from app.core.errors import InvalidInput
from app.core.maps import build as build_arrays
from app.core.maps import family_of
from app.core.spec import MapSpec
from app.jobs.checkpoints import Checkpoint
from app.jobs.job_context import JobContext
from app.jobs.jobs import Jobs
from app.jobs.record import NotMine
from app.services.asked import settled
from app.services.datasets import Datasets
from app.services.errors import DatasetNotFound
from app.services.left_open import AskedSpec, LeftOpen, Settled
from app.services.status import versions
from app.store.errors import Gone
from app.store.maps import MapManifest, MapStore, NewMap
from app.store.named import NameTaken

KIND = "build-map"


class DatasetReplaced(InvalidInput):
    """A dataset is not the one any more that it was when the work on it began."""


def kept_rows(datasets: Datasets, digests: Mapping[str, str]) -> RowsOf:
    """The rows of the datasets that a spec names, as they were when the work began, or its job was submitted.

    A checkpoint says nothing of the rows it was learned from, so every attempt must get the same: those with the digest
    that the dataset had then. Whatever is taken from one dataset is of the same rows, too.
    """

    def rows(dataset: str, pointer: str) -> Rows:
        try:
            found, digest, _ = datasets.read(Reference(dataset))
        except DatasetNotFound as error:
            raise InvalidInput(str(error), pointer) from error
        if digest != digests[dataset]:
            detail = f"dataset {dataset!r} is not the one that was there when the job was submitted"
            raise DatasetReplaced(detail, pointer)
        return found

    return rows


def built(name: str, numbers: Settled, building: Building, ttl: int | None = None) -> NewMap:
    """A map, built and not stored yet, which will live so long after its last use.

    Raises what the family's `build` does.
    """
    spec, asked, warnings = numbers
    made = build_arrays(spec, building)
    made = made._replace(warnings=warnings + made.warnings)
    return NewMap(name, spec.canonical(), made, versions(), family_of(spec.sampler).parameter_stream, asked, ttl)


def build_later(
    jobs: Jobs,
    store: MapStore,
    name: str,
    numbers: Settled,
    digests: Mapping[str, str],
    checkpoint: Checkpoint | None,
    is_open: bool,
    owner: str,
    ttl: int | None,
) -> MapManifest:
    """Reserve the name of a map and submit the job that builds it, from the checkpoint on if there is one.

    Args:
        jobs: of the store.
        store: of maps.
        name: of the map.
        numbers: its spec, and what was left open.
        digests: of the datasets that it is made from.
        checkpoint: what the job goes on from.
        is_open: whether the spec has no numbers yet for what was left open, which the job shall find first.
        owner: whose the map and its job are.
        ttl: seconds that the map lives after its last use, None for ever.

    Returns:
        What stands for the map until it is built.

    Raises:
        NameTaken: another has the name.
        TooManyJobs: as many wait as may.
        QuotaExceeded: there is no room for the map.
    """
    job_id = jobs.new_id(name)
    spec, asked, warnings = numbers
    room = family_of(spec.sampler).frozen_bytes(spec)
    manifest, reservation = store.reserve(name, spec.canonical(), job_id, asked, warnings, is_open, room, owner, ttl)
    jobs.submit(
        KIND,
        {"name": name, "digests": digests},
        subject={"map": name},
        result_link=f"/v1/maps/{name}",
        reservation=reservation,
        job_id=job_id,
        checkpoint=checkpoint,
        owner=owner,
    )
    return manifest


def build(store: MapStore, datasets: Datasets, threads: int, payload: Mapping[str, Any], context: JobContext) -> None:
    """Build the map whose name is reserved for the job, and store it in the place of the reservation.

    Raises:
        NotMine: the map is not wanted any more.
    """
    reserved = store.find(payload["name"])
    if reserved is None or reserved.job != context.job_id:
        # An earlier attempt may have stored the map and died before it could say so.
        return
    try:
        spec, rows = MapSpec.model_validate_json(store.spec(reserved)), kept_rows(datasets, payload["digests"])
        numbers = Settled(spec, reserved.asked, reserved.warnings)
        if reserved.is_open:
            numbers = settled(AskedSpec(spec, LeftOpen.model_validate_json(reserved.asked)), rows, threads)
        made = built(reserved.name, numbers, Building(threads, context, rows))
        store.create(made, reserved, context.announce, context.owner)
    except (Gone, NameTaken):
        raise NotMine(context.job_id) from None
