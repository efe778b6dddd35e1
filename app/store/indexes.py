"""Indexes in the store; `bochner:indexes` lists the names.

Each script atomically changes all keys of an index and its entries in the account.

An index `i` is the key `bochner:{index:i}:manifest`, and keys that begin with `bochner:{index:i}:<token>`, here `own`.
`state` is a hash of its size, its bytes and its revision (the number of changes). Each vector has a slot, a number from
0 up to the size, and is stored in:

- `codes.<block>`: the hash of its tag and its codes, in blocks of `BLOCK` slots. A block has its full length from the
  start, because the server allocates twice the length for a string that grows;
- `ids.<block>`: the ids of a block in the order of their slots, each after its length;
- `slots.<bucket>`: hashes from ids to slots, `BUCKETS` of them, so that each is short enough for the compact encoding;
- `vectors.<block>`: a hash from positions in a block to vectors, if the index keeps vectors.

While a job holds a name, only the manifest exists; the index starts empty once the job has found its bands.

In the account, an index belongs to its owner, except for vectors that other owners have added: for each other owner,
`state` has its bytes in a field `of <owner>`, and the account has an entry `<own> <owner>`. If an owner removes more
than it has added, the rest reduces the bytes of the other owners.

`revisions` has the revision of the last change of each block, so that a process reads each change once. When a vector
is deleted, the last vector moves into its slot: nothing of the deleted one stays, and slots have no gaps. `receipts`
has the receipts of the last deletions for a while, so that a call repeated after a lost reply recognises its first try.
"""

