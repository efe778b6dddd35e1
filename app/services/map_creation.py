"""Creation of maps: found to exist, built at once, left to a job, or only previewed."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from app.core.arrays import Rows
from app.core.building import Building, RowsOf
from app.core.datasets import Reference
from app.core.errors import InvalidInput
from app.core.maps import build, family_of
from app.core.maps.landmarks.samplers import Landmarks, Selection
from app.core.maps.landmarks.selection import k_means
from app.core.model import Described
from app.core.progress import OutOfTime, Progress, TimedProgress, begin_anew
from app.core.samplers.base import FrequencySampler
from app.core.spec import MapSpec
from app.jobs.checkpoints import Checkpoint
from app.jobs.job_context import JobContext
from app.jobs.jobs import Jobs
from app.jobs.record import NotMine
from app.services.asked import LEARNED_FROM, NOTHING, AskedSpec, LeftOpen, Settled, draw_seed, resolve
from app.services.datasets import DatasetRecord, Datasets
from app.services.errors import Check, DatasetNotFound, MapExists, accept_any
from app.services.limits import Limits
from app.services.maps import MapRecord, read_spec, record
from app.services.status import versions
from app.store.errors import Gone, StoreUnavailable
from app.store.maps import MapManifest, MapStore, NewMap, SpecEntry
from app.store.named import NameTaken, State

KIND = "build-map"


class DatasetReplaced(InvalidInput):
    """A dataset has been replaced since the work on it began."""


def kept_rows(datasets: Datasets, digests: Mapping[str, str]) -> RowsOf:
    """Return a function that reads the rows of a dataset, if they have the digest that they had when the work began.

    A checkpoint does not contain the rows from which it was learned, so every attempt must get the same rows: those
    with the digest that the dataset had when the work began or its job was submitted. Everything that is taken from one
    dataset is also taken from the same rows.
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


def build_map(name: str, numbers: Settled, building: Building, ttl: int | None = None) -> NewMap:
    """Build a map, without storing it; `ttl` is its life in seconds after its last use.

    Raises what the family's `build` raises.
    """
    spec, asked, warnings = numbers
    made = build(spec, building)
    made = made._replace(warnings=warnings + made.warnings)
    return NewMap(name, spec.canonical(), made, versions(), family_of(spec.sampler).parameter_stream, asked, ttl)


def build_reservation(
    store: MapStore, datasets: Datasets, threads: int, payload: Mapping[str, Any], context: JobContext
) -> None:
    """Build the map whose name the job has reserved, and store it in place of the reservation.

    Raises:
        NotMine: the map is no longer wanted.
    """
    reserved = store.find(payload["name"])
    if reserved is None or reserved.job != context.job_id:
        # An earlier attempt may have stored the map and died before it could report success.
        return
    try:
        spec, rows = MapSpec.model_validate_json(store.spec(reserved)), kept_rows(datasets, payload["digests"])
        numbers = Settled(spec, reserved.asked, reserved.warnings)
        if reserved.is_open:
            numbers = resolve(AskedSpec(spec, LeftOpen.model_validate_json(reserved.asked)), rows, threads)
        made = build_map(reserved.name, numbers, Building(threads, context, rows))
        store.create(made, reserved, context.announce, context.owner)
    except (Gone, NameTaken):
        raise NotMine(context.job_id) from None


# Copies of a dataset's rows that exist at once: as read, after the input, in the dtype of the map, and for learning.
# And numbers of each row, such as residuals, places in an order, and times.
_COPIES_OF_ROWS, _BYTES_OF_ROW = 4, 48
# Rows that learning a set of frequencies makes dense, in float64, at once: it measures samples of some hundred.
_MOST_MADE_DENSE = 1500


