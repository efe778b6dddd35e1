"""The creation of maps: found to be there, built at once, or left to a job."""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps import family_of
from app.core.progress import OutOfTime, Progress, begin_anew
from app.core.spec import MapSpec
from app.jobs.checkpoints import Checkpoint
from app.jobs.jobs import Jobs
from app.services.asked import drawn, settled
from app.services.building import DatasetReplaced, build_later, built, kept_rows
from app.services.datasets import Datasets
from app.services.errors import DatasetNotFound, MapExists
from app.services.left_open import LEARNED_FROM, NOTHING, AskedSpec, LeftOpen, Settled
from app.services.limits import Limits
from app.services.map_records import MapRecord, read_spec, record
from app.services.preconditions import Check, unchecked
from app.store.errors import Gone, StoreUnavailable
from app.store.maps import MapManifest, MapStore, SpecEntry
from app.store.named import NameTaken, State

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
                return self._create(name, asked, progress, settling, owner, ttl)

    def there(self, name: str, asked: AskedSpec, ttl: int | None, check: Check = unchecked) -> MapRecord | None:
        """The record of a map of this name and spec, be it ready or being built; None if there is none, or it failed.

        From now on it lives as `ttl` says, see `create`. `check` is told the digest of what has the name,
        and may raise.

        Raises:
            MapExists: another spec has the name.
        """
        with suppress(Gone):
            found = self.store.find(name)
            check(None if found is None else found.digest)
            return None if found is None or found.state is State.failed else self._renewed(found, asked, ttl)
        return None

    def is_there(self, name: str, asked: AskedSpec) -> bool:
        """Whether there is such a map, be it ready or being built; raises MapExists likewise."""
        with suppress(Gone):
            found = self._standing(name)
            return found is not None and bool(self._same(found, asked))
        return False

    def _create(
        self,
        name: str,
        asked: AskedSpec,
        progress: Progress | None,
        settling: Progress | None,
        owner: str,
        ttl: int | None,
    ) -> Created:
        there = self._standing(name)
        if there is not None:
            return Created(self._renewed(there, asked, ttl), False)
        digests, taken = self.checked(asked)
        self.check_store(asked, owner)
        if taken > self.limits.max_build_bytes:
            progress = None
        asked = drawn(asked)
        rows = kept_rows(self.datasets, digests)
        checkpoint, is_open = None, True
        numbers = Settled(asked.spec, asked.left_open.text)
        try:
            watching = progress or settling or Progress()
            numbers, is_open = settled(asked, rows, self.threads, lambda: watching.checkpoint(begin_anew)), False
            if progress is not None:
                made = built(name, numbers, Building(self.threads, progress, rows), ttl)
                return Created(record(self.store.create(made, owner=owner), numbers.spec), True)
        except OutOfTime as over:
            checkpoint = None if is_open else Checkpoint(over.state, over.step, over.of, over.objective)
        reserved = build_later(self.jobs, self.store, name, numbers, digests, checkpoint, is_open, owner, ttl)
        return Created(record(reserved, numbers.spec), True)

    def check_store(self, asked: AskedSpec, owner: str) -> None:
        """Raise QuotaExceeded or StoreUnavailable if the store takes no such map of this owner now."""
        if reason := self.unfit():
            raise StoreUnavailable(f"{reason}; no map is created there")
        self.store.check_room(family_of(asked.spec.sampler).frozen_bytes(asked.spec), owner)

    def checked(self, asked: AskedSpec) -> tuple[dict[str, str], int]:
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

    def _renewed(self, there: MapManifest, asked: AskedSpec, ttl: int | None) -> MapRecord:
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
        """The spec of a map that was put again; raises what `_renewed` raises."""
        spec, left_open = asked
        texts = {one.canonical(): one for one in (spec.as_before(), spec)}
        if left_open == NOTHING and there.is_open:
            raise MapExists(there.name, None)
        if left_open != NOTHING:
            stored = read_spec(there.name, self.store.spec(there))
            was_open = LeftOpen.model_validate_json(there.asked or "{}")
            if was_open != left_open or was_open.placed(stored).canonical() not in texts:
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
