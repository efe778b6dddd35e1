"""Account of the stored data: usage in all and by owner, and quotas.

Data stored in chunks is an entry of the account, named by the prefix of its keys: `bochner:{map:m}:<token>` for all
arrays of a map, `bochner:{job:j}:payload` for a part of a job. An entry has a size in bytes, a number of names (1 for a
map, a dataset, an index or a job's record, else 0) and an owner; it ends when its keys expire or are deleted.

Data is entered before it is written, and refused if there is no room. The scripts that make keys permanent, give them a
time to live or delete them do the same with the entry, so that the sums are those of the entries at any moment.

Each shard of a store keeps an account of its own, see `places`. The hash `bochner:account:entries` has the entries, the
sorted set `bochner:account:ends` the end times of entries that end, and the hash `bochner:account` the sums in all and
by owner. No script sees the sums of all shards. So data is entered in its own shard first; then all sums are read, and
the entry is removed again if they exceed a limit. Two simultaneous writes may thus both be refused although there was
room for one, but accepted data never exceeds the limit.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

import redis

from app.store.connection import acknowledge, at_once, places_of, root_of
from app.store.errors import QuotaExceeded, StoreUnavailable, store_errors

# Seconds for which chunks are kept that are never committed.
UNCOMMITTED_TTL = 900


class Quota(NamedTuple):
    """Limits of a store's usage; None for no limit."""

    max_store_bytes: int | None = None
    max_store_names: int | None = None


UNLIMITED = Quota()


class Usage(NamedTuple):
    """Usage: how much is stored."""

    nbytes: int
    """Bytes of arrays, specs and data of jobs, including bytes reserved for the maps that jobs build."""
    names: int
    """Number of maps, datasets, indexes and jobs."""


class Entry(NamedTuple):
    """Entry of the account."""

    key: str
    """Prefix of the keys of its chunks."""
    nbytes: int
    names: int = 0


class Account:
    """Account of a store. Methods raise StoreUnavailable if the store does not answer.

    An owner is any short text that does not start with a space, such as the id of a key; "" for no owner.
    """

    def __init__(self, client: redis.Redis, quota: Quota = UNLIMITED) -> None:
        self._client, self._quota = client, quota
        self._sums = [root + SUMS for root in places_of(client).roots]
        self.is_spread = len(self._sums) > 1
        """Whether there are several shards; none knows the usage of the others."""
        self.most = ["" if most is None or self.is_spread else most for most in quota]
        """Quota as passed to scripts; "" for no limit, and for all limits if there are several shards."""
        self._charge, self._discard, self._usage = map(client.register_script, (CHARGE, DISCARD, USAGE))

    def charge(self, entries: Sequence[Entry], owner: str = "", within: str = "") -> int:
        """Enter data that is about to be written; return the time when its keys must expire, by the store's clock.

        Args:
            entries: one at least. All are entered, or none.
            owner: owner of the entries.
            within: key of an entry that has reserved the room for them.

        Raises:
            QuotaExceeded: there is no room.
        """
        args = [part for entry in entries for part in entry]
        keys = [root_of(entries[0].key) + SUMS]
        nbytes, names = sum(entry.nbytes for entry in entries), sum(entry.names for entry in entries)
        with store_errors():
            told = cast("list[Any]", self._charge(keys=keys, args=[*self.most, owner, within, UNCOMMITTED_TTL, *args]))
        refuse(told, nbytes, names)
        if self.is_spread and not told[2]:
            try:
                self._require_room(owner, nbytes, names, entered=True)
            except (QuotaExceeded, StoreUnavailable):
                self.discard([], [entry.key for entry in entries])
                raise
        return int(told[1])

    def check(self, nbytes: int, owner: str = "", names: int = 1) -> None:
        """Raise QuotaExceeded if there is no room for `names` more names and `nbytes` more bytes."""
        self._require_room(owner, nbytes, names, entered=False)

    def discard(self, keys: Sequence[str], entries: Sequence[str]) -> None:
        """Remove keys and entries that still have a time to live, after the operation that wrote them has failed.

        This frees a full store at once. If the store does not answer, the keys expire later.
        """
        if keys or entries:
            sums = root_of([*keys, *entries][0]) + SUMS
            with suppress(StoreUnavailable), store_errors():
                self._discard(keys=[sums, *keys], args=entries)

    def usage(self, owner: str = "") -> Usage:
        """Return the usage of an owner; "" for the whole store."""
        with store_errors():
            told = [cast("list[bytes | None]", self._usage(keys=[sums], args=[owner])) for sums in self._sums]
        return Usage(*(sum(int(one or 0) for one in each) for each in zip(*told, strict=True)))

    @acknowledge()
    def allow(self, owner: str, quota: Quota) -> None:
        """Set the limits of an owner; a limit of None is removed."""
        with store_errors():
            for what, most in zip(("bytes", "names"), quota, strict=True):
                field = f"max_{what} {owner}"
                for sums in self._sums:
                    if most is None:
                        self._client.hdel(sums, field)
                    else:
                        self._client.hset(sums, field, most)

    def _require_room(self, owner: str, nbytes: int, names: int, entered: bool) -> None:
        """Raise QuotaExceeded if the store has no room for these bytes and names; `entered` if they count already."""
        if self._find_excess(owner, nbytes, names, entered) is None:
            return
        self.usage(owner)  # removes expired entries, which may still count
        refusal = self._find_excess(owner, nbytes, names, entered)
        if refusal is not None:
            raise refusal

    def _find_excess(self, owner: str, nbytes: int, names: int, entered: bool) -> QuotaExceeded | None:
        """Return the error if these bytes and names exceed a limit, else None. The owner "" has no own limits."""
        fields = ["bytes", "names", *(f"{what} {owner}" for what in ("bytes", "names", "max_bytes", "max_names"))]
        told = at_once(self._client, self._sums, lambda asked, sums: asked.hmget(sums, fields))
        *added, most_bytes, most_names = zip(*told, strict=True)
        # An owner's limits are stored in every shard; a shard where they are not written yet has none.
        limits = [max((int(one) for one in each if one is not None), default=None) for each in (most_bytes, most_names)]
        called = ("max_store_bytes", "max_store_names", "key_bytes", "key_names")
        for limit, most, each, wanted in zip(called, (*self._quota, *limits), added, 2 * (nbytes, names), strict=True):
            before = sum(int(one or 0) for one in each) - (wanted if entered else 0)
            if most is not None and wanted > 0 and before + wanted > most:
                return QuotaExceeded(limit, most, before, wanted)
        return None


