"""The creation of maps: found to be there, built at once, left to a job, or only tried."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from app.core.arrays import Rows
from app.core.building import Building, RowsOf
from app.core.datasets import Reference
from app.core.errors import InvalidInput
from app.core.maps import build, family_of
from app.core.model import Described
from app.core.progress import OutOfTime, Progress, TimedProgress, begin_anew
from app.core.spec import MapSpec
from app.jobs.checkpoints import Checkpoint
from app.jobs.job_context import JobContext
from app.jobs.jobs import Jobs
from app.jobs.record import NotMine
from app.services.asked import LEARNED_FROM, NOTHING, AskedSpec, LeftOpen, Settled, draw_seed, resolve
from app.services.datasets import Datasets
from app.services.errors import Check, DatasetNotFound, MapExists, accept_any
from app.services.limits import Limits
from app.services.maps import MapRecord, read_spec, record
from app.services.status import versions
from app.store.errors import Gone, StoreUnavailable
from app.store.maps import MapManifest, MapStore, NewMap, SpecEntry
from app.store.named import NameTaken, State

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


def build_map(name: str, numbers: Settled, building: Building, ttl: int | None = None) -> NewMap:
    """A map, built and not stored yet, which will live so long after its last use.

    Raises what the family's `build` does.
    """
    spec, asked, warnings = numbers
    made = build(spec, building)
    made = made._replace(warnings=warnings + made.warnings)
    return NewMap(name, spec.canonical(), made, versions(), family_of(spec.sampler).parameter_stream, asked, ttl)


def build_reservation(
    store: MapStore, datasets: Datasets, threads: int, payload: Mapping[str, Any], context: JobContext
) -> None:
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
            numbers = resolve(AskedSpec(spec, LeftOpen.model_validate_json(reserved.asked)), rows, threads)
        made = build_map(reserved.name, numbers, Building(threads, context, rows))
        store.create(made, reserved, context.announce, context.owner)
    except (Gone, NameTaken):
        raise NotMine(context.job_id) from None


# Rows of a dataset as they are read, after the input, in the dtype of the map, and those that are learned from.
_COPIES_OF_ROWS = 4


class Created(NamedTuple):
    """The map that a creation has made, found, or left to a job."""

    record: MapRecord
    new: bool
    """Whether this call has made the map, or had a job make it; False where it was there or being built."""


class MapCreation(NamedTuple):
    """Creates maps."""

    store: MapStore
    limits: Limits
    threads: int
    """How many the building of a map may use."""
    unfit: Callable[[], str | None]
    """Says why the store cannot be trusted with new maps, None if it can."""
    jobs: Jobs
    """Those that build maps that take long."""
    datasets: Datasets
    """The datasets that samplers, length scales and inputs may be taken from."""

    def create(
        self,
        name: str,
        asked: AskedSpec,
        progress: Progress | None,
        settling: Progress | None = None,
        owner: str = "",
        ttl: int | None = None,
    ) -> Created:
        """Build a map and store it, or have a job do so, unless it is there already. What has failed is tried again.

        A job goes on with the building where its progress ends it. Without a progress, all of it is left to a job.
        What the spec leaves open is settled first; if there is no progress, until `settling` ends that. What it ends is
        begun anew by the job, too. The map is `owner`'s in the account of the store.
        It lives `ttl` seconds after its last use, None for ever, from now on also if it is there already.

        Raises:
            MapExists: another spec has the name.
            TooLarge: the arrays pass the limit, or building them takes more memory than a job may.
            InvalidInput: the arrays cannot be drawn as specified, or a dataset does not settle what is left open.
            DatasetNotFound: the sampler learns from a dataset that is not there.
            TooManyJobs: it takes a job, and as many wait as may.
            QuotaExceeded: the store, or the owner, has no room for as many bytes as the arrays may take.
            StoreUnavailable: the store does not answer, or is not fit for new maps.
            StoreDamaged: what has the name cannot be read.
        """
        while True:
            # Another was at the name just now, or at a dataset.
            with suppress(Gone, NameTaken, DatasetReplaced):
                return self._create(name, asked, progress, settling or Progress(), owner, ttl)

    def there(self, name: str, asked: AskedSpec, ttl: int | None, check: Check = accept_any) -> MapRecord | None:
        """The record of a map of this name and spec, be it ready or being built; None if there is none, or it failed.

        From now on it lives as `ttl` says, see `create`. `check` is told the digest of what has the name,
        and may raise.

        Raises:
            MapExists: another spec has the name.
        """
        with suppress(Gone):
            found = self.store.find(name)
            check(None if found is None else found.digest)
            return None if found is None or found.state is State.failed else self._renew(found, asked, ttl)
        return None

    def is_there(self, name: str, asked: AskedSpec) -> bool:
        """Whether there is such a map, be it ready or being built; raises MapExists likewise."""
        with suppress(Gone):
            found = self._standing(name)
            return found is not None and bool(self._same(found, asked))
        return False

    def _create(
        self, name: str, asked: AskedSpec, progress: Progress | None, settling: Progress, owner: str, ttl: int | None
    ) -> Created:
        there = self._standing(name)
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
        """Raise QuotaExceeded or StoreUnavailable if the store takes no such map of this owner now."""
        if reason := self.unfit():
            raise StoreUnavailable(f"{reason}; no map is created there")
        self.store.check_room(family_of(asked.spec.sampler).frozen_bytes(asked.spec), owner)

    def check(self, asked: AskedSpec) -> tuple[dict[str, str], int]:
        """Digests of the datasets that the map is made from, and the memory that building it takes.

        Raises what `create` raises of specs that no map is made of here.
        """
        family = family_of(asked.spec.sampler)
        self.limits.check_map(family.frozen_bytes(asked.spec))
        digests, of_rows = self._digests(asked)
        taken = family.building_bytes(asked.spec) + _COPIES_OF_ROWS * of_rows
        self.limits.check_build(taken)
        return digests, taken

    def _digests(self, asked: AskedSpec) -> tuple[dict[str, str], int]:
        """Digests of the datasets that the map is made from, and the bytes of that which its sampler learns from.

        Refuses at once what its job could only fail at.
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
                of_rows = there.bytes
        return digests, of_rows

    def _standing(self, name: str) -> MapManifest | None:
        """The map that has a name; None if there is none, or one that failed, which is in nobody's way."""
        found = self.store.find(name)
        return None if found is None or found.state is State.failed else found

    def _renew(self, there: MapManifest, asked: AskedSpec, ttl: int | None) -> MapRecord:
        """The record of a map that was put again, for this time from now on.

        Raises:
            MapExists: its spec is another, or other things were left open in it.
            Gone: it was deleted meanwhile, or changed.
        """
        spec = self._same(there, asked)
        renewed = self.store.renew(there, ttl)
        if renewed is None:
            raise Gone
        return record(renewed, spec)

    def _same(self, there: MapManifest, asked: AskedSpec) -> MapSpec:
        """The spec of a map that was put again; raises what `_renew` raises."""
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
        # An earlier version may have written the same spec in other words.
        stored = read_spec(there.name, self.store.spec(there))
        if stored.canonical() not in texts:
            raise MapExists(there.name, there.digest or None)
        return stored