def _bytes_made_dense(spec: MapSpec, dataset: DatasetRecord) -> int:
    """Return the bytes of the rows of a dataset that are made dense, in float64, to learn from them."""
    (n, d), sampler = dataset.shape, spec.sampler
    if isinstance(sampler, Landmarks) and sampler.selection is Selection.k_means and not spec.kernel.is_centered:
        s, _ = family_of(sampler).largest(spec)
        return 8 * k_means.dense_entries(n if sampler.rows is None else sampler.rows, d, s, dataset.sparse)
    if not (isinstance(sampler, FrequencySampler) or (dataset.sparse and spec.kernel.is_centered)):
        return 0
    return 8 * d * (n if spec.kernel.is_centered else min(n, _MOST_MADE_DENSE))


class Created(NamedTuple):
    """Result of a creation: a map that was made, found, or left to a job."""

    record: MapRecord
    new: bool
    """Whether this call has made the map or left it to a job; False if it was ready or being built before."""


class MapCreation(NamedTuple):
    """Creates maps."""

    store: MapStore
    limits: Limits
    threads: int
    """Number of threads that the building of a map may use."""
    unfit: Callable[[], str | None]
    """Returns the reason why the store cannot be trusted with new maps, or None if it can."""
    jobs: Jobs
    """Jobs, one of which builds a map that takes too long for its request."""
    datasets: Datasets
    """Datasets from which samplers learn, and length scales and inputs are taken."""

    def create(
        self,
        name: str,
        asked: AskedSpec,
        progress: Progress | None,
        settling: Progress | None = None,
        owner: str = "",
        ttl: int | None = None,
        check: Check = accept_any,
    ) -> Created:
        """Build a map and store it, or leave it to a job, unless it already exists. A map that failed is built again.

        A job continues the building if `progress` ends it. Without `progress`, a job does all the building. Deferred
        fields are resolved first; without `progress`, until `settling` ends that. If this is ended, the job resolves
        them from the beginning. The map counts towards `owner`'s quota. It lives `ttl` seconds after its last use, or
        for ever if None; if it already exists, its life is renewed. `check` receives the digest of the map that has the
        name, and may raise: nothing is changed then.

        Raises:
            MapExists: a map with another spec has the name.
            TooLarge: the arrays exceed the limit, or building them takes more memory than a job may.
            InvalidInput: the arrays cannot be drawn as specified, or a dataset does not resolve the deferred fields.
            DatasetNotFound: the sampler learns from a dataset that does not exist.
            TooManyJobs: a job is needed, and the job queue is full.
            QuotaExceeded: the quota of the store, or of the owner, has no room for the largest arrays that are
                possible.
            StoreUnavailable: the store does not answer, or is not fit for new maps.
            StoreDamaged: the stored map of this name cannot be read.
        """
        while True:
            # Another request has just changed the name or a dataset: try again.
            with suppress(Gone, NameTaken, DatasetReplaced):
                return self._create(name, asked, progress, settling or Progress(), owner, ttl, check)

    def there(self, name: str, asked: AskedSpec, ttl: int | None, check: Check = accept_any) -> MapRecord | None:
        """Return the record of a map of this name and spec, ready or being built; None if there is none, or it failed.

        The life of the map is renewed, see `create`. `check` receives the digest of the map that has the name, and may
        raise.

        Raises:
            MapExists: a map with another spec has the name.
        """
        with suppress(Gone):
            found = self._standing(name, check)
            return None if found is None else self._renew(found, asked, ttl)
        return None

    def is_there(self, name: str, asked: AskedSpec, check: Check) -> bool:
        """Whether there is such a map, ready or being built; MapExists if a map with another spec has the name.

        `check` receives the digest of the map that has the name, and may raise.
        """
        with suppress(Gone):
            found = self._standing(name, check)
            return found is not None and bool(self._same(found, asked))
        return False

    def _create(
        self,
        name: str,
        asked: AskedSpec,
        progress: Progress | None,
        settling: Progress,
        owner: str,
        ttl: int | None,
        check: Check,
    ) -> Created:
        there = self._standing(name, check)
        if there is not None:
            return Created(self._renew(there, asked, ttl), False)
        digests, taken = self.check(asked)
        self.check_store(asked, owner)
        if taken > self.limits.max_build_bytes:
            progress = None
        asked = draw_seed(asked)
        rows = kept_rows(self.datasets, digests)
        checkpoint, is_open = None, True
        numbers = Settled(asked.spec, asked.left_open.text)
        try:
            watching = progress or settling
            numbers, is_open = resolve(asked, rows, self.threads, lambda: watching.checkpoint(begin_anew)), False
            if progress is not None:
                made = build_map(name, numbers, Building(self.threads, progress, rows), ttl)
                return Created(record(self.store.create(made, owner=owner), numbers.spec), True)
        except OutOfTime as over:
            checkpoint = None if is_open else Checkpoint(over.state, over.step, over.of, over.objective)
        spec, text, warnings = numbers
        job_id, room = self.jobs.new_id(name), family_of(spec.sampler).frozen_bytes(spec)
        reserved, reservation = self.store.reserve(
            name, spec.canonical(), job_id, text, warnings, is_open, room, owner, ttl
        )
        self.jobs.submit(
            KIND,
            {"name": name, "digests": digests},
            subject={"map": name},
            result_link=f"/v1/maps/{name}",
            reservation=reservation,
            job_id=job_id,
            checkpoint=checkpoint,
            owner=owner,
        )
        return Created(record(reserved, spec), True)

    def check_store(self, asked: AskedSpec, owner: str) -> None:
        """Raise QuotaExceeded or StoreUnavailable if the store cannot take such a map of this owner now."""
        if reason := self.unfit():
            raise StoreUnavailable(f"{reason}; no map is created there")
        self.store.check_room(family_of(asked.spec.sampler).frozen_bytes(asked.spec), owner)

    def check(self, asked: AskedSpec) -> tuple[dict[str, str], int]:
        """Return the digests of the datasets that the map is made from, and the memory that building it takes.

        Raises what `create` raises for specs of which no map can be built here.
        """
        family = family_of(asked.spec.sampler)
        self.limits.check_map(family.frozen_bytes(asked.spec))
        digests, of_rows = self._digests(asked)
        taken = family.building_bytes(asked.spec) + of_rows
        self.limits.check_job(taken, what="building the map")
        return digests, taken

    def _digests(self, asked: AskedSpec) -> tuple[dict[str, str], int]:
        """Return the digests of the datasets that the map is made from, and the memory that the sampler's takes.

        Errors that would make the job fail later are raised at once.
        """
        digests: dict[str, str] = {}
        of_rows = 0
        input_dim = asked.spec.input_dim
        for dataset, pointer in asked.datasets:
            try:
                there = self.datasets.get(dataset)
            except DatasetNotFound as error:
                if pointer == LEARNED_FROM:
                    raise
                raise InvalidInput(str(error), pointer) from error
            columns = there.shape[1]
            if columns != input_dim:
                detail = f"dataset {dataset!r} has {columns} columns; input_dim {input_dim} wants as many"
                raise InvalidInput(detail, pointer)
            if digests.setdefault(dataset, there.digest) != there.digest:
                raise DatasetReplaced(f"dataset {dataset!r} was replaced just now", pointer)
            if pointer == LEARNED_FROM:
                nbytes = there.bytes + _bytes_made_dense(asked.spec, there)
                of_rows = _COPIES_OF_ROWS * nbytes + _BYTES_OF_ROW * there.shape[0]
        return digests, of_rows

    def _standing(self, name: str, check: Check = accept_any) -> MapManifest | None:
        """Return the map that has a name; None if there is none, or if it failed, as it may then be replaced.

        `check` receives its digest, also if it failed, and may raise.
        """
        found = self.store.find_own(name)
        check(None if found is None else found.digest)
        return None if found is None or found.state is State.failed else found

    def _renew(self, there: MapManifest, asked: AskedSpec, ttl: int | None) -> MapRecord:
        """Renew the life of a map that was requested again, with this `ttl`; return its record.

        Raises:
            MapExists: the map has another spec or other deferred fields.
            Gone: the map was deleted meanwhile, or changed.
        """
        spec = self._same(there, asked)
        renewed = self.store.renew(there, ttl)
        if renewed is None:
            raise Gone
        return record(renewed, spec)

    def _same(self, there: MapManifest, asked: AskedSpec) -> MapSpec:
        """Return the spec of a map that was requested again; raise MapExists if the map is not the requested one."""
        spec, left_open = asked
        texts = {one.canonical(): one for one in (spec.as_before(), spec)}
        if left_open == NOTHING and there.is_open:
            raise MapExists(there.name, None)
        if left_open != NOTHING:
            stored = read_spec(there.name, self.store.spec(there))
            was_open = LeftOpen.model_validate_json(there.asked or "{}")
            if was_open != left_open or was_open.with_placeholders(stored).canonical() not in texts:
                raise MapExists(there.name, there.digest or None)
            return stored
        for text, one in texts.items():
            if there.spec in (SpecEntry.of(text), text):
                return one
        # An earlier version may have written the same spec differently.
        stored = read_spec(there.name, self.store.spec(there))
        if stored.canonical() not in texts:
            raise MapExists(there.name, there.digest or None)
        return stored


