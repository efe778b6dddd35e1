"""Maps: their records, and the maps in use."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from functools import partial
from importlib.metadata import version
from math import prod
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError
from pydantic_core import to_json

from app.core.arrays import RowBlocks, row_blocks
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap, Gives, derived_arrays, family_of, open_map
from app.core.maps.terms import ArraysOnDemand, TakenMap
from app.core.model import Described
from app.core.spec import MapSpec
from app.jobs.jobs import Jobs
from app.jobs.record import JobError, link
from app.request_context import link_to
from app.services.asked import NOTHING, LeftOpen
from app.services.cache import Cache, latest
from app.services.errors import ArrayNotFound, Check, MapInUse, MapNotFound, MapNotReady, accept_any, digest_in
from app.services.limits import Limits
from app.services.vectors import BLOCK_BYTES
from app.store.errors import NewerVersion, StoreDamaged, StoreUnavailable, left_out
from app.store.indexes import MapOfIndex
from app.store.maps import MapManifest, MapStore, digest
from app.store.named import State
from app.store.pins import Pins

# A longer spec is not parsed to be shown: that takes up to forty times the memory of its text, and blocks the
# interpreter.
_LONG_SPEC = 1 << 16
_VERSION = version("bochner")
_NO_SPEC = '"spec":{}'
_AS_PUT = "As it was put, while a job is still to find numbers for what was left to a dataset."


class MapRecord(Described):
    """A map: its spec with all defaults filled in, and its state."""

    name: str
    """Name of the map."""
    status: Literal["building", "ready", "failed"]
    """Whether the map can be used: a job may still be building it."""
    spec: MapSpec | Annotated[dict[str, Any], Field(description=_AS_PUT)]
    """Spec of the map, with all defaults and with numbers computed from data."""
    error: JobError | None
    """Reason why the job of the map failed."""
    n_frequencies: int | None
    """Number of frequencies (hashes, for kernel gmm); null before building."""
    n_output: int | None
    """Columns of a transformed row (codes of a row, for kernel gmm); null before building."""
    digest: str | None
    """SHA-256 over spec and frozen arrays, null before building; also the ETag. Learned sets and landmark maps have
    another digest when they are built again on another kind of processor.
    """
    bytes: int
    """Size of the frozen arrays in bytes."""
    created_at: datetime
    """Time of the PUT."""
    ttl: int | None
    """Seconds that the map lives after its last use, which is a transform, a diagnostic, or anything else that reads
    its arrays; null for ever.
    """
    expires_at: datetime | None
    """When the map is deleted if it is not used before; null for never, and while a job builds it. A use postpones this
    time if more than a sixteenth of `ttl` has passed.
    """
    generator: dict[str, str]
    """Versions of the software that drew the arrays. The arrays are stored, not redrawn."""
    parameter_stream: int | None
    """Version of the random parameters, for kernel gmm; codes of one version stay the same for ever."""
    signature: str | None
    """Link to the array of signs of the weights; null if no weight is negative."""
    job: str | None
    """Link to the job that builds the map or has failed to build it; null when the map is ready."""
    report: dict[str, float] | None
    """Results of learning a set; null for sets that are not learned. Start and end of its objective (normalised D² over
    the box; for a reweighted grid and for differences data the mean squared error over pairs of rows), sum of the
    weights and points kept. If a dataset was available, also relative Frobenius errors of Gram matrices, of the set
    (gram_error) and of the initial set (gram_error_start): on up to 500 rows that learning may have used, and, with
    _held_out, on rows_held_out other rows, of which learning over a box used only the column ranges. They are those of
    form cos_sin: offsets of form phase add noise.
    """
    warnings: tuple[str, ...]
    """Doubts about this combination, and better alternatives."""


class MapPage(Described):
    """A page of maps in order of their names."""

    maps: list[MapRecord]
    """Maps, in order of their names."""
    next: str | None
    """Cursor of the next page, null on the last one."""


def read_spec(name: str, text: str) -> MapSpec:
    """Parse the stored text of a map's spec; raise StoreDamaged if this version of the service cannot read it."""
    try:
        return MapSpec.model_validate_json(text)
    except (ValidationError, InvalidInput) as error:
        raise StoreDamaged(f"the spec of map {name!r} is none that this version can read") from error


