"""Indexes in the store. Their keys are told in app/store/index_scripts.py; `bochner:indexes` lists the names."""

import secrets
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import redis
from numpy.typing import NDArray

from app.store import identity
from app.store import index_scripts as scripts
from app.store.account import UNLIMITED, Quota
from app.store.confirmed import acknowledged
from app.store.connection import check_room
from app.store.errors import Gone, NewerVersion, QuotaExceeded, StoreDamaged, store_errors
from app.store.index_manifest import IndexManifest
from app.store.index_scripts import MARK_BYTES
from app.store.named import NamedStore, end
from app.store.places import inside
from app.store.totals import Totals

_RECEIPT_BYTES = 8
_STATE = ("size", "revision", "bytes")


class IndexState(NamedTuple):
    """What an index holds at a moment."""

    size: int
    revision: int
    """How often it was changed."""
    nbytes: int


class Entry(NamedTuple):
    """A vector to be kept."""

    id: bytes
    row: bytes
    """The mark of its tag, and its codes."""
    vector: bytes
    """Itself as it is kept; empty where it is not."""


class Block(NamedTuple):
    """What is kept of the slots of a block."""

    codes: bytes
    """Marks and codes, one vector after the other; nothing that matters from the size of the index on."""
    ids: bytes
    """Ids, each after its length in two bytes."""


class Part(NamedTuple):
    """Some blocks of an index, and what it held when they were read, all of one moment."""

    state: IndexState
    revisions: NDArray[np.uint32]
    """The revision of the last change of each block."""
    blocks: list[Block]


class IndexFull(Exception):
    """An index would hold more vectors than it may."""

    def __init__(self, name: str, allowed: int, wanted: int) -> None:
        super().__init__(f"index {name!r} would hold {wanted} vectors; {allowed} are the most")
        self.allowed, self.wanted = allowed, wanted