class MapPreview(Described):
    """A map that a spec would create; nothing is stored."""

    name: str
    """Name that the map would have."""
    exists: bool
    """Whether a map with this name and spec already exists, or is being built."""
    spec: MapSpec | dict[str, Any]
    """The spec with all defaults filled in, and with numbers taken from datasets if there was time to compute them."""
    at_once: bool
    """Whether the map was built in the time of this request. If not, a job would continue the building; sizes are then
    upper bounds, and building may add warnings or refuse the spec.
    """
    n_frequencies: int
    """Number of frequencies, hashes or landmarks."""
    n_output: int
    """Columns of a transformed row (codes of a row, for kernel gmm)."""
    bytes: int
    """Size of the frozen arrays, in bytes."""
    building_bytes: int
    """Peak memory of building, in bytes."""
    seconds: float | None
    """Seconds that building took, or would take, extrapolated from the steps done in the time of this request; null if
    unknown.
    """
    report: dict[str, float] | None
    """Results of learning, as in `report` of a map."""
    warnings: tuple[str, ...]
    """Doubts about this combination, as far as they are known."""


def preview(
    creation: MapCreation,
    name: str,
    asked: AskedSpec,
    progress: TimedProgress | None,
    owner: str = "",
    check: Check = accept_any,
) -> MapPreview:
    """Check a spec as a creation would, and build its map until the progress ends that; without one, only check it.

    `check` receives the digest of the map that has the name, and may raise.

    Raises what `MapCreation.create` raises, except errors about jobs.
    """
    exists = creation.is_there(name, asked, check)
    digests, building_bytes = creation.check(asked)
    if not exists:
        creation.check_store(asked, owner)
    numbers, made, seconds = Settled(asked.spec), None, None
    is_open = asked.left_open.input is not None or asked.left_open.kernel is not None
    began = time.monotonic()
    try:
        if progress is not None:
            rows = kept_rows(creation.datasets, digests)
            numbers = resolve(asked, rows, creation.threads, lambda: progress.checkpoint(begin_anew))
            is_open = False
            if building_bytes <= creation.limits.max_build_bytes:
                made = build(numbers.spec, Building(creation.threads, progress, rows))
                seconds = time.monotonic() - began
    except OutOfTime as over:
        seconds = (time.monotonic() - began) * over.of / over.step if over.step else None
    left_open, spec = asked.left_open if is_open else LeftOpen(draws_seed=asked.left_open.draws_seed), numbers.spec
    if made is None:  # upper bounds for the map of the spec
        family = family_of(spec.sampler)
        (s, columns), nbytes = family.largest(spec), family.frozen_bytes(spec)
    else:
        nbytes = sum(array.nbytes for array in made.arrays.values())
        s, columns = made.n_frequencies, made.n_output
    return MapPreview(
        name=name,
        exists=exists,
        spec=left_open.shown(spec),
        at_once=made is not None,
        n_frequencies=s,
        n_output=columns,
        bytes=nbytes,
        building_bytes=building_bytes,
        seconds=seconds,
        report=None if made is None else made.report,
        warnings=numbers.warnings + (() if made is None else made.warnings),
    )