def record(manifest: MapManifest, spec: MapSpec | str) -> MapRecord:
    """Return the record of a stored map, ready, being built or failed; raise what `read_spec` raises."""
    known = read_spec(manifest.name, spec) if isinstance(spec, str) else spec
    left_open = LeftOpen.model_validate_json(manifest.asked) if manifest.is_open else NOTHING
    return _record(manifest, left_open.shown(known))


def write_record(manifest: MapManifest, spec: str) -> bytes:
    """Return the record as JSON; a long spec of this version is copied as stored. Raise what `record` raises."""
    by = manifest.generator.get("bochner", _VERSION)  # missing while a job builds the map
    is_known = manifest.schema_version == MapManifest.newest and by == _VERSION and not manifest.is_open
    if len(spec) < _LONG_SPEC or not is_known or '"fill":' in spec:
        return record(manifest, spec).model_dump_json().encode()
    before, _, after = _record(manifest, {}).model_dump_json().partition(_NO_SPEC)
    return f'{before}"spec":{spec}{after}'.encode()


def _record(manifest: MapManifest, spec: MapSpec | dict[str, Any]) -> MapRecord:
    more = {
        "status": manifest.state.value,
        "error": None if manifest.error is None else JobError.model_validate(manifest.error),
        "spec": spec,
        "digest": manifest.digest or None,
        "bytes": manifest.nbytes,
        "signature": link_to(f"/v1/maps/{manifest.name}/signature") if "signature" in manifest.arrays else None,
        "job": None if manifest.job is None else link(manifest.job),
    }
    return MapRecord(**dict(manifest) | more)


logger = logging.getLogger(__name__)

_States = list[tuple[str, State, str]]
# Maps that one call to the store lists.
_AT_A_TIME = 1000


class OpenMap(NamedTuple):
    """Map that is ready for use, and its identity."""

    name: str
    digest: str
    feature_map: FeatureMap
    in_use: Callable[[], AbstractContextManager[None]]
    """Returns a block during which the map does not expire."""


class ArrayKind(NamedTuple):
    """Description of a map's array, before the array is read."""

    digest: str
    """Digest of the map."""
    dtype: np.dtype[Any]
    is_frozen: bool
    """Whether the array has the same bits everywhere; if not, it is computed on request."""


# Memory of the numbers of a spec, for each character of its text.
_BYTES_PER_CHARACTER = 24


