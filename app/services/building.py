"""The building of maps: at once, or as a job."""

from collections.abc import Mapping
from typing import Any

from app.core.arrays import Rows
from app.core.building import Building, RowsOf
from app.core.datasets import Reference
from app.core.errors import InvalidInput
from app.core.maps import family_of
from app.core.spec import MapSpec
from app.jobs.checkpoints import Checkpoint
from app.jobs.errors import NotMine
from app.jobs.job_context import JobContext
from app.jobs.jobs import Jobs
from app.services.datasets import Datasets
from app.services.errors import DatasetNotFound
from app.services.status import versions
from app.store.errors import Gone
from app.store.maps import MapManifest, MapStore, NewMap
from app.store.reservations import NameTaken

KIND = "build-map"


def kept_rows(datasets: Datasets, digests: Mapping[str, str]) -> RowsOf:
    """The rows of the datasets that a spec names, as they were when a job was submitted.

    A checkpoint says nothing of the rows it was learned from, so every attempt must get the same: those with the digest
    that the dataset had then.
    """

    def rows(dataset: str, pointer: str) -> Rows:
        try:
            found, digest = datasets.read(Reference(dataset))
        except DatasetNotFound as error:
            raise InvalidInput(str(error), pointer) from error
        if digest != digests[dataset]:
            raise InvalidInput(f"dataset {dataset!r} is not the one that was there when the job was submitted", pointer)
        return found

    return rows


def built(name: str, spec: MapSpec, building: Building) -> NewMap:
    """A map, built and not stored yet. Raises what the family's `build` does."""
    made = family_of(spec.sampler)
    return NewMap(name, spec.canonical(), made.build(spec, building), versions(), made.parameter_stream)


def build_later(
    jobs: Jobs, store: MapStore, name: str, spec: MapSpec, digests: Mapping[str, str], checkpoint: Checkpoint | None
) -> MapManifest:
    """Reserve the name of a map and submit the job that builds it, from the checkpoint on if there is one.

    Returns:
        What stands for the map until it is built.

    Raises:
        NameTaken: another has the name.
        TooManyJobs: as many wait as may.
    """
    job_id = jobs.new_id()
    manifest, reservation = store.reserve(name, spec.canonical(), job_id)
    jobs.submit(
        KIND,
        {"name": name, "digests": digests},
        subject={"map": name},
        result_link=f"/v1/maps/{name}",
        reservation=reservation,
        job_id=job_id,
        checkpoint=checkpoint,
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
        spec = MapSpec.model_validate_json(store.spec(reserved))
        made = built(reserved.name, spec, Building(threads, context, kept_rows(datasets, payload["digests"])))
        store.create(made, reserved, context.announce)
    except (Gone, NameTaken):
        raise NotMine(context.job_id) from None
