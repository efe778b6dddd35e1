"""Create, find, list and delete maps, and keep those in use ready."""

import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from numpy.typing import NDArray

from app.core.maps import FeatureMap, family, opened
from app.core.spec import MapSpec
from app.services.errors import ArrayNotFound, MapExists, NotFound
from app.services.limits import Limits
from app.services.ready import ReadyCache, arrays_of, check_sealed, latest
from app.services.records import MapPage, MapRecord, record, spec_of
from app.store.errors import StoreDamaged, StoreUnavailable
from app.store.maps import MapManifest, MapStore, NewMap

logger = logging.getLogger(__name__)


class Maps:
    """The maps of the service.

    Every method may raise StoreUnavailable or StoreDamaged; those that take a name of a map to use, NotFound.

    Args:
        store: where the maps are.
        limits: of a request.
        cache: for maps kept ready.
        threads: how many one call of a map may use.
        unfit: says why the store cannot be trusted with new maps, None if it can.
    """

    def __init__(
        self, store: MapStore, limits: Limits, cache: ReadyCache, threads: int, unfit: Callable[[], str | None]
    ) -> None:
        self._store = store
        self._limits = limits
        self._threads = threads
        self._unfit = unfit
        self._open = cache.keeping(self._load)

    def create(self, name: str, spec: MapSpec) -> tuple[MapRecord, bool]:
        """Build a map and store it, unless it is there already.

        Returns:
            The record, and whether the map is new.

        Raises:
            MapExists: another spec has the name.
            TooLarge: the arrays pass the limit.
            InvalidInput: the arrays cannot be drawn as specified.
        """
        standing = self._store.find(name)
        if standing is None:
            self._limits.check_map(family(spec).frozen_bytes(spec))
            if reason := self._unfit():
                raise StoreUnavailable(f"{reason}; no map is created there")
            standing, created = self._store.create(_built(name, spec))
            if created:
                return record(standing), True
        there = record(standing)
        if there.spec.canonical() != spec.canonical():
            raise MapExists(name, there.digest)
        return there, False

    def get(self, name: str) -> MapRecord:
        """The record of a map."""
        return record(self._find(name))

    def list(self, prefix: str, cursor: str | None, limit: int) -> MapPage:
        """A page of records in order of their names."""
        manifests, after = self._store.list(prefix, cursor, limit)
        maps = []
        for manifest in manifests:
            try:
                maps.append(record(manifest))
            except StoreDamaged as error:  # the others must still be listed
                logger.error("left out of the list: %s", error)
        return MapPage(maps=maps, next=after)

    def delete(self, name: str) -> None:
        """Remove a map."""
        if not self._store.delete(name):
            raise NotFound(name)

    def ready(self, name: str) -> FeatureMap:
        """The map as it is in the store now, from memory if it is kept there."""
        return latest(lambda: self._open(self._find(name)))

    def array(self, name: str, array_name: str) -> NDArray[Any]:
        """One frozen array of a map.

        Raises:
            ArrayNotFound: maps of its kind have no such array.
        """
        arrays = self.ready(name).arrays
        if array_name not in arrays:
            raise ArrayNotFound(f"map {name!r} has no {array_name}; it has {', '.join(sorted(arrays))}")
        return arrays[array_name]

    def _find(self, name: str) -> MapManifest:
        manifest = self._store.find(name)
        if manifest is None:
            raise NotFound(name)
        return manifest

    def _load(self, manifest: MapManifest) -> FeatureMap:
        check_sealed(manifest)
        spec = spec_of(manifest)
        known = family(spec).parameter_stream
        if manifest.parameter_stream != known:
            raise StoreDamaged(
                f"map {manifest.name!r} was made with parameter stream {manifest.parameter_stream}; "
                f"this version knows {known}"
            )
        return opened(spec, arrays_of(self._store, manifest), self._threads)


def _built(name: str, spec: MapSpec) -> NewMap:
    built = family(spec).build(spec)
    return NewMap(
        name=name,
        spec=spec.canonical(),
        arrays=built.arrays,
        n_frequencies=built.n_frequencies,
        n_output=built.n_output,
        generator={package: version(package) for package in ("bochner", "numpy", "scipy")},
        warnings=built.warnings,
        parameter_stream=family(spec).parameter_stream,
    )