import secrets
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
import redis
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from app.core.indexes import labels
from app.store import identity
from app.store.account import UNLIMITED, Quota, refuse
from app.store.connection import acknowledge, check_room, inside
from app.store.errors import Gone, NewerVersion, StoreDamaged, store_errors
from app.store.manifest import ArrayEntry, now
from app.store.named import LUA, RECEIPT_SECONDS, LivingManifest, LivingStore, NameTaken, Reservation, State, end

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
    newest = 2
    """Since version 2, the bands of an index may still be left for a job to find."""

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
    keep: Keep
    arrays: dict[str, ArrayEntry] = Field({})

    @property
    def code_bytes(self) -> int:
        """Bytes of the codes of one vector."""
        return -(-self.s * self.bits // 8)


_RECEIPT_BYTES = 8
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
    """Hash of the tag, then the codes."""
    vector: bytes
    """Vector in its stored form; empty if the index keeps only codes."""


class Block(NamedTuple):
    """Stored data of the slots of a block."""

    codes: bytes
    """Hash of the tag and codes, vector by vector; bytes beyond the size of the index mean nothing."""
    ids: bytes
    """Ids, each after its length in two bytes."""


class Part(NamedTuple):
    """Some blocks of an index and its state, all read at the same moment."""

    state: IndexState
    revisions: NDArray[np.uint32]
    """Revision of the last change of each block."""
    blocks: list[Block]


class IndexFull(Exception):
    """An index would exceed its maximum number of vectors."""

    def __init__(self, name: str, allowed: int, wanted: int) -> None:
        super().__init__(f"index {name!r} would hold {wanted} vectors; {allowed} are the most")
        self.allowed, self.wanted = allowed, wanted


class IndexStore(LivingStore[IndexManifest]):
    """Store of indexes: creates, finds, lists and deletes them, adds and removes vectors, and reads blocks.

    Every method raises StoreUnavailable if the store does not answer. Methods that take the manifest of an index raise
    Gone if the index no longer exists.
    """

    def __init__(self, client: redis.Redis, quota: Quota = UNLIMITED) -> None:
        super().__init__(client, IndexManifest, quota)
        self._indexes = {root: inside(root, "bochner:indexes") for root in self._places.roots}
        made = [client.register_script(script) for script in ALL]
        self._create, self._renew, self._drop, self._upsert, self._remove, self._vectors = made

    @acknowledge()
    def create(self, manifest: IndexManifest, owner: str = "") -> IndexManifest:
        """Store an empty index for `owner` unless its name is taken; return the manifest under the name then.

        Raises:
            QuotaExceeded: there is no room for another name.
        """
        check_room(self._client, 0)
        if self._account.is_spread:
            self._account.check(0, owner)
        ttl = "" if manifest.ttl is None else manifest.ttl
        args = [manifest.token, manifest.stored, manifest.name, ttl, owner, *self._account.most]
        with store_errors():
            keys = [self.key(manifest.name), self._index(manifest.name)]
            limit, stored = cast("list[Any]", self._create(keys=keys, args=args))
        refuse(limit, names=1)
        if manifest.ttl is not None:
            self._tidy(manifest.name)
        return IndexManifest.parse(stored)

    def reserve(self, manifest: IndexManifest, owner: str = "") -> Reservation:
        """Prepare the reservation of a name for an index's job; QuotaExceeded if there is no room for another name."""
        return self._reserve(manifest, {}, owner)

    @acknowledge()
    def complete(self, reserved: IndexManifest, bands: int | None, rows_per_band: int | None) -> None:
        """Make an index ready and empty; NameTaken if its job no longer holds the name."""
        ready = {"state": State.ready, "job": None, "bands": bands, "rows_per_band": rows_per_band, "created_at": now()}

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
    def upsert(self, manifest: IndexManifest, entries: Sequence[Entry], most: int | None = None, by: str = "") -> None:
        """Store vectors, replacing those with the same ids: all of them, or none. Ids must be distinct.

        In the account, the growth of the index is charged to the owner `by`.

        Raises:
            QuotaExceeded: there is no room for the vectors.
            IndexFull: the index would hold more than `most` vectors.
        """
        kept = manifest.keep == "vectors"
        nbytes = sum(2 * len(one.id) + len(one.row) + len(one.vector) for one in entries)
        check_room(self._client, nbytes)
        if self._account.is_spread:
            self._account.check(nbytes, by, names=0)
        args: list[Any] = [manifest.token, _stride(manifest), "1" if kept else ""]
        args += [self._account.most[0], most or "", by]
        for entry in entries:
            args += entry
        with store_errors():
            told = cast("list[Any] | None", self._upsert(keys=[self.key(manifest.name)], args=args))
        if told is None:
            raise Gone
        if told[0] == b"vectors":
            raise IndexFull(manifest.name, int(told[1]), int(told[2]))
        refuse(told, nbytes)

    @acknowledge()
    def remove(self, manifest: IndexManifest, vector_id: bytes, by: str = "") -> bool:
        """Remove a vector on behalf of the owner `by`; False if there is none with this id."""
        kept = "1" if manifest.keep == "vectors" else ""
        receipt = secrets.token_bytes(_RECEIPT_BYTES)
        args: list[bytes | str | int] = [manifest.token, _stride(manifest), kept, vector_id, receipt, by]
        with store_errors():
            removed = cast("int | None", self._remove(keys=[self.key(manifest.name)], args=args))
        if removed is None:
            raise Gone
        return bool(removed)

    def look(self, name: str, known: IndexManifest | None = None) -> tuple[IndexManifest, IndexState] | None:
        """Return the manifest and state of an index, None if there is none; one call if `known` is still current."""
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

    def part(self, manifest: IndexManifest, blocks: Sequence[int]) -> Part:
        """Return some blocks of an index, and its state at the same moment.

        A block that the index no longer has is empty; the index must have had it at some time.
        """
        with store_errors(), self._client.pipeline(transaction=True) as asked:
            asked.hmget(self._at(manifest, "state"), _STATE)
            asked.get(self._at(manifest, "revisions"))
            if blocks:
                # The client library has no `mget` in pipelines of a cluster, because keys may be on different nodes.
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

    def verify(self, manifest: IndexManifest) -> None:
        """Raise StoreDamaged unless all blocks exist and are whole. Blocks change, so they have no digests."""
        there = self.look(manifest.name, manifest)
        for number in range(0 if there is None else -(-there[1].size // BLOCK)):
            state, revisions, (block,) = self.part(manifest, [number])
            n = min(BLOCK, max(0, state.size - number * BLOCK))
            whole = BLOCK * _stride(manifest), n, -(-state.size // BLOCK)
            if n and (len(block.codes), labels.count(block.ids), len(revisions)) != whole:
                raise StoreDamaged(f"block {number} of index {manifest.name!r} is missing, or not whole")

    def vectors(self, manifest: IndexManifest, ids: Sequence[bytes]) -> list[bytes | None]:
        """Return the vectors with these ids in their stored form; None for each id without a vector."""
        with store_errors():
            found = self._vectors(keys=[self.key(manifest.name)], args=[manifest.token, *ids])
        if found is None:
            raise Gone
        return cast("list[bytes | None]", found)

    def _at(self, manifest: IndexManifest, part: str) -> str:
        return f"{self._entry(manifest)}:{part}"


def _state(stored: list[bytes | None]) -> IndexState | None:
    return None if None in stored else IndexState(*(int(one or 0) for one in stored))


def _stride(manifest: IndexManifest) -> int:
    return MARK_BYTES + manifest.code_bytes


BLOCK = 128
BUCKETS = 4096
MARK_BYTES = 8
"""Bytes of the hash of a tag."""
_RECEIPTS = 128
# Most keys passed to one call.
_AT_ONCE = 500

# KEYS: manifest. ARGV: token.
_INDEX = f"""{LUA}
local BLOCK = {BLOCK}
local own = entry_at(KEYS[1], ARGV[1])
local function at(part) return own .. ':' .. part end
local function is_there()
  local _, found = manifest(KEYS[1])
  return found.token == ARGV[1]
end
local function state(field) return tonumber(redis.call('HGET', at('state'), field) or 0) end
local function bucket_of(id) return at('slots.' .. string.sub(redis.sha1hex(id), 1, 3)) end
local function n_blocks(size) return math.ceil(size / BLOCK) end
-- Calls a function with all keys of the index that may be there beside its manifest, some at a time.
local function with_all_keys(call)
  local some = {{at('state'), at('revisions')}}
  local function take(key)
    table.insert(some, key)
    if #some >= {_AT_ONCE} then call(some) some = {{}} end
  end
  for block = 0, n_blocks(state('size')) - 1 do
    for _, part in ipairs({{'codes.', 'ids.', 'vectors.'}}) do take(at(part .. block)) end
  end
  for bucket = 0, {BUCKETS - 1} do take(at(string.format('slots.%03x', bucket))) end
  call(some)
end
-- What is written by this script lives as long as the manifest, and a second longer: a manifest has all its keys.
local touched = {{}}
local function touch(key) touched[key] = true return key end
local function begin() redis.call('HSET', touch(at('state')), 'size', 0, 'revision', 0, 'bytes', 0) end
local function live_on()
  local left = redis.call('PTTL', KEYS[1])
  if left < 0 then return end
  for key in pairs(touched) do redis.call('PEXPIRE', key, left + 1000) end
end
local function owner()
  local entry = redis.call('HGET', ENTRIES, own)
  return entry and string.match(entry, '^%d+ %d+ (.*)$') or ''
end
-- The bytes of those who have put vectors in and do not own the index.
local function shares()
  local found, read = {{}}, redis.call('HGETALL', at('state'))
  for i = 1, #read, 2 do
    local who = string.match(read[i], '^of (.*)$')
    if who then found[who] = tonumber(read[i + 1]) end
  end
  return found
end
local function with_all_entries(call)
  call(own)
  for who in pairs(shares()) do call(own .. ' ' .. who) end
end
-- Enters the bytes of an index that somebody has changed by so many.
local function share_out(bytes, who, grown)
  local found, owned = shares(), bytes
  if who ~= owner() then found[who] = (found[who] or 0) + grown end
  for other, before in pairs(found) do
    local field, entry = 'of ' .. other, own .. ' ' .. other
    local share = math.max(0, math.min(before, owned))
    owned = owned - share
    if other ~= who and share == before then
      -- as it is already
    elseif share > 0 then
      redis.call('HSET', at('state'), field, share)
      book(entry, share, 0, other)
      lives_as(entry, KEYS[1])
    else
      redis.call('HDEL', at('state'), field)
      unbook(entry)
    end
  end
  book(own, owned, 1, owner())
  lives_as(own, KEYS[1])
end
-- Notes a change of some blocks, and what the index is from now on, by whom, and how much it has grown.
local function changed(blocks, size, bytes, who, grown)
  local revision = state('revision') + 1
  local written = struct.pack('<I4', revision % 4294967296)
  for block in pairs(blocks) do
    if block < n_blocks(size) then redis.call('SETRANGE', touch(at('revisions')), 4 * block, written) end
  end
  redis.call('HSET', touch(at('state')), 'size', size, 'revision', revision, 'bytes', bytes)
  share_out(bytes, who, grown)
  live_on()
end
"""

# KEYS: manifest, listing. ARGV: token, manifest, name, time to live in seconds ('' for ever), owner, most bytes, most
# names. Returns the limit that would be exceeded, if any, and the manifest stored then.
CREATE = f"""{_INDEX}
local stored, found = manifest(KEYS[1])
if stored and not failed(found) then return {{false, stored}} end
sweep()
local limit = passed(ARGV[5], 0, 1, ARGV[6], ARGV[7])
if limit then return {{limit, ''}} end
drop_spec(KEYS[1], found)
if ARGV[4] == '' then redis.call('SET', KEYS[1], ARGV[2]) else redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[4]) end
redis.call('ZADD', KEYS[2], 0, ARGV[3])
begin()
live_on()
book(own, 0, 1, ARGV[5])
lives(own, ARGV[4])
return {{false, ARGV[2]}}
"""

# KEYS: manifest. ARGV: token, the current manifest, the new manifest, time to live in seconds from now on ('' for
# ever). Returns 0 if another manifest is stored, else 1. If the new manifest no longer has a job, the index starts
# empty.
RENEW = f"""{_INDEX}
local stored, found = manifest(KEYS[1])
if stored ~= ARGV[2] then return stored == ARGV[3] and 1 or 0 end
if found.job and not cjson.decode(ARGV[3]).job then begin() end
if ARGV[4] == '' then redis.call('SET', KEYS[1], ARGV[3]) else redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[4]) end
with_all_keys(function(some)
  for _, key in ipairs(some) do
    if ARGV[4] == '' then redis.call('PERSIST', key) else redis.call('EXPIRE', key, ARGV[4] + 1) end
  end
end)
with_all_entries(function(entry) lives(entry, ARGV[4]) end)
return 1
"""

# KEYS: manifest, listing. ARGV: token, manifest, name, receipt. Returns 1 if this call, or the first try of it, has
# deleted the index.
DELETE = f"""{_INDEX}
if redis.call('EXISTS', receipt(ARGV[4])) == 1 then return 1 end
if redis.call('GET', KEYS[1]) ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[3])
with_all_entries(unbook)
with_all_keys(function(some) redis.call('UNLINK', unpack(some)) end)
redis.call('UNLINK', at('receipts'))
leave(ARGV[4])
return 1
"""

# KEYS: manifest. ARGV: token, bytes of tag hash and codes, whether vectors are kept ('1', ''), most bytes, most vectors
# ('' for no limit), owner who adds them; then for each vector its id, its tag hash with its codes, and the vector
# itself ('' if not kept). Ids are distinct. Returns the limit that would be exceeded, if any; nil if the index is gone.
UPSERT = f"""{_INDEX}
if not is_there() then return false end
local BY, FIRST, stride, size, bytes = ARGV[6], 7, tonumber(ARGV[2]), state('size'), state('bytes')
local slots, before, n_new = {{}}, size, 0
local grown = 0
for i = FIRST, #ARGV, 3 do
  local id, vector = ARGV[i], ARGV[i + 2]
  local slot = tonumber(redis.call('HGET', bucket_of(id), id))
  slots[i], grown = slot, grown + #vector
  if not slot then n_new, grown = n_new + 1, grown + stride + 2 * #id
  elseif ARGV[3] == '1' then
    grown = grown - redis.call('HSTRLEN', at('vectors.' .. math.floor(slot / BLOCK)), slot % BLOCK)
  end
end
if ARGV[5] ~= '' and n_new > 0 and size + n_new > tonumber(ARGV[5]) then
  return {{'vectors', tonumber(ARGV[5]), size + n_new}}
end
sweep()
local limit = passed(BY, grown, 0, ARGV[4], '')
if limit then return limit end
local blocks, ids = {{}}, {{}}
for i = FIRST, #ARGV, 3 do
  local id, slot = ARGV[i], slots[i]
  if not slot then
    slot, size = size, size + 1
    redis.call('HSET', touch(bucket_of(id)), id, slot)
  end
  local block, place = math.floor(slot / BLOCK), slot % BLOCK
  local codes = touch(at('codes.' .. block))
  if slot >= before then
    if not ids[block] then ids[block] = {{}} end
    table.insert(ids[block], struct.pack('<I2c0', #id, id))
    if place == 0 then redis.call('SETRANGE', codes, BLOCK * stride - 1, '\\0') end
  end
  redis.call('SETRANGE', codes, place * stride, ARGV[i + 1])
  if ARGV[3] == '1' then redis.call('HSET', touch(at('vectors.' .. block)), place, ARGV[i + 2]) end
  blocks[block] = true
end
for block, more in pairs(ids) do
  local key = touch(at('ids.' .. block))
  redis.call('SET', key, (redis.call('GET', key) or '') .. table.concat(more))
end
changed(blocks, size, bytes + grown, BY, grown)
return {{''}}
"""

# KEYS: manifest. ARGV: token, bytes of tag hash and codes, whether vectors are kept, id, receipt, owner who removes it.
# Returns 1 if this call, or the first try of it, has deleted the vector, 0 if there is none, nil if the index is gone.
REMOVE = f"""{_INDEX}
if not is_there() then return false end
local receipts = redis.call('GET', at('receipts')) or ''
if string.find(receipts, ARGV[5], 1, true) then return 1 end
local id, stride, size = ARGV[4], tonumber(ARGV[2]), state('size')
local slot = tonumber(redis.call('HGET', bucket_of(id), id))
if not slot then return 0 end
local function ids_of(block)
  local text, found, i = redis.call('GET', at('ids.' .. block)), {{}}, 1
  while i <= #text do found[#found + 1], i = struct.unpack('<I2c0', text, i) end
  return found
end
local function keep_ids(block, found)
  local written = {{}}
  for i, one in ipairs(found) do written[i] = struct.pack('<I2c0', #one, one) end
  redis.call('SET', touch(at('ids.' .. block)), table.concat(written))
end
local last = size - 1
local block, place, from, of = math.floor(slot / BLOCK), slot % BLOCK, math.floor(last / BLOCK), last % BLOCK
local gone = stride + 2 * #id
if ARGV[3] == '1' then gone = gone + redis.call('HSTRLEN', at('vectors.' .. block), place) end
redis.call('HDEL', bucket_of(id), id)
local of_last = ids_of(from)
local moved = of_last[of + 1]
of_last[of + 1] = nil
if slot ~= last then
  local row = redis.call('GETRANGE', at('codes.' .. from), of * stride, (of + 1) * stride - 1)
  redis.call('SETRANGE', touch(at('codes.' .. block)), place * stride, row)
  redis.call('HSET', touch(bucket_of(moved)), moved, slot)
  if ARGV[3] == '1' then
    redis.call('HSET', touch(at('vectors.' .. block)), place, redis.call('HGET', at('vectors.' .. from), of))
  end
  local here = block == from and of_last or ids_of(block)
  here[place + 1] = moved
  if block ~= from then keep_ids(block, here) end
end
if ARGV[3] == '1' then redis.call('HDEL', at('vectors.' .. from), of) end
if of == 0 then
  redis.call('DEL', at('codes.' .. from), at('ids.' .. from))
  local revisions = redis.call('GETRANGE', at('revisions'), 0, 4 * from - 1)
  if from == 0 then redis.call('DEL', at('revisions')) else redis.call('SET', touch(at('revisions')), revisions) end
else
  redis.call('SETRANGE', touch(at('codes.' .. from)), of * stride, string.rep('\\0', stride))
  keep_ids(from, of_last)
end
receipts = string.sub(receipts .. ARGV[5], -{_RECEIPTS * _RECEIPT_BYTES})
redis.call('SET', at('receipts'), receipts, 'EX', {RECEIPT_SECONDS})
changed({{[block] = true, [from] = true}}, last, state('bytes') - gone, ARGV[6], -gone)
return 1
"""

# KEYS: manifest. ARGV: token, ids. Returns the vectors with these ids, nil for each that does not exist; nil if the
# index is gone.
VECTORS = f"""{_INDEX}
if not is_there() then return false end
local found = {{}}
for i = 2, #ARGV do
  local slot = tonumber(redis.call('HGET', bucket_of(ARGV[i]), ARGV[i]))
  found[i - 1] = slot and redis.call('HGET', at('vectors.' .. math.floor(slot / BLOCK)), slot % BLOCK) or false
end
return found
"""

ALL = (CREATE, RENEW, DELETE, UPSERT, REMOVE, VECTORS)
