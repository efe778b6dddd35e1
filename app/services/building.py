"""The building of maps: at once, or as a job."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from app.core.arrays import Rows
from app.core.building import Building, RowsOf
from app.core.errors import InvalidInput
from app.core.maps import family
from app.core.spec import MapSpec
from app.jobs.checkpoints import Checkpoint
from app.jobs.errors import NotMine
from app.jobs.job_context import JobContext
from app.jobs.jobs import Jobs
from app.jobs.placeholders import Placeholder, Taken
from app.services.datasets import Datasets
from app.services.errors import DatasetChanged, DatasetNotFound
from app.store.manifest import now
from app.store.maps import MapStore, NewMap, Withdrawn
from app.store.pending import Pending

KIND = "build-map"
_DIGESTS = "digests"


def kept_rows(datasets: Datasets, digests: Mapping[str, str | None]) -> RowsOf:
    """The rows of kept datasets, as they were when a job was submitted.

    A checkpoint says nothing of the rows it was learned from, so every attempt must get the same.

    Args:
        datasets: that a spec may name.
        digests: of those it named when the job was submitted, by name.
    """

    def rows(dataset: str, pointer: str) -> Rows:
        try:
            return datasets.rows(dataset, digest=digests[dataset])
        except DatasetNotFound as error:
            raise InvalidInput(str(error), pointer) from error
        except DatasetChanged as error:
            raise InvalidInput(f"{error} when the job was submitted", pointer) from error

    return rows


def built(name: str, spec: MapSpec, building: Building | None = None) -> NewMap:
    """A map, built and not stored yet. Raises what the family's `build` does."""
    made = family(spec).build(spec, building)
    return NewMap(
        name=name,
        spec=spec.canonical(),
        arrays=made.arrays,
        n_frequencies=made.n_frequencies,
        n_output=made.n_output,
        generator={package: version(package) for package in ("bochner", "numpy", "scipy")},
        warnings=made.warnings,
        parameter_stream=family(spec).parameter_stream,
        report=made.report,
    )


def build_later(
    jobs: Jobs,
    store: MapStore,
    name: str,
    spec: MapSpec,
    digests: Mapping[str, str],
    failed: Pending | None,
    checkpoint: Checkpoint | None = None,
) -> Pending | None:
    """Submit the building of a map, unless its name is taken.

    Args:
        jobs: where to.
        store: where the map is to be.
        name: of the map.
        spec: of the map.
        digests: of the datasets that the spec names, by name.
        failed: what an earlier attempt has left under the name.
        checkpoint: what was done of the build before; the job goes on from there.

    Returns:
        What stands for the map now, or None if the name has been taken meanwhile.

    Raises:
        TooManyJobs: as many wait as may.
    """
    pending = Pending(name=name, spec=spec.canonical(), job=jobs.new_id(), created_at=now())
    key, index = store.place(name)
    placeholder = Placeholder(key, index, name, pending.stored, b"" if failed is None else failed.stored)
    try:
        jobs.submit(
            KIND,
            {"name": name, _DIGESTS: digests},
            subject={"map": name},
            result_link=f"/v1/maps/{name}",
            placeholder=placeholder,
            job_id=pending.job,
            checkpoint=checkpoint,
        )
    except Taken:
        return None
    return pending


def build(store: MapStore, datasets: Datasets, threads: int, payload: Mapping[str, Any], context: JobContext) -> None:
    """Build the map that stands pending under a name, and put it in its place.

    Raises:
        NotMine: it is not wanted any more.
    """
    pending = store.standing(payload["name"])
    if not isinstance(pending, Pending) or pending.job != context.job_id:
        # An earlier attempt may have got as far as this and died before it could say so.
        return
    spec = MapSpec.model_validate_json(pending.spec)
    made = built(pending.name, spec, Building(threads, context, kept_rows(datasets, payload[_DIGESTS])))
    try:
        _, created = store.create(made, pending, context.announce)
    except Withdrawn:
        raise NotMine(context.job_id) from None
    if not created:
        raise NotMine(context.job_id)
