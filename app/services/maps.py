"""Find, list and delete maps, and keep those in use ready."""

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from app.core.answers import RowBlocks
from app.core.arrays import row_blocks
from app.core.maps import FeatureMap, Gives, derived, family_of, opened
from app.core.maps.taken_map import TakenMap
from app.core.maps.terms import ArraysOnDemand
from app.core.spec import MapSpec
from app.jobs.jobs import Jobs
from app.jobs.record import JobHasEnded, JobNotFound
from app.services.cache import Cache, latest
from app.services.errors import ArrayNotFound, MapInUse, MapNotFound, MapNotReady
from app.services.limits import Limits
from app.services.map_records import MapRecord, read_spec, record, written
from app.services.preconditions import Check, digest_in, unchecked
from app.services.results import BLOCK_BYTES
from app.store.errors import NewerVersion, StoreDamaged, StoreUnavailable
from app.store.indexes import MapOfIndex
from app.store.maps import MapManifest, MapStore, digest
from app.store.named import State
from app.store.pins import Pins

logger = logging.getLogger(__name__)

# Maps that are listed by one call to the store.
_AT_A_TIME = 1000


class OpenMap(NamedTuple):
    """A map that is ready for use, and what it is known by."""

    name: str
    digest: str
    feature_map: FeatureMap


class ArrayKind(NamedTuple):
    """What an array of a map is, before it is read."""

    digest: str
    """That of the map."""
    dtype: np.dtype[Any]
    is_frozen: bool
    """Whether it has the same bits everywhere; else it is computed where it is asked for."""


