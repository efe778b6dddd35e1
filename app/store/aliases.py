"""Aliases in the store: further names of maps and indexes, which can be moved from one to another at once.

An alias `a` of an index is a manifest at the key that an index `a` would have, so that no name is given twice;
`bochner:index-aliases` lists the names. It is the same for maps.
"""

import secrets
from typing import Any, ClassVar, cast

import redis
from pydantic import Field

from app.store import lua
from app.store.account import UNLIMITED, Quota, refuse
from app.store.connection import acknowledge, check_room, inside
from app.store.errors import NameHeld, store_errors
from app.store.manifest import ArrayEntry
from app.store.named import LUA, LivingManifest, NamedStore

_MARK = b'"alias_of":'


class AliasManifest(LivingManifest):
    """Manifest of an alias."""

    dtypes: ClassVar[frozenset[str]] = frozenset()
    newest: ClassVar[int] = 1

    alias_of: str
    """Name of the map or index."""
    arrays: dict[str, ArrayEntry] = Field({})

    @property
    def account_bytes(self) -> int:
        """Bytes for which the alias counts in the account: its manifest, and its name in the keys around it."""
        return 2 * len(self.stored) + 512


class MapAlias(AliasManifest):
    """Alias of a map."""

    kind = "map"


class IndexAlias(AliasManifest):
    """Alias of an index."""

    kind = "index"


class AliasStore(NamedStore[AliasManifest]):
    """Store of aliases of maps, or of indexes; no name is an alias of both kinds.

    Every method raises StoreUnavailable if the store does not answer.
    """

    def __init__(self, client: redis.Redis, manifest: type[AliasManifest], quota: Quota = UNLIMITED) -> None:
        super().__init__(client, manifest, quota)
        self._other = MapAlias.kind if manifest is IndexAlias else IndexAlias.kind
        self._indexes = {root: inside(root, f"bochner:{manifest.kind}-aliases") for root in self._places.roots}
        self._put_alias = client.register_script(LUA + lua.read("aliases/put"))

    @acknowledge()
    def put(self, alias: AliasManifest, replaced: AliasManifest | None, owner: str = "") -> bool:
        """Store an alias for `owner` in place of the one that it replaces, if any; False if another is there.

        Raises:
            NameHeld: a map or an index has the name.
            QuotaExceeded: there is no room for another name.
        """
        check_room(self._client, 0)
        expected = b"" if replaced is None else replaced.stored
        keys = [self.key(alias.name), self._index(alias.name), self.key(alias.name, self._other)]
        with self._account.hold(keys[0], owner, alias.account_bytes, 1) as held:
            if held and (replaced is None or self._account.owner_of(self._entry(replaced)) != owner):
                self._account.check(alias.account_bytes, owner, entered=True)
            args = [alias.stored, alias.name, expected, owner, alias.account_bytes, *self._account.most, held]
            with store_errors():
                limit, stored = cast("list[Any]", self._put_alias(keys=keys, args=args))
        refuse(limit, alias.account_bytes, names=1)
        if stored and _MARK not in stored:
            detail = f"{alias.kind} {alias.name!r} exists; delete it, or take another name for the alias"
            raise NameHeld(alias.kind, detail)
        return bool(stored == alias.stored)

    @acknowledge()
    def remove(self, alias: AliasManifest) -> bool:
        """Remove an alias; False if it has changed."""
        return self._compare_and_remove(alias.name, alias.stored, secrets.token_hex(8))

    @acknowledge()
    def confirm_absence(self, name: str) -> None:
        """Return once replicas acknowledge all changes of the name of an alias that is gone."""
        self._store(name)

    def _store(self, name: str) -> bytes | None:
        stored = super()._store(name)
        return stored if stored is not None and _MARK in stored else None