class Maps:
    """Maps of the service.

    Every method may raise StoreUnavailable or StoreDamaged; methods that use a map by name raise MapNotFound. Calls of
    a map use up to `threads` threads.
    """

    def __init__(self, store: MapStore, limits: Limits, cache: Cache, threads: int, jobs: Jobs, pins: Pins) -> None:
        self._store, self._jobs, self._pins, self._limits, self._threads = store, jobs, pins, limits, threads
        self._open, self._kept = cache.keeping(self._load), cache.there

    def get(self, name: str) -> MapRecord:
        """Return the record of a map, ready or not."""
        return record(*self._with_spec(name))

    def digest(self, name: str) -> str | None:
        """Return the digest of a map, "" if it is not ready, None if there is no such map."""
        found = self._store.find(name)
        return None if found is None else found.digest

    def write_record(self, name: str) -> tuple[str | None, bytes]:
        """Return the digest of a map, None if it is not ready, and its record as JSON."""
        manifest, spec = self._with_spec(name)
        return manifest.digest or None, write_record(manifest, spec)

    def list(self, prefix: str, cursor: str | None, limit: int) -> bytes:
        """Return a `MapPage` as JSON, in order of names."""
        manifests, after = self._store.page(prefix, cursor, limit)
        maps = []
        for manifest in manifests:
            with left_out():
                found = self._store.with_spec(manifest)
                maps += [] if found is None else [write_record(*found)]
        return b'{"maps":[%b],"next":%b}' % (b",".join(maps), to_json(after))

    def shape(self, name: str) -> tuple[MapSpec, int, int]:
        """Return the spec of a map, its number of frequencies and its number of output columns.

        Raises what `ready` raises, and reads no arrays.
        """

        def read() -> tuple[MapSpec, int, int]:
            manifest = require_ready(name, self._store.find(name))
            return self._spec_of(manifest)[1], manifest.n_frequencies or 0, manifest.n_output or 0

        return latest(read)

    def states(self, after: str | None) -> tuple[_States, str | None]:
        """Return name and state of maps in order of names, and why if building failed; and where to go on, or None."""
        page, following = self._store.page("", after, _AT_A_TIME)
        whys = ["" if one.error is None else str(one.error["detail"]) for one in page]
        return [(one.name, one.state, why) for one, why in zip(page, whys, strict=True)], following

    def delete(self, name: str, check: Check = accept_any) -> None:
        """Delete a map and cancel the job that builds it; of concurrent calls, only one succeeds.

        `check` receives the digest of the map; if it raises, the map stays. No map other than the checked one is
        deleted.

        Raises:
            MapInUse: indexes or aliases use the map.
        """

        def free(stored: bytes, receipt: str) -> None:
            check(digest_in(MapManifest, stored))
            if users := self._pins.users(name):
                raise MapInUse(name, users)
            self._jobs.cancel_making(MapManifest, stored, receipt)

        if not self._store.delete(name, free):
            raise MapNotFound(name)

    def ready(self, name: str, wanted: Gives | None = None) -> FeatureMap:
        """Return the map as it is in the store now, from memory if it is cached.

        Raises:
            InvalidInput: the map does not have the `wanted` capability.
            MapNotReady: the map is still being built, or its job failed.
            NewerVersion: the map has a later parameter stream than this version supports.
        """
        found = self.open(name).feature_map
        if wanted is not None:
            found.check_gives(wanted, f"map {name!r}")
        return found

    def open(self, name: str) -> OpenMap:
        """Return a map for use, with its digest; raise what `ready` raises."""

        def read() -> OpenMap:
            manifest = self._use(name)
            return OpenMap(manifest.name, manifest.digest, self._open(manifest), partial(self._store.using, manifest))

        return latest(read)

    def of_index(self, wanted: MapOfIndex) -> FeatureMap | None:
        """Return the map of an index, from memory or the store; None if it is missing, which should not happen."""
        kept: FeatureMap | None = self._kept(wanted)
        if kept is not None:
            return kept
        with suppress(MapNotFound, MapNotReady):
            opened = self.open(wanted.name)
            return opened.feature_map if opened.digest == wanted.digest else None
        return None

    def find_in_memory(self, name: str, found: MapManifest | None, wanted: Gives) -> FeatureMap | None:
        """Return the map that the store has under this name if it is cached, else None; takes no time.

        Also return None if the use of the map must be noted in the store, which takes time. Raises what `ready` raises.
        """
        manifest = require_ready(name, found)
        kept: FeatureMap | None = None if manifest.is_due else self._kept(manifest)
        if kept is not None:
            kept.check_gives(wanted, f"map {name!r}")
        return kept

    def array(self, name: str, array_name: str, check: Callable[[ArrayKind], object]) -> NDArray[Any] | RowBlocks:
        """Return one array of a map, frozen or computed from frozen arrays; in blocks, if frozen and above the limit.

        `check` receives the description of the array before anything is computed, and may raise.

        Raises:
            ArrayNotFound: maps of this kind have no such array.
            TooLarge: the array must be computed, and is larger, or takes more work, than a request allows.
        """
        manifest = self._use(name)
        entry = manifest.arrays.get(array_name)
        if entry is not None and entry.nbytes > self._limits.max_result_bytes:
            check(ArrayKind(manifest.digest, np.dtype(entry.dtype), True))
            return self._in_blocks(manifest, array_name)
        _, digest, found, _ = self.open(name)
        if array_name not in found.arrays:
            raise ArrayNotFound(f"map {name!r} has no {array_name}; it has {', '.join(sorted(found.arrays))}")
        dtype = {**found.frozen(found.spec), **found.computed}[array_name].dtype
        check(ArrayKind(digest, dtype, array_name not in found.computed))
        if array_name in found.computed:
            self._limits.check_result(found.computed[array_name].nbytes)
            self._limits.check_operations(_operations_for(found, array_name))
        return found.arrays[array_name]

    def taken_away(self, name: str) -> TakenMap:
        """Return a map for export. Arrays larger than a block are read while they are sent, and are not cached.

        Raises:
            MapNotReady: the map is still being built, or its job failed.
            NewerVersion: the map has a later parameter stream than this version supports.
            TooLarge: a row of an array, a computed array, or an array that it is computed from exceeds
                `max_result_bytes`.
        """

        def read() -> TakenMap:
            manifest = self._use(name)
            text, spec = self._spec_of(manifest)
            whole = ArraysOnDemand({}, {array: partial(self._whole, manifest, array) for array in manifest.arrays})
            arrays: dict[str, NDArray[Any] | RowBlocks] = {}
            for array, entry in manifest.arrays.items():
                is_small = entry.nbytes <= min(BLOCK_BYTES, self._limits.max_result_bytes)
                arrays[array] = whole[array] if is_small else self._in_blocks(manifest, array)
            computed = derived_arrays(spec, whole)
            self._limits.check_result(max((array.nbytes for array in computed.values()), default=0))
            arrays |= computed
            return TakenMap(spec, text, manifest.digest, manifest.parameter_stream, arrays)

        return latest(read)

    def _use(self, name: str) -> MapManifest:
        """Return the manifest of a map for use, which extends its life; raise what `require_ready` raises."""
        manifest = require_ready(name, self._store.find(name))
        if manifest.is_due:
            try:
                self._store.note_use(manifest)
            except (StoreUnavailable, StoreDamaged) as error:  # a store that refuses writes can still be read
                logger.warning("the use of map %r is not noted: %s", name, error)
        return manifest

    def _whole(self, manifest: MapManifest, array_name: str) -> NDArray[Any]:
        self._limits.check_result(manifest.arrays[array_name].nbytes)
        return self._store.read(manifest, array_name)

    def _with_spec(self, name: str) -> tuple[MapManifest, str]:
        """Return the manifest of a map, ready or not, and the text of its spec."""
        found = self._store.with_spec(self._store.find(name))
        if found is None:
            raise MapNotFound(name)
        return found

    def _in_blocks(self, manifest: MapManifest, array_name: str) -> RowBlocks:
        """Return a frozen array that is read from the store in blocks, in the memory of two, and none of the cache."""
        shape, dtype = manifest.arrays[array_name].shape, np.dtype(manifest.arrays[array_name].dtype)
        row_bytes = prod(shape[1:]) * dtype.itemsize
        self._limits.check_result(row_bytes)
        blocks = [*row_blocks(shape[0], min(BLOCK_BYTES, self._limits.max_result_bytes) // row_bytes)]

        def read() -> Iterator[NDArray[Any]]:
            with self._store.using(manifest):
                yield from self._store.read_in_blocks(manifest, array_name, blocks)

        reading = read()
        return RowBlocks(shape, dtype, blocks, lambda _: next(reading))

    def _load(self, manifest: MapManifest) -> FeatureMap:
        text, spec = self._spec_of(manifest)
        opened = open_map(spec, self._store.read_all(manifest), self._threads)
        opened.bytes += _BYTES_PER_CHARACTER * len(text) + spec.kernel.derived_bytes
        return opened

    def _spec_of(self, manifest: MapManifest) -> tuple[str, MapSpec]:
        """Return the text and the spec of a map; raise if this version does not support it, or if it was changed."""
        text, stream = self._store.spec(manifest), manifest.parameter_stream
        manifest.check_seal(digest(text, manifest.arrays, stream))
        spec = read_spec(manifest.name, text)
        known = family_of(spec.sampler).parameter_stream
        if stream is not None and known is not None and stream > known:
            raise NewerVersion(f"map {manifest.name!r}", f"parameter stream {stream}", known)
        if stream != known:
            made = f"map {manifest.name!r} was made with parameter stream {stream}"
            raise StoreDamaged(f"{made}; this version knows {known}")
        return text, spec


def require_ready(name: str, found: MapManifest | None) -> MapManifest:
    """Return the manifest found under a name if its map is ready.

    Raises:
        MapNotFound: there is no manifest.
        MapNotReady: the map is still being built, or its job failed.
    """
    if found is None:
        raise MapNotFound(name)
    if found.job is not None:
        raise MapNotReady(name, found.job, found.error)
    return found


def _operations_for(feature_map: FeatureMap, array_name: str) -> int:
    """Estimate the multiplications of a computed array: those of transforming one row per column, if it has columns."""
    _, *columns = feature_map.computed[array_name].shape
    rows = np.broadcast_to(np.float32(0), (sum(columns), feature_map.spec.input_dim))
    return feature_map.operations(rows)