class Maps:
    """The maps of the service.

    Every method may raise StoreUnavailable or StoreDamaged; those that take a name of a map to use, MapNotFound. A call
    of a map may use so many `threads`.
    """

    def __init__(self, store: MapStore, limits: Limits, cache: Cache, threads: int, jobs: Jobs, pins: Pins) -> None:
        self._store = store
        self._jobs, self._pins = jobs, pins
        self._limits = limits
        self._threads = threads
        self._open, self._kept = cache.keeping(self._load), cache.there

    def get(self, name: str) -> MapRecord:
        """The record of a map, ready or not."""
        return record(*self._with_spec(name))

    def digest(self, name: str) -> str | None:
        """The digest of a map, "" of one that is not ready, None if there is none."""
        found = self._store.find(name)
        return None if found is None else found.digest

    def written(self, name: str) -> tuple[str | None, bytes]:
        """The digest of a map, None of one that is not ready, and its record as JSON."""
        manifest, spec = self._with_spec(name)
        return manifest.digest or None, written(manifest, spec)

    def list(self, prefix: str, cursor: str | None, limit: int) -> bytes:
        """A `MapPage` as JSON, in order of names."""
        manifests, after = self._store.page(prefix, cursor, limit)
        maps = []
        for manifest in manifests:
            try:
                found = self._store.with_spec(manifest)
                maps += [] if found is None else [written(*found)]
            except (StoreDamaged, NewerVersion) as error:  # the others must still be listed
                logger.error("left out of the list: %s", error)
        return b'{"maps":[%b],"next":%b}' % (b",".join(maps), to_json(after))

    def shape(self, name: str) -> tuple[MapSpec, int, int]:
        """The spec of a map, its frequencies and the columns that it gives.

        Raises what `ready` raises, and reads no arrays.
        """

        def read() -> tuple[MapSpec, int, int]:
            manifest = _built(name, self._store.find(name))
            return self._spec_of(manifest)[1], manifest.n_frequencies or 0, manifest.n_output or 0

        return latest(read)

    def states(self) -> Iterator[tuple[str, State, str | None]]:
        """The names of all maps in order, whether they are ready, and why not if building them failed."""
        after, more = None, True
        while more:
            page, after = self._store.page("", after, _AT_A_TIME)
            more = after is not None
            for one in page:
                yield one.name, one.state, None if one.error is None else str(one.error["detail"])

    def delete(self, name: str, check: Check = unchecked) -> None:
        """Remove a map; the job that builds it is cancelled. Of many at once, one removes it.

        `check` is told its digest, and may raise: then it stays. No other than that one is removed.

        Raises:
            MapInUse: indexes are over it.
        """

        def free(stored: bytes, receipt: str) -> None:
            check(digest_in(MapManifest, stored))
            if users := self._pins.users(name):
                raise MapInUse(name, users)
            self._cancel(stored, receipt)

        if not self._store.delete(name, free):
            raise MapNotFound(name)

    def ready(self, name: str, wanted: Gives | None = None) -> FeatureMap:
        """The map as it is in the store now, from memory if it is kept there.

        Raises:
            InvalidInput: it does not give what is wanted.
            MapNotReady: it is still being built, or could not be.
            NewerVersion: it has a later parameter stream than this version knows.
        """
        found = self.open(name).feature_map
        if wanted is not None:
            found.check_gives(wanted, f"map {name!r}")
        return found

    def open(self, name: str) -> OpenMap:
        """A map ready for use with its digest; raises what `ready` raises."""

        def read() -> OpenMap:
            manifest = self._used(name)
            return OpenMap(name, manifest.digest, self._open(manifest))

        return latest(read)

    def of_index(self, wanted: MapOfIndex) -> FeatureMap | None:
        """The map that an index is over, from memory or the store; None if it is not there, though it should be."""
        kept: FeatureMap | None = self._kept(wanted)
        if kept is not None:
            return kept
        with suppress(MapNotFound, MapNotReady):
            opened = self.open(wanted.name)
            return opened.feature_map if opened.digest == wanted.digest else None
        return None

    def kept(self, name: str, found: MapManifest | None, wanted: Gives) -> FeatureMap | None:
        """The map that the store has under this name, if it is kept in memory; else None. Takes no time.

        None also where its use is to be noted, which takes some. Raises what `ready` raises.
        """
        manifest = _built(name, found)
        kept: FeatureMap | None = None if manifest.is_due else self._kept(manifest)
        if kept is not None:
            kept.check_gives(wanted, f"map {name!r}")
        return kept

    def array(self, name: str, array_name: str, check: Callable[[ArrayKind], object]) -> NDArray[Any] | RowBlocks:
        """One array of a map: frozen, or computed from those that are. A frozen one past the limit comes in blocks.

        `check` is told what it is before anything is computed, and may raise.

        Raises:
            ArrayNotFound: maps of its kind have no such array.
            TooLarge: it has to be computed, and is larger, or more work, than a request may ask for.
        """
        manifest = self._used(name)
        entry = manifest.arrays.get(array_name)
        if entry is not None and entry.nbytes > self._limits.max_result_bytes:
            check(ArrayKind(manifest.digest, np.dtype(entry.dtype), True))
            return self._in_blocks(manifest, array_name)
        _, digest, found = self.open(name)
        if array_name not in found.arrays:
            raise ArrayNotFound(f"map {name!r} has no {array_name}; it has {', '.join(sorted(found.arrays))}")
        dtype = {**found.frozen(found.spec), **found.computed}[array_name].dtype
        check(ArrayKind(digest, dtype, array_name not in found.computed))
        if array_name in found.computed:
            self._limits.check_result(found.computed[array_name].nbytes)
            self._limits.check_operations(_operations_for(found, array_name))
        return found.arrays[array_name]

    def taken_away(self, name: str) -> TakenMap:
        """A map to be taken away. Arrays past the size of a block are read while they are sent, and are not kept.

        Raises:
            MapNotReady: it is still being built, or could not be.
            NewerVersion: it has a later parameter stream than this version knows.
            TooLarge: a row of an array, or one that is computed or computed from, passes `max_result_bytes`.
        """
        return latest(lambda: self._taken_away(self._used(name)))

    def _used(self, name: str) -> MapManifest:
        """The manifest of a map that is being used, which so lives on; raises what `_built` raises."""
        manifest = _built(name, self._store.find(name))
        if manifest.is_due:
            try:
                self._store.note_use(manifest)
            except (StoreUnavailable, StoreDamaged) as error:  # a store that takes no writes still gives what it has
                logger.warning("the use of map %r is not noted: %s", name, error)
        return manifest

    def _taken_away(self, manifest: MapManifest) -> TakenMap:
        text, spec = self._spec_of(manifest)
        whole = ArraysOnDemand({}, {array: partial(self._whole, manifest, array) for array in manifest.arrays})
        arrays: dict[str, NDArray[Any] | RowBlocks] = {}
        for array, entry in manifest.arrays.items():
            is_small = entry.nbytes <= min(BLOCK_BYTES, self._limits.max_result_bytes)
            arrays[array] = whole[array] if is_small else self._in_blocks(manifest, array)
        computed = derived(spec, whole)
        self._limits.check_result(max((array.nbytes for array in computed.values()), default=0))
        arrays |= computed
        return TakenMap(spec, text, manifest.digest, manifest.parameter_stream, arrays)

    def _whole(self, manifest: MapManifest, array_name: str) -> NDArray[Any]:
        self._limits.check_result(manifest.arrays[array_name].nbytes)
        return self._store.read(manifest, array_name)

    def _with_spec(self, name: str) -> tuple[MapManifest, str]:
        """The manifest of a map, ready or not, and the text of its spec."""
        found = self._store.with_spec(self._store.find(name))
        if found is None:
            raise MapNotFound(name)
        return found

    def _cancel(self, stored: bytes, receipt: str) -> None:
        """Cancel the job that builds a map, if there is one, and free its name with that."""
        with suppress(StoreDamaged, NewerVersion, JobNotFound, JobHasEnded):
            there = MapManifest.parse(stored)
            if there.state is State.building and there.job is not None:
                self._jobs.cancel(there.job, receipt)

    def _in_blocks(self, manifest: MapManifest, array_name: str) -> RowBlocks:
        """A frozen array as it is read from the store, which takes the memory of two blocks, and none of the cache."""
        shape, dtype = manifest.arrays[array_name].shape, np.dtype(manifest.arrays[array_name].dtype)
        row_bytes = prod(shape[1:]) * dtype.itemsize
        self._limits.check_result(row_bytes)
        blocks = [*row_blocks(shape[0], min(BLOCK_BYTES, self._limits.max_result_bytes) // row_bytes)]
        read = self._store.read_in_blocks(manifest, array_name, blocks)
        return RowBlocks(shape, dtype, blocks, lambda _: next(read))

    def _load(self, manifest: MapManifest) -> FeatureMap:
        _, spec = self._spec_of(manifest)
        return opened(spec, self._store.read_all(manifest), self._threads)

    def _spec_of(self, manifest: MapManifest) -> tuple[str, MapSpec]:
        """The text and the spec of a map that this version knows, and that was not changed."""
        text, stream = self._store.spec(manifest), manifest.parameter_stream
        manifest.check_sealed(digest(text, manifest.arrays, stream))
        spec = read_spec(manifest.name, text)
        known = family_of(spec.sampler).parameter_stream
        if stream is not None and known is not None and stream > known:
            raise NewerVersion(f"map {manifest.name!r}", f"parameter stream {stream}", known)
        if stream != known:
            made = f"map {manifest.name!r} was made with parameter stream {stream}"
            raise StoreDamaged(f"{made}; this version knows {known}")
        return text, spec


def _built(name: str, found: MapManifest | None) -> MapManifest:
    """The manifest found under a name.

    Raises:
        MapNotFound: there is none.
        MapNotReady: its map is still being built, or could not be.
    """
    if found is None:
        raise MapNotFound(name)
    if found.job is not None:
        raise MapNotReady(name, found.job, found.error)
    return found


def _operations_for(feature_map: FeatureMap, array_name: str) -> int:
    """Multiplications that a computed array takes: as for a row of each of its columns, if it has some."""
    _, *columns = feature_map.computed[array_name].shape
    rows = np.broadcast_to(np.float32(0), (sum(columns), feature_map.spec.input_dim))
    return feature_map.operations(rows)
