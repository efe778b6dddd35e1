"""Indexes in the store; `bochner:indexes` lists the names.

Each script atomically changes all keys of an index and its entries in the account.

An index `i` is the key `bochner:{index:i}:manifest`, and keys that begin with `bochner:{index:i}:<token>`, here `own`.
`state` is a hash of its size, its bytes and its revision, which is the time of the last change in microseconds, and
higher after each change. Each vector has a slot, a number from 0 up to the size, and is stored in:

- `codes.<block>`: the mark of its tags (a hash of them, zeros for none) and its codes, in blocks of `BLOCK` slots. A
  block has its full length from the start, because the server allocates twice the length for a string that grows. It
  counts whole in the size in bytes;
- `ids.<block>`: the ids of a block in the order of their slots, each after its length;
- `slots.<bucket>`: hashes from ids to slots, 4,096 of them, so that each is short enough for the compact encoding;
- `vectors.<block>`: a hash from positions in a block to vectors, if the index keeps vectors.

`tags_by` has the numbers of owners who have put in sets of tags, other than the owner of the index. `tags` is a hash
from marks to sets of tags: in four bytes how many vectors have the set, then a JSON list. Vectors of
earlier versions, which had one tag at most, may have a mark that is not in it.

While a job holds a name, only the manifest exists; the index starts empty once the job has found its bands.

In the account, an index belongs to its owner, except for vectors that other owners have put in last, until these are
removed: for each other owner, `state` has its bytes in a field `of <owner>`, and the account has an entry
`<own> <owner>`. `by.<block>` has in two bytes for each slot the number that the owner of the vector has in the index,
0 for that of the index; blocks of zeros alone are missing. `state` has numbers and owners, see shared.lua.

`revisions` has the revision of the last change of each block, so that a process reads each change once. When a vector
is deleted, the last vector moves into its slot: nothing of the deleted one stays, and slots have no gaps. `receipts`
has the receipts of the last changes for a while, so that a call repeated after a lost reply recognises its first try.
"""

import secrets
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
import redis
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from app.core.errors import InvalidInput
from app.core.indexes import labels
from app.core.indexes.banding import BYTES_PER_SET
from app.store import identity, lua
from app.store.account import UNLIMITED, Quota, refuse
from app.store.connection import acknowledge, check_room, inside
from app.store.errors import Gone, NewerVersion, StoreDamaged, store_errors
from app.store.manifest import ArrayEntry, now
from app.store.named import LUA, LivingManifest, LivingStore, NameTaken, Reservation, State, end, through_alias

Keep = Literal["codes", "vectors"]


class MapOfIndex(BaseModel):
    """Map that computes the codes of an index."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClassVar[str] = "map"

    name: str
    token: str
    digest: str


class IndexManifest(LivingManifest):
    """Manifest of an index, without its vectors. Once the index is ready, only its time to live changes."""

    kind = "index"
    dtypes = frozenset()
    newest = 3
    """Since version 2, the bands of an index may still be left for a job to find; since version 3, it may say whether
    they serve.
    """

    map: MapOfIndex
    asked: str
    """Client's request as JSON; an equal request finds the same index."""
    bits: int
    """Bits per code."""
    s: int
    """Codes per vector."""
    bands: int | None = None
    """Number of bands; None if searches scan all codes, or until a job has found the bands."""
    rows_per_band: int | None = None
    serves: bool | None = None
    """Whether searches reach the target; None without one, or until a job has found the bands."""
    keep: Keep
    arrays: dict[str, ArrayEntry] = Field({})

    @property
    def code_bytes(self) -> int:
        """Bytes of the codes of one vector."""
        return -(-self.s * self.bits // 8)


_STATE = ("size", "revision", "bytes")


class IndexState(NamedTuple):
    """State of an index at one moment: its number of vectors, revision and size in bytes."""

    size: int
    revision: int
    """Number of changes so far."""
    nbytes: int


class Entry(NamedTuple):
    """Vector to be stored in an index."""

    id: bytes
    row: bytes
    """Mark of the tags, then the codes; or the codes alone, for a vector that keeps its tags if it replaces another."""
    vector: bytes
    """Vector in its stored form; empty if the index keeps only codes, or to keep what is there."""
    tags: bytes = b""
    """Its tags, as a JSON list; empty if it keeps those that it has."""


class StoredRow(NamedTuple):
    """Stored data of a vector."""

    id: bytes
    row: bytes
    """Mark of the tags, then the codes, if these were asked for."""
    tags: bytes | None
    """Its tags, as a JSON list; None if an earlier version has stored them, there are none, or they are not wanted."""


class Block(NamedTuple):
    """Stored data of the slots of a block."""

    codes: bytes
    """Mark of the tags and codes, vector by vector; bytes beyond the size of the index mean nothing."""
    ids: bytes
    """Ids, each after its length in two bytes."""


class Part(NamedTuple):
    """Changed blocks of an index and its state, all read at the same moment."""

    state: IndexState
    revisions: NDArray[np.uint32]
    """Revision of the last change of each block."""
    blocks: dict[int, Block]
    """Blocks by their numbers."""
    tags: dict[bytes, bytes]
    """Tags of vectors in these blocks, as JSON lists, by their marks."""

    def known_after(self, known: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], bool]:
        """Return the revisions that a caller has after this part, and whether these are all."""
        n, there = len(self.revisions), [*self.blocks]
        now = np.zeros(min(n, max(len(known), 1 + max(there, default=-1))), np.uint32)
        now[: len(known)] = known[: len(now)]
        now[there] = self.revisions[there]
        return now, np.array_equal(now, self.revisions)