class MapPreview(Described):
    """What a spec would make, had it been put. Nothing is stored."""

    name: str
    exists: bool
    """Whether a map of this name and spec is there already, or being built."""
    spec: MapSpec | dict[str, Any]
    """With all defaults filled in, and numbers found in datasets where there was time to find them."""
    at_once: bool
    """Whether it was built in the time of this request. If not, a job would go on with it; sizes are then the most that
    they can become, and building may have more to warn of, or refuse the spec.
    """
    n_frequencies: int
    """Number of frequencies, hashes or landmarks."""
    n_output: int
    """Columns of a transformed row; codes of a row, for kernel gmm."""
    bytes: int
    """Size of the frozen arrays."""
    building_bytes: int
    """Most memory that building takes."""
    seconds: float | None
    """What building took, or would take, by the steps done in the time of this request; null where that is not known.
    """
    report: dict[str, float] | None
    """As of the record."""
    warnings: tuple[str, ...]
    """What is doubtful about this combination, as far as it is known."""


def preview(
    creation: MapCreation, name: str, asked: AskedSpec, progress: TimedProgress | None, owner: str = ""
) -> MapPreview:
    """Check a spec as a creation would, and build it until the progress ends that; without one, only check it.

    Raises what `MapCreation.create` does, but what has to do with jobs.
    """
    exists = creation.is_there(name, asked)
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
    if made is None:  # the most that may become of the spec
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
