"""The creation of maps: found to be there, built at once, or left to a job."""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps import family_of
from app.core.progress import OutOfTime, Progress
from app.core.spec import MapSpec
from app.jobs.checkpoints import Checkpoint
from app.jobs.jobs import Jobs
from app.services.asked import settled
from app.services.building import build_later, built, kept_rows
from app.services.datasets import Datasets
from app.services.errors import MapExists
from app.services.left_open import NOTHING, AskedSpec, LeftOpen
from app.services.limits import Limits
from app.services.map_records import MapRecord, read_spec, record
from app.store.errors import Gone, StoreUnavailable
from app.store.maps import MapManifest, MapStore, SpecEntry
from app.store.reservations import NameTaken, State


class Created(NamedTuple):
    """What a creation has led to."""

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

    def create(self, name: str, spec: MapSpec, progress: Progress | None, left_open: LeftOpen = NOTHING) -> Created:
        """Build a map and store it, or have a job do so, unless it is there already. What has failed is tried again.

        A job goes on with the building where its progress ends it. Without a progress, all of it is left to a job.
        What the spec leaves open is settled first, in any case here.

        Raises:
            MapExists: another spec has the name.
            TooLarge: the arrays pass the limit.
            InvalidInput: the arrays cannot be drawn as specified, or a dataset does not settle what is left open.
            DatasetNotFound: the sampler learns from a dataset that is not there.
            TooManyJobs: it takes a job, and as many wait as may.
            StoreUnavailable: the store does not answer, or is not fit for new maps.
            StoreDamaged: what has the name cannot be read.
        """
        while True:
            with suppress(Gone, NameTaken):  # another was at the name just now
                return self._create(name, AskedSpec(spec, left_open), progress)

    def _create(self, name: str, asked: AskedSpec, progress: Progress | None) -> Created:
        there = self.store.find(name)
        if there is not None and there.state is not State.failed:
            return Created(self._same(there, asked), False)
        self.limits.check_map(family_of(asked.spec.sampler).frozen_bytes(asked.spec))
        if reason := self.unfit():
            raise StoreUnavailable(f"{reason}; no map is created there")
        digests = self._digests(asked.spec)
        numbers = settled(asked, self.datasets, self.threads)
        checkpoint = None
        if progress is not None:
            try:
                building = Building(self.threads, progress, kept_rows(self.datasets, digests))
                return Created(record(self.store.create(built(name, numbers, building)), numbers.spec), True)
            except OutOfTime as over:
                checkpoint = Checkpoint(over.state, over.step, over.of, over.objective)
        reserved = build_later(self.jobs, self.store, name, numbers, digests, checkpoint)
        return Created(record(reserved, numbers.spec), True)

    def _digests(self, spec: MapSpec) -> dict[str, str]:
        """Digests of the datasets that the sampler learns from; refuses at once what its job could only fail at."""
        dataset = spec.sampler.learned_from
        if dataset is None:
            return {}
        there = self.datasets.get(dataset)
        columns = there.shape[1]
        if columns != spec.input_dim:
            detail = f"dataset {dataset!r} has {columns} columns; input_dim {spec.input_dim} wants as many"
            raise InvalidInput(detail, "/sampler/dataset")
        return {dataset: there.digest}

    def _same(self, there: MapManifest, asked: AskedSpec) -> MapRecord:
        """The record of a map that was put again.

        Raises:
            MapExists: its spec is another, or other things were left open in it.
            Gone: it was deleted meanwhile, or made anew.
        """
        spec, left_open = asked
        texts = {one.canonical(): one for one in (spec.as_before(), spec)}
        if left_open != NOTHING:
            stored = read_spec(there.name, self.store.spec(there))
            was_open = LeftOpen.model_validate_json(there.asked or "{}")
            if was_open != left_open or was_open.placed(stored).canonical() not in texts:
                raise MapExists(there.name, there.digest or None)
            return record(there, stored)
        for text, one in texts.items():
            if there.spec in (SpecEntry.of(text), text):
                return record(there, one)
        # An earlier version may have written the same spec in other words.
        stored = read_spec(there.name, self.store.spec(there))
        if stored.canonical() not in texts:
            raise MapExists(there.name, there.digest or None)
        return record(there, stored)
