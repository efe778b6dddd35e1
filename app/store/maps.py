"""Maps in the store: ready, being built, or failed."""

import hashlib
import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from math import isfinite
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import redis
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from app.core.maps.terms import Built
from app.store.account import UNLIMITED, Quota
from app.store.errors import Gone, IsAlias, NewerVersion, StoreDamaged
from app.store.manifest import ArrayEntry, digest_of, now
from app.store.named import SPEC, LivingManifest, LivingStore, NameTaken, Reservation, State, contents, end, fitting


class SpecEntry(BaseModel):
    """Spec stored in chunks beside its manifest, so that finding a map costs the same for any length of the spec."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nbytes: int
    sha256: str

    @classmethod
    def of(cls, spec: str) -> "SpecEntry":
        """Return the entry of a spec: its length and digest."""
        encoded = spec.encode()
        return cls(nbytes=len(encoded), sha256=hashlib.sha256(encoded).hexdigest())


def _finite(report: dict[str, float | None] | None) -> dict[str, float] | None:
    """Leave out figures that are not finite: they would be stored as null."""
    return None if report is None else {name: one for name, one in report.items() if one is not None and isfinite(one)}


class MapManifest(LivingManifest):
    """Manifest of a map, without its arrays and the text of its spec. Since version 4 a map may have a time to live."""

    kind = "map"
    dtypes = frozenset({"float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
    newest = 4

    spec: SpecEntry | str
    """Entry of the spec; version 1 had the spec itself."""
    asked: str = ""
    """Deferred fields of the client's spec, whose resolved values the spec has; empty for none. Since version 3."""
    is_open: bool = False
    """Whether the deferred fields are still unresolved placeholders in the spec, for the job to resolve."""
    arrays: dict[str, ArrayEntry] = Field({})
    digest: str = ""
    """Digest of the map; empty before it is built."""
    n_frequencies: int | None = None
    n_output: int | None = None
    generator: dict[str, str] = Field({})
    parameter_stream: int | None = None
    """Version of the parameter stream that replaces arrays; None if the map has none."""
    warnings: tuple[str, ...] = ()
    report: Annotated[dict[str, float] | None, BeforeValidator(_finite)] = None
    """Report on a learned set of frequencies; None for all other maps."""

    @model_validator(mode="after")
    def _built_or_not(self) -> Self:
        if (self.state is State.ready) != bool(self.digest):
            raise ValueError("a map has a digest exactly when it is ready")
        return self

    @property
    def lengths(self) -> dict[str, int]:
        """Bytes of the arrays and the spec, by the name that is part of their keys."""
        spec = {SPEC: self.spec.nbytes} if isinstance(self.spec, SpecEntry) else {}
        return spec | super().lengths


def digest(spec: str, arrays: dict[str, ArrayEntry], parameter_stream: int | None) -> str:
    """Return the digest of all that a map's answers depend on."""
    others: dict[str, Any] = {"spec": json.loads(spec)}
    if parameter_stream is not None:
        others["parameter_stream"] = parameter_stream
    return digest_of(arrays, **others)


class NewMap(NamedTuple):
    """Map to be created."""

    name: str
    spec: str
    built: Built
    generator: dict[str, str]
    parameter_stream: int | None = None
    asked: str = ""
    """Deferred fields of the client's spec, see `MapManifest`."""
    ttl: int | None = None
    """Time to live in seconds after the last use; a map that replaces a reservation takes the reservation's instead."""