class IndexStore(NamedStore[IndexManifest]):
    """Create, find, page through and delete indexes, put vectors into them, take them out, and read blocks.

    Every method raises StoreUnavailable where the store does not answer; those that are given the manifest of an index,
    Gone where it is not there any more.
    """

    def __init__(self, client: redis.Redis, quota: Quota = UNLIMITED) -> None:
        super().__init__(client, IndexManifest, quota)
        self._indexes = {root: inside(root, "bochner:indexes") for root in self._places.roots}
        self._totals = Totals(client, *quota)
        # Where there are several places, none knows what the others hold.
        self._is_spread = len(self._places.roots) > 1
        self._most = ["" if most is None or self._is_spread else most for most in quota]
        made = [client.register_script(script) for script in scripts.ALL]
        self._create, self._live, self._drop, self._upsert, self._remove, self._vectors = made

    @acknowledged()
    def create(self, manifest: IndexManifest, owner: str = "") -> IndexManifest:
        """Store an empty index, `owner`'s in the account, unless something has its name; gives what stands there then.

        Raises:
            QuotaExceeded: there is no room for another name.
        """
        check_room(self._client, 0)
        if self._is_spread:
            self._totals.require_room(owner, 0, 1, entered=False)
        ttl = "" if manifest.ttl is None else manifest.ttl
        args = [manifest.token, manifest.stored, manifest.name, ttl, owner, *self._most]
        with store_errors():
            limit, stored = cast(
                "list[Any]", self._create(keys=[self._key(manifest.name), self._index(manifest.name)], args=args)
            )
        _refuse(limit, names=1)
        if manifest.ttl is not None:
            self._tidy(manifest.name)
        return IndexManifest.parse(stored)

    @acknowledged()
    def renew(self, there: IndexManifest, ttl: int | None) -> IndexManifest | None:
        """Let an index live for so many seconds after this and each later use, or for ever.

        Returns:
            The manifest as it stands then; None if the index is gone, or another changes it at the same time.
        """
        if ttl is None and there.ttl is None:
            return self._confirmed(there)
        return self._living(there, ttl)

    def note_use(self, there: IndexManifest) -> None:
        """Let an index live on whose use is to be noted. Another may note its own use at the same time."""
        self._living(there, there.ttl)

    def _living(self, there: IndexManifest, ttl: int | None) -> IndexManifest | None:
        if (now_there := self._as_stored(there)) is None:
            return None
        stored, found = now_there
        renewed = found.model_copy(update={"ttl": ttl, "expires_at": end(ttl)})
        args: list[bytes | str | int] = [there.token, stored, renewed.stored, "" if ttl is None else ttl]
        with store_errors():
            return renewed if self._live(keys=[self._key(there.name)], args=args) else None

    @acknowledged()
    def delete(self, name: str, free: Callable[[bytes, str], None] = lambda _, __: None) -> bool:
        """Remove an index and every key of it, see `NamedStore.delete`."""
        receipt = secrets.token_hex(8)
        while (stored := self._stored(name)) is not None:
            try:
                token = IndexManifest.parse(stored).token
            except (StoreDamaged, NewerVersion):  # its keys are found by their names
                return super().delete(name, free)
            free(stored, receipt)
            with store_errors():
                if self._drop(keys=[self._key(name), self._index(name)], args=[token, stored, name, receipt]):
                    return True
        return False

    @acknowledged()
    def upsert(self, manifest: IndexManifest, entries: Sequence[Entry], most: int | None = None) -> None:
        """Keep vectors in the place of those with the same ids: all of them, or none. No id comes twice.

        Raises:
            QuotaExceeded: there is no room for them.
            IndexFull: the index would hold more than `most` vectors.
        """
        kept = manifest.keep == "vectors"
        nbytes = sum(2 * len(one.id) + len(one.row) + len(one.vector) for one in entries)
        check_room(self._client, nbytes)
        if self._is_spread:
            owner = self._totals.owner_of(self._entry(manifest))
            self._totals.require_room(owner, nbytes, 0, entered=False)
        args: list[Any] = [manifest.token, _stride(manifest), "1" if kept else "", self._most[0], most or ""]
        for entry in entries:
            args += entry
        with store_errors():
            told = cast("list[Any] | None", self._upsert(keys=[self._key(manifest.name)], args=args))
        if told is None:
            raise Gone
        if told[0] == b"vectors":
            raise IndexFull(manifest.name, int(told[1]), int(told[2]))
        _refuse(told if told[0] else None, nbytes=nbytes)

    @acknowledged()
    def remove(self, manifest: IndexManifest, vector_id: bytes) -> bool:
        """Remove a vector; False if there is none of this id."""
        kept = "1" if manifest.keep == "vectors" else ""
        receipt = secrets.token_bytes(_RECEIPT_BYTES)
        args: list[bytes | str | int] = [manifest.token, _stride(manifest), kept, vector_id, receipt]
        with store_errors():
            removed = cast("int | None", self._remove(keys=[self._key(manifest.name)], args=args))
        if removed is None:
            raise Gone
        return bool(removed)

    def look(self, name: str, known: IndexManifest | None = None) -> tuple[IndexManifest, IndexState] | None:
        """The manifest of an index and what it holds; None if there is none. One call where the manifest is `known`."""
        while True:
            with store_errors(), self._client.pipeline(transaction=False) as asked:
                asked.get(self._key(name))
                if known is not None:
                    asked.hmget(self._at(known, "state"), _STATE)
                stored, *state = asked.execute()
            if stored is None:
                identity.check(self._client, self._places.of(name))
                return None
            there = known if known is not None and known.stored == stored else IndexManifest.parse(stored)
            found = _state(state[0]) if known is not None and known.token == there.token else None
            if found is not None:
                return there, found
            if known is there:
                raise StoreDamaged(f"the state of index {name!r} is missing")
            known = there

    def part(self, manifest: IndexManifest, blocks: Sequence[int]) -> Part:
        """Some blocks of an index, of which it must have had as many, and what it holds at the same moment.

        A block that the index has no more is empty.
        """
        with store_errors(), self._client.pipeline(transaction=True) as asked:
            asked.hmget(self._at(manifest, "state"), _STATE)
            asked.get(self._at(manifest, "revisions"))
            if blocks:
                # The client library has no mget for a pipeline of a cluster, where keys might lie apart.
                keys = [self._at(manifest, f"{kind}.{block}") for kind in ("codes", "ids") for block in blocks]
                asked.execute_command("MGET", *keys)  # type: ignore[no-untyped-call]
            stored, revisions, *read = asked.execute()
        state = _state(stored)
        if state is None:
            raise Gone
        found = [one or b"" for one in (read[0] if read else [])]
        n = len(blocks)
        return Part(
            state,
            np.frombuffer(revisions or b"", "<u4"),
            [Block(codes, ids) for codes, ids in zip(found[:n], found[n:], strict=True)],
        )

    def vectors(self, manifest: IndexManifest, ids: Sequence[bytes]) -> list[bytes | None]:
        """The vectors of these ids as they are kept; None for those that are there no more."""
        with store_errors():
            found = self._vectors(keys=[self._key(manifest.name)], args=[manifest.token, *ids])
        if found is None:
            raise Gone
        return cast("list[bytes | None]", found)

    def _at(self, manifest: IndexManifest, part: str) -> str:
        return f"{self._entry(manifest)}:{part}"


def _state(stored: list[bytes | None]) -> IndexState | None:
    size, revision, nbytes = stored
    if size is None or revision is None or nbytes is None:
        return None
    return IndexState(int(size), int(revision), int(nbytes))


def _stride(manifest: IndexManifest) -> int:
    return MARK_BYTES + manifest.code_bytes


def _refuse(limit: list[Any] | None, nbytes: int = 0, names: int = 0) -> None:
    """Raise QuotaExceeded for the limit that a script has named, if it has."""
    if limit:
        name, allowed, there = limit[0].decode(), int(limit[1]), int(limit[2])
        raise QuotaExceeded(name, allowed, there, names if name.endswith("names") else nbytes)