def refuse(limit: list[Any] | None, nbytes: int = 0, names: int = 0) -> None:
    """Raise QuotaExceeded if a script has returned a limit that these bytes and names would exceed."""
    if limit and limit[0]:
        name, allowed, there = limit[0].decode(), int(limit[1]), int(limit[2])
        raise QuotaExceeded(name, allowed, there, names if name.endswith("names") else nbytes)


SUMS, ENTRIES = "account", "account:entries"
"""Names of keys, without the root of the shard."""
# Most expired entries that one call lists.
AT_ONCE = 500

# Shared functions of scripts. The first key of a script determines the shard of all keys that the script changes. An
# entry ends one second after its keys, so that there are never keys without an entry.
LUA = f"""
local ROOT = string.match(KEYS[1], '^bochner:{{%w+}}:') or 'bochner:'
local SUMS, ENTRIES, ENDS = ROOT .. '{SUMS}', ROOT .. '{ENTRIES}', ROOT .. 'account:ends'
local function now()
  local t = redis.call('TIME')
  return tonumber(t[1]) + tonumber(t[2]) / 1000000
end
-- Nothing is added where nothing changes: Lua's -0 is no number to HINCRBY on Redis 7.0.
local function add(field, by)
  if by == 0 then return end
  if redis.call('HINCRBY', SUMS, field, by) == 0 then redis.call('HDEL', SUMS, field) end
end
local function add_to(owner, bytes, names)
  add('bytes', bytes)
  add('names', names)
  if owner == '' then return end
  add('bytes ' .. owner, bytes)
  add('names ' .. owner, names)
end
local function booked(entry) return redis.call('HEXISTS', ENTRIES, entry) == 1 end
local function unbook(entry)
  local found = redis.call('HGET', ENTRIES, entry)
  if not found then return end
  local bytes, names, owner = string.match(found, '^(%d+) (%d+) (.*)$')
  redis.call('HDEL', ENTRIES, entry)
  redis.call('ZREM', ENDS, entry)
  add_to(owner, -bytes, -names)
end
local function book(entry, bytes, names, owner)
  unbook(entry)
  redis.call('HSET', ENTRIES, entry, bytes .. ' ' .. names .. ' ' .. owner)
  add_to(owner, bytes, names)
end
-- An entry lives for so many seconds from now on, as its keys do; '' for ever.
local function lives(entry, seconds)
  if not booked(entry) then return end
  if seconds == '' then redis.call('ZREM', ENDS, entry)
  else redis.call('ZADD', ENDS, now() + seconds + 1, entry) end
end
-- The same, as a key does that is there.
local function lives_as(entry, key)
  local left = redis.call('PTTL', key)
  lives(entry, left < 0 and '' or left / 1000)
end
local function sweep()
  repeat
    local over = redis.call('ZRANGEBYSCORE', ENDS, '-inf', now(), 'LIMIT', 0, {AT_ONCE})
    for _, entry in ipairs(over) do unbook(entry) end
  until #over == 0
end
local function of_job(entry) return string.find(entry, ROOT .. '{{job:', 1, true) == 1 end
-- The entry of everything that a thing has, by the key of its manifest, and that of any piece.
local function entry_at(key, token) return string.sub(key, 1, -string.len('manifest') - 1) .. token end
local function entry_of(piece)
  return (string.gsub(piece, of_job(piece) and ':%d+$' or ':[^:]+:%d+$', ''))
end
-- The limit that so much more would pass, and its value; nil if there is room.
local function passed(owner, bytes, names, most_bytes, most_names)
  local limits = {{
    {{'max_store_bytes', 'bytes', bytes, most_bytes}}, {{'max_store_names', 'names', names, most_names}},
  }}
  if owner ~= '' then
    for what, wanted in pairs({{bytes = bytes, names = names}}) do
      local most = redis.call('HGET', SUMS, 'max_' .. what .. ' ' .. owner)
      if what == 'names' and most_names ~= '' then  -- no more than it leaves to others
        most = math.min(tonumber(most) or math.huge, most_names - (redis.call('HGET', SUMS, 'names') or 0))
      end
      table.insert(limits, {{'key_' .. what, what .. ' ' .. owner, wanted, most or ''}})
    end
  end
  for _, limit in ipairs(limits) do
    local there = tonumber(redis.call('HGET', SUMS, limit[2]) or 0)
    if limit[3] > 0 and limit[4] ~= '' and there + limit[3] > tonumber(limit[4]) then
      return {{limit[1], tonumber(limit[4]), there}}
    end
  end
end
"""