NONE_KNOWN: NDArray[np.uint32] = np.empty(0, np.uint32)
"""Revisions that a caller has who has no block."""


class IndexFull(Exception):
    """An index would take more memory than a process has for it. `wanted` is in bytes."""

    def __init__(self, name: str, allowed: int, wanted: int) -> None:
        super().__init__(f"index {name!r} would take {wanted} bytes of memory; such vectors may be {allowed} at most")
        self.wanted = wanted


class Room(NamedTuple):
    """Memory that a process has for the codes and ids of an index, in bytes."""

    most: int
    per_vector: int
    """What a vector takes, without its id."""


class IndexStore(LivingStore[IndexManifest]):
    """Store of indexes: creates, finds, lists and deletes them, adds and removes vectors, and reads blocks.

    Every method raises StoreUnavailable if the store does not answer. Methods that take the manifest of an index raise
    Gone if the index no longer exists.
    """

    def __init__(self, client: redis.Redis, quota: Quota = UNLIMITED) -> None:
        super().__init__(client, IndexManifest, quota)
        self._indexes = {root: inside(root, "bochner:indexes") for root in self._places.roots}
        registered = [client.register_script(_SHARED + lua.read(f"indexes/{name}")) for name in _SCRIPTS]
        self._create, self._renew, self._drop, self._upsert, self._remove, *reading = registered
        self._vectors, self._rows, self._slots, self._vector_page, self._changes = reading

    @acknowledge()
    def create(self, manifest: IndexManifest, owner: str = "") -> IndexManifest:
        """Store an empty index for `owner` unless its name is taken; return the manifest under the name then.

        Raises:
            IsAlias: the name is an alias.
            QuotaExceeded: there is no room for another name.
        """
        check_room(self._client, 0)
        ttl = "" if manifest.ttl is None else manifest.ttl
        keys = [self.key(manifest.name), self._index(manifest.name)]
        with self._account.hold(keys[0], owner, BASE_BYTES, 1) as held:
            if held:
                self._account.check(BASE_BYTES, owner, entered=True)
            args = [manifest.token, manifest.stored, manifest.name, ttl, owner, *self._account.most, held]
            with store_errors():
                limit, stored = cast("list[Any]", self._create(keys=keys, args=args))
        refuse(limit, names=1)
        if manifest.ttl is not None:
            self._tidy(manifest.name)
        return IndexManifest.parse(stored)

    def reserve(self, manifest: IndexManifest, owner: str = "") -> Reservation:
        """Prepare the reservation of a name for an index's job; QuotaExceeded if there is no room for another name."""
        return self._reserve(manifest, {}, owner)

    @acknowledge()
    def complete(self, reserved: IndexManifest, bands: int | None, rows_per_band: int | None, serves: bool) -> None:
        """Make an index ready and empty; NameTaken if its job no longer holds the name."""
        searching = {"bands": bands, "rows_per_band": rows_per_band, "serves": serves}
        ready = {"state": State.ready, "job": None, "created_at": now(), **searching}

        def begin(found: IndexManifest) -> tuple[dict[str, Any], int | None]:
            if found.state is not State.building:
                raise NameTaken(found.name)
            return {**ready, "expires_at": end(found.ttl)}, found.ttl

        while self._change_lifetime(reserved, begin) is None:
            if self._read_stored(reserved) is None:
                raise NameTaken(reserved.name)

    def _compare_and_remove(self, name: str, stored: bytes, receipt: str) -> bool:
        """Remove an index, see `NamedStore`. If its manifest cannot be read, keys are found by prefix."""
        try:
            token = IndexManifest.parse(stored).token
        except (StoreDamaged, NewerVersion):
            return super()._compare_and_remove(name, stored, receipt)
        with store_errors():
            return bool(self._drop(keys=[self.key(name), self._index(name)], args=[token, stored, name, receipt]))

    @acknowledge()
    def upsert(
        self,
        manifest: IndexManifest,
        entries: Sequence[Entry],
        room: Room | None = None,
        by: str = "",
        revision: int | None = None,
        *,
        tags_alone: bool = False,
    ) -> bool:
        """Store vectors, replacing those with the same ids: all of them, or none. Ids must be distinct.

        In the account, the vectors count for the owner `by` until they are removed, or others put them again. That they
        get other tags alone changes that only for sets of tags, which count for who puts them in first. Returns False,
        and stores none, if a revision is given that is not that of the index.

        Raises:
            QuotaExceeded: there is no room for the vectors, or for what the index takes beside them, which counts for
                its owner.
            IndexFull: a process would not have the room for the index.
            InvalidInput: all sets of tags together would take too much.
        """
        kept = manifest.keep == "vectors"
        nbytes = sum(2 * len(one.id) + len(one.row) + len(one.vector) + len(one.tags) for one in entries)
        check_room(self._client, nbytes)
        head: list[Any] = [manifest.token, _stride(manifest), "1" if kept else ""]
        head += [self._account.most_bytes, *(room or ("", "")), by, "" if revision is None else revision, _receipt()]
        head.append("1" if tags_alone else "")
        key, each = self.key(manifest.name), [*chain.from_iterable(entries)]
        # No less than the script may enter: for each a set of tags, a slot, a vector and a bucket, and one more block.
        beside = 4 * ENTRY_BYTES + 2 * KEY_BYTES + len(key)
        room_for = nbytes + len(entries) * beside + (BLOCK + 1) * _stride(manifest)

        def put() -> list[Any] | None:
            with self._account.hold(key, by, room_for) as held, store_errors():
                owner = self._account.owner_of(self._entry(manifest)) if self._account.is_spread else ""
                args = [*head, *self._account.elsewhere(key, by, owner or ""), held, *each]
                return cast("list[Any] | None", self._upsert(keys=[key], args=args))

        told = put()
        if told is not None and told[0] in _LIMITS and self._account.is_spread:
            self._account.usage(by)  # removes entries of other shards that have expired
            told = put()
        if told is None:
            raise Gone
        if told[0] == b"memory":
            raise IndexFull(manifest.name, int(told[1]), int(told[2]))
        if told[0] == b"changed":
            return False
        if told[0] == b"tags":
            most = f"{MOST_BYTES_OF_TAGS} are the most"
            raise InvalidInput(f"all tags of index {manifest.name!r} would take {int(told[1])} bytes; {most}", "/tags")
        refuse(told, nbytes)
        return True

    def remove(self, manifest: IndexManifest, vector_id: bytes) -> bool:
        """Remove a vector; False if there is none with this id."""
        return all(self.remove_many(manifest, [vector_id]))

    @acknowledge()
    def remove_many(
        self,
        manifest: IndexManifest,
        ids: Sequence[bytes],
        marks: Sequence[bytes] | None = None,
        revision: int | None = None,
    ) -> list[bool]:
        """Remove vectors in one step; return which of them were there.

        With `marks`, only those are removed that still have these tags. All ids must be distinct. Returns an empty
        list, and removes none, if a revision is given that is not that of the index.
        """
        kept = "1" if manifest.keep == "vectors" else ""
        if kept:
            check_room(self._client, 0)  # vectors that move into the slots are written
        args: list[Any] = [manifest.token, _stride(manifest), kept, _receipt(), "" if revision is None else revision]
        args += chain.from_iterable(zip(ids, marks or [b""] * len(ids), strict=True))
        with store_errors():
            removed = cast("list[int] | None", self._remove(keys=[self.key(manifest.name)], args=args))
        if removed is None:
            raise Gone
        return [one == 1 for one in removed]

    def look(self, name: str, known: IndexManifest | None = None) -> tuple[IndexManifest, IndexState] | None:
        """Return the manifest and state of an index, also by an alias; None if there is none.

        One call to the store if `known` is still current.
        """
        return through_alias(lambda one: self._look(one, known), name)

    def _look(self, name: str, known: IndexManifest | None) -> tuple[IndexManifest, IndexState] | None:
        while True:
            with store_errors(), self._client.pipeline(transaction=False) as asked:
                asked.get(self.key(name))
                if known is not None:
                    asked.hmget(self._at(known, "state"), _STATE)
                stored, *state = asked.execute()
            if stored is None:
                identity.check(self._client, self._places.of(name))
                return None
            there = known if known is not None and known.stored == stored else IndexManifest.parse(stored)
            if there.job is not None:
                return there, IndexState(0, 0, 0)
            found = _state(state[0]) if known is not None and known.token == there.token else None
            if found is not None:
                return there, found
            if known is there:
                raise StoreDamaged(f"the state of index {name!r} is missing")
            known = there

    def changes(self, manifest: IndexManifest, known: NDArray[np.uint32], most: int, first: int = 0) -> Part:
        """Return blocks of an index whose revisions are not the known ones, and its state at the same moment.

        They are the first such blocks, from number `first` on: at least one, and more while those before it have fewer
        than `most` bytes. StoreDamaged if the index has not as many blocks as its size says.
        """
        with store_errors():
            there = known.astype("<u4").tobytes()
            args: list[bytes | str | int] = [manifest.token, there, most, first, _stride(manifest)]
            came = self._changes(keys=[self.key(manifest.name)], args=args)
        found = cast("list[Any] | None", came)
        state = None if found is None else _state(found[0])
        if found is None or state is None:
            raise Gone
        blocks = {n: Block(codes, ids) for n, codes, ids in zip(found[3::3], found[4::3], found[5::3], strict=True)}
        tags = dict(zip(found[2][::2], found[2][1::2], strict=True))
        revisions = np.frombuffer(found[1], "<u4")
        if len(revisions) != -(-state.size // BLOCK):
            raise StoreDamaged(f"index {manifest.name!r} has {state.size} vectors in {len(revisions)} blocks")
        return Part(state, revisions, blocks, tags)

    def verify(self, manifest: IndexManifest) -> None:
        """Raise StoreDamaged unless tags and all blocks exist, and blocks are whole. They change, without digests."""
        with store_errors(), self._client.pipeline() as asked:
            asked.hget(self._at(manifest, "state"), "tags")
            asked.exists(self._at(manifest, "tags"))
            of_tags, has_tags = asked.execute()
        if int(of_tags or 0) and not has_tags:
            raise StoreDamaged(f"the tags of index {manifest.name!r} are missing")
        there = self.look(manifest.name, manifest)
        first, is_over = 0, there is None or not there[1].size
        while not is_over:  # each block once, however often it is changed meanwhile
            part = self.changes(manifest, NONE_KNOWN, 1, first)
            for number, block in part.blocks.items():
                first, n = number + 1, min(BLOCK, part.state.size - number * BLOCK)
                if (len(block.codes), labels.count(block.ids)) != (BLOCK * _stride(manifest), n):
                    raise StoreDamaged(f"block {number} of index {manifest.name!r} is missing, or not whole")
            is_over = not part.blocks

    def vectors(self, manifest: IndexManifest, ids: Sequence[bytes], most: int) -> list[bytes | None]:
        """Return the vectors with the first of these ids: at least one, and more while they have up to `most` bytes.

        At most `MOST_VECTORS` are looked at, as nobody else is served meanwhile. They are in their stored form; None
        for each id without a vector.
        """
        with store_errors():
            found = self._vectors(keys=[self.key(manifest.name)], args=[manifest.token, most, *ids[:MOST_VECTORS]])
        if found is None:
            raise Gone
        return cast("list[bytes | None]", found)

    def rows(self, manifest: IndexManifest, ids: Sequence[bytes], tags: bool = False) -> list[StoredRow | None]:
        """Return the rows with these ids, with their tags if these are wanted; None for each id without a vector."""
        args: list[bytes | str | int] = [manifest.token, _stride(manifest), "1" if tags else "", *ids]
        with store_errors():
            found = self._rows(keys=[self.key(manifest.name)], args=args)
        if found is None:
            raise Gone
        every = zip(ids, found[::2], found[1::2], strict=True)
        return [None if row is None else StoredRow(one, row, _tags(text)) for one, row, text in every]

    def slots(self, manifest: IndexManifest, ids: Sequence[bytes]) -> list[int]:
        """Return the slots of the vectors with these ids, −1 for each id without a vector."""
        with store_errors():
            found = self._slots(keys=[self.key(manifest.name)], args=[manifest.token, *ids])
        if found is None:
            raise Gone
        return cast("list[int]", found)

    def vector_page(
        self, manifest: IndexManifest, before: int | None, most: int, most_bytes: int
    ) -> tuple[list[StoredRow], int]:
        """Return up to `most` rows, without codes, in the slots before one (None for all), from higher slots to lower.

        They have some `most_bytes` of tags. Also return the slot before which the next page begins, 0 if there is none.
        A vector moves from the last slot to a lower one if another is deleted, so successive pages miss none.
        """
        args: list[bytes | str | int] = [manifest.token, _stride(manifest), "" if before is None else before]
        with store_errors():
            found = self._vector_page(keys=[self.key(manifest.name)], args=[*args, most, most_bytes])
        if found is None:
            raise Gone
        every = zip(found[1::3], found[2::3], found[3::3], strict=True)
        return [StoredRow(one, row, _tags(tags)) for one, row, tags in every], int(found[0])

    def _at(self, manifest: IndexManifest, part: str) -> str:
        return f"{self._entry(manifest)}:{part}"


def _receipt() -> str:
    """Return a text of 8 characters by which a script knows a call that is repeated."""
    return secrets.token_urlsafe(6)


def _tags(stored: bytes | None) -> bytes | None:
    return None if stored is None else stored[_COUNT_BYTES:]


def _state(stored: list[bytes | None]) -> IndexState | None:
    return None if None in stored else IndexState(*(int(one or 0) for one in stored))


def _stride(manifest: IndexManifest) -> int:
    return MARK_BYTES + manifest.code_bytes


BLOCK = 128
MOST_VECTORS = 4096
"""Most ids that a script looks up, in some tens of milliseconds."""
MARK_BYTES = 8
"""Bytes of the mark of tags."""
ENTRY_BYTES = 48
"""Bytes that the store takes for an entry of a large hash beside its value: a slot, a kept vector, a set of tags."""
KEY_BYTES = 64
"""Bytes that the store takes for a hash of ids, beside its name and entries."""
BASE_BYTES = 600
"""Bytes that the store takes for an index without vectors, beside `BASE_NAMES` times the start of its keys."""
BASE_NAMES = 8
_COUNT_BYTES = 4
_LIMITS = (b"max_store_bytes", b"key_bytes", b"owner_bytes")
# Looking for the tags of a mark takes a script as long as reading so many bytes.
_BYTES_PER_MARK = 2048
MOST_BYTES_OF_TAGS = 1 << 28
"""Most bytes of all sets of tags of an index. A server restores no value of more than 512 MiB from a backup."""
_SHARED = LUA + lua.read(
    "indexes/shared",
    BLOCK=BLOCK,
    MARK=MARK_BYTES,
    SET=BYTES_PER_SET,
    ENTRY=ENTRY_BYTES,
    KEY=KEY_BYTES,
    BASE=BASE_BYTES,
    BASE_NAMES=BASE_NAMES,
    PER_MARK=_BYTES_PER_MARK,
    MOST_TAGS=MOST_BYTES_OF_TAGS,
)
_SCRIPTS = "create", "renew", "delete", "upsert", "remove", "vectors", "rows", "slots", "page", "changes"