class MapStore(LivingStore[MapManifest]):
    """Store of maps: creates, reserves, finds, lists, reads and deletes them."""

    def __init__(self, client: redis.Redis, quota: Quota = UNLIMITED) -> None:
        super().__init__(client, MapManifest, quota)

    def spec(self, manifest: MapManifest) -> str:
        """Return the text of a map's spec, after verifying its digest.

        Raises:
            Gone: the map no longer exists.
            StoreDamaged: the spec is not what was written.
        """
        if isinstance(manifest.spec, str):
            return manifest.spec
        return self._read(manifest, SPEC, manifest.spec.sha256).decode()

    def verify(self, manifest: MapManifest) -> None:
        """Verify the digests of spec, manifest and arrays; see `NamedStore.verify`."""
        spec = self.spec(manifest)
        if manifest.state is State.ready:
            manifest.check_seal(digest(spec, manifest.arrays, manifest.parameter_stream))
        super().verify(manifest)

    def with_spec(self, manifest: MapManifest | None) -> tuple[MapManifest, str] | None:
        """Return a manifest and its spec; those of a new map of the same name if the map was replaced; None if gone."""
        while manifest is not None:
            with suppress(Gone):
                return manifest, self.spec(manifest)
            manifest = self.find(manifest.name)
        return None

    def page(self, prefix: str, after: str | None, limit: int) -> tuple[list[MapManifest], str | None]:
        """Return a page of maps, see `NamedStore.page`; the lengths of specs count as well."""
        manifests, following = super().page(prefix, after, limit)
        page = manifests[: fitting(manifest.lengths.get(SPEC, 0) for manifest in manifests)]
        return page, following if len(page) == len(manifests) else page[-1].name

    def create(
        self,
        new: NewMap,
        replaced: MapManifest | None = None,
        announce: Callable[[list[str]], None] = lambda _: None,
        owner: str = "",
    ) -> MapManifest:
        """Store a map under a free name, or in place of its reservation `replaced`, which must still exist.

        `announce` is called with the keys of the chunks before they are written. `owner` owns the map in the account.

        Raises:
            NameTaken: the name is not free, or the reservation is gone.
            QuotaExceeded: there is no room for the map.
        """
        arrays = {name: np.ascontiguousarray(array) for name, array in new.built.arrays.items()}
        entries = {name: ArrayEntry.of(array) for name, array in arrays.items()}
        ttl = new.ttl if replaced is None else replaced.ttl
        manifest = MapManifest(
            schema_version=MapManifest.newest,
            token=secrets.token_hex(8),
            name=new.name,
            spec=SpecEntry.of(new.spec),
            asked=new.asked,
            arrays=entries,
            digest=digest(new.spec, entries, new.parameter_stream),
            n_frequencies=new.built.n_frequencies,
            n_output=new.built.n_output,
            created_at=now(),
            generator=new.generator,
            parameter_stream=new.parameter_stream,
            warnings=new.built.warnings,
            report=new.built.report,
            ttl=ttl,
            expires_at=end(ttl),
        )
        kept = contents(arrays) | {SPEC: new.spec.encode()}
        while (there := self._put(manifest, kept, manifest.ttl, replaced, announce, owner)) != manifest.stored:
            replaced = _put_again(replaced, there)
            if replaced is None:
                raise NameTaken(new.name)
            manifest = manifest.model_copy(update={"ttl": replaced.ttl, "expires_at": end(replaced.ttl)})
        if manifest.ttl is not None:
            self._tidy(manifest.name)
        return manifest

    def reserve(
        self,
        name: str,
        spec: str,
        job: str,
        asked: str = "",
        warnings: tuple[str, ...] = (),
        is_open: bool = False,
        promised: int = 0,
        owner: str = "",
        ttl: int | None = None,
    ) -> tuple[MapManifest, Reservation]:
        """Prepare the reservation of a name for a job that builds the map; the script that submits the job stores it.

        `asked`, `warnings` and `is_open` are fields of `MapManifest`, as far as known before the build. `promised` is
        the bytes to reserve for the arrays, so that no map is built for hours and then refused. The map will live `ttl`
        seconds after its last use; if the job fails, the failed manifest lives `ttl` seconds.

        Raises:
            QuotaExceeded: there is no room for the map.
        """
        manifest = MapManifest(
            schema_version=MapManifest.newest,
            token=secrets.token_hex(8),
            name=name,
            state=State.building,
            spec=SpecEntry.of(spec),
            asked=asked,
            is_open=is_open,
            warnings=warnings,
            job=job,
            created_at=now(),
            ttl=ttl,
        )
        return manifest, self._reserve(manifest, {SPEC: spec.encode()}, owner, promised)


def _put_again(reservation: MapManifest | None, stored: bytes) -> MapManifest | None:
    """Return the reservation as stored now, with its new time to live; None if `stored` is something else."""
    with suppress(IsAlias, StoreDamaged, NewerVersion):
        there = MapManifest.parse(stored)
        if reservation is not None and there.token == reservation.token and there.state is State.building:
            return there
    return None