# KEYS: sums. ARGV: most bytes, most names ('' for no limit), owner, an entry that has reserved the room ('' for none),
# seconds to live, then key, bytes and names of each entry. Returns '', the time when keys must expire and whether the
# room was reserved; or the limit that would be exceeded. A repeated charge finds its entries.
CHARGE = f"""{LUA}
local owner, seconds, bytes, names = ARGV[3], tonumber(ARGV[5]), 0, 0
if booked(ARGV[6]) then return {{'', math.floor(redis.call('ZSCORE', ENDS, ARGV[6]) or now()) - 1, 0}} end
sweep()
for i = 6, #ARGV, 3 do bytes, names = bytes + ARGV[i + 1], names + ARGV[i + 2] end
local roomy = booked(ARGV[4])
local limit = not roomy and passed(owner, bytes, names, ARGV[1], ARGV[2])
if limit then return limit end
local deadline = math.floor(now()) + seconds
for i = 6, #ARGV, 3 do
  book(ARGV[i], ARGV[i + 1], ARGV[i + 2], owner)
  redis.call('ZADD', ENDS, deadline + 1, ARGV[i])
end
return {{'', deadline, roomy and 1 or 0}}
"""

# KEYS: sums, chunks. ARGV: entries. Keys that were made permanent by a script whose reply was lost stay; so does the
# record of a job.
DISCARD = f"""{LUA}
for i = 2, #KEYS do
  if redis.call('TTL', KEYS[i]) >= 0 then redis.call('UNLINK', KEYS[i]) end
end
for _, entry in ipairs(ARGV) do
  if redis.call('ZSCORE', ENDS, entry) and redis.call('EXISTS', entry) == 0 then unbook(entry) end
end
"""

# KEYS: sums. ARGV: owner, '' for all. Works on a store that accepts no writes, too.
USAGE = f"""{LUA}
pcall(sweep)
local of = ARGV[1] == '' and '' or ' ' .. ARGV[1]
return redis.call('HMGET', SUMS, 'bytes' .. of, 'names' .. of)
"""
