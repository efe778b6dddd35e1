"""Aliases: further names of maps and indexes, moved from one to another at once."""

import hashlib
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from app.core.errors import InvalidInput
from app.core.model import NAME_PATTERN, Described, Frozen
from app.services.errors import AliasNotFound, Check, accept_any
from app.store.aliases import AliasManifest, AliasStore
from app.store.errors import NameHeld, QuotaExceeded, StoreUnavailable
from app.store.manifest import now
from app.store.named import LivingManifest
from app.store.pins import Pins, User


class AskedAlias(Frozen):
    """An alias: of a map, or of an index."""

    map: Annotated[str, Field(pattern=NAME_PATTERN)] | None = None
    """Name of the map that the alias stands for."""
    index: Annotated[str, Field(pattern=NAME_PATTERN)] | None = None
    """Name of the index that the alias stands for."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.map is None) == (self.index is None):
            came = "neither" if self.map is None else "both"
            raise InvalidInput(f"expected map or index, which the alias stands for, got {came}", "")
        return self


class AliasRecord(Described):
    """An alias."""

    name: str
    """Name of the alias."""
    map: str | None
    """Name of the map that it stands for; null if it stands for an index."""
    index: str | None
    """Name of the index that it stands for; null if it stands for a map."""
    digest: str
    """Another one after each PUT that moves the alias; also the ETag."""
    changed_at: datetime
    """Time of the last PUT that changed it."""


class AliasPage(Described):
    """A page of aliases in order of their names."""

    aliases: list[AliasRecord]
    """Aliases, in order of their names."""
    next: str | None
    """Cursor of the next page, null on the last one."""


class AliasKind(NamedTuple):
    """Aliases of one kind: of maps, or of indexes."""

    manifest: type[AliasManifest]
    store: AliasStore
    pins: Pins
    """References to the maps or indexes."""
    require: Callable[[str], LivingManifest]
    """Returns the map or index with a name; raises if there is none, or if it is not ready."""

    def put(self, name: str, thing: LivingManifest, before: AliasManifest | None, owner: str) -> AliasManifest | None:
        """Store an alias of a thing in place of the one before; None if the name or the thing has changed."""
        token = secrets.token_hex(8)
        alias = self.manifest(
            schema_version=self.manifest.newest,
            token=token,
            name=name,
            alias_of=thing.name,
            digest="sha256:" + hashlib.sha256(f"{thing.kind} {thing.name} {token}".encode()).hexdigest(),
            created_at=now(),
        )
        user = _user(alias)
        if not self.pins.pin(thing, user):
            return None
        try:
            is_put = self.store.put(alias, before, owner)
        except (NameHeld, QuotaExceeded):
            self.pins.unpin(thing.name, user)
            raise
        if not is_put:
            self.pins.unpin(thing.name, user)
            return None
        self.pins.settle(thing.name, user)
        return alias


class Aliases:
    """Aliases of the service. Every method may raise StoreUnavailable or StoreDamaged.

    `unfit` returns the reason why the store cannot be trusted with new aliases, or None if it can.
    """

    def __init__(self, every: Mapping[str, AliasKind], unfit: Callable[[], str | None]) -> None:
        self._every, self._unfit = every, unfit

    def put(self, name: str, asked: AskedAlias, owner: str = "", check: Check = accept_any) -> tuple[AliasRecord, bool]:
        """Make an alias stand for a map or an index; return its record, and whether it is new.

        A new alias counts towards `owner`'s quota. `check` receives the digest of the alias as it is, and may raise.

        Raises:
            NameHeld: a map or an index has the name, or it is an alias of the other kind.
            MapNotFound, IndexNotFound: there is nothing that it can stand for.
            MapNotReady, IndexNotReady: a job is still making that, or has failed.
            QuotaExceeded: there is no room for another name.
        """
        if reason := self._unfit():
            raise StoreUnavailable(f"{reason}; no alias is put there")
        ((kind, wanted),) = asked.model_dump(exclude_none=True).items()
        of = self._every[kind]
        while True:
            before = self._find(name)
            check(None if before is None else before.digest)
            if before is not None and before.kind != kind:
                detail = f"alias {name!r} stands for {before.kind} {before.alias_of!r}; DELETE it, or take another name"
                raise NameHeld(before.kind, detail)
            thing = of.require(wanted)
            if before is not None and before.alias_of == thing.name:
                if of.store.confirm(before) is None:
                    continue
                return record(before), False
            alias = of.put(name, thing, before, owner)
            if alias is None:
                continue
            if before is not None:
                of.pins.unpin(before.alias_of, _user(before))
            return record(alias), before is None

    def get(self, name: str) -> AliasRecord:
        """Return the record of an alias."""
        found = self._find(name)
        if found is None:
            raise AliasNotFound(name)
        return record(found)

    def list(self, prefix: str, cursor: str | None, limit: int) -> AliasPage:
        """Return a page of records in order of their names."""
        pages = [of.store.page(prefix, cursor, limit) for of in self._every.values()]
        ends = [after for _, after in pages if after is not None]
        found = sorted(chain.from_iterable(page for page, _ in pages), key=attrgetter("name"))
        # Where one kind has more to come, names of the other kind beyond must wait.
        shown = [alias for alias in found if not ends or alias.name <= min(ends)][:limit]
        last = shown[-1].name if shown else min(ends, default=None)
        return AliasPage(aliases=[*map(record, shown)], next=last if ends or len(shown) < len(found) else None)

    def delete(self, name: str, check: Check = accept_any) -> None:
        """Delete an alias; what it stands for stays. `check` receives its digest, and may raise."""
        while (there := self._find(name)) is not None:
            check(there.digest)
            of = self._every[there.kind]
            if of.store.remove(there):
                of.pins.unpin(there.alias_of, _user(there))
                return
        for of in self._every.values():
            of.store.confirm_absence(name)
        raise AliasNotFound(name)

    def _find(self, name: str) -> AliasManifest | None:
        return next((found for of in self._every.values() if (found := of.store.find_own(name)) is not None), None)


def record(alias: AliasManifest) -> AliasRecord:
    """Return the record of an alias."""
    thing = {"map": None, "index": None} | {alias.kind: alias.alias_of}
    return AliasRecord(name=alias.name, digest=alias.digest, changed_at=alias.created_at, **thing)


def _user(alias: AliasManifest) -> User:
    return User(alias.name, alias.token, "alias")
