"""The scripts of indexes: each changes all keys of an index at once, or none, and its entry in the account.

An index `i` is the key `bochner:{index:i}:manifest`, and keys that begin with `bochner:{index:i}:<token>`, here `own`:
`state`, a hash of its size, its bytes and its revision, the number of changes; and, for each vector, which has a slot,
a number from 0 up to the size:

- `codes.<block>`: the mark of its tag and its codes, in blocks of `BLOCK` slots that have their full length from the
  beginning, as a string that grows is given twice its room;
- `ids.<block>`: the ids of the slots of a block in their order, each after its length;
- `slots.<bucket>`: a hash of slots by ids, one of `BUCKETS`, so that it stays short enough to be kept without pointers;
- `vectors.<block>`: a hash of the vectors themselves, where they are kept, by their places in the block.

`revisions` has the revision of the last change of each block, so that a process reads no block twice. A vector that is
deleted leaves its slot to the last one: nothing of it stays, and slots have no gaps. `receipts` has those of the last
deletions for a while: a call that is repeated, because its reply was lost, finds what the first one has done.
"""

from app.store.reservations import LUA, RECEIPT_SECONDS

BLOCK = 128
BUCKETS = 4096
MARK_BYTES = 8
"""Of the mark of a tag."""
_RECEIPTS = 128
_RECEIPT_BYTES = 8
# Keys that are named in one call.
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
local function live_on()
  local left = redis.call('PTTL', KEYS[1])
  if left < 0 then return end
  for key in pairs(touched) do redis.call('PEXPIRE', key, left + 1000) end
end
local function owner()
  local entry = redis.call('HGET', ENTRIES, own)
  return entry and string.match(entry, '^%d+ %d+ (.*)$') or ''
end
-- Notes a change of some blocks, and what the index is from now on.
local function changed(blocks, size, bytes)
  local revision = state('revision') + 1
  local written = struct.pack('<I4', revision % 4294967296)
  for block in pairs(blocks) do
    if block < n_blocks(size) then redis.call('SETRANGE', touch(at('revisions')), 4 * block, written) end
  end
  redis.call('HSET', touch(at('state')), 'size', size, 'revision', revision, 'bytes', bytes)
  book(own, bytes, 1, owner())
  lives_as(own, KEYS[1])
  live_on()
end
"""

# KEYS: manifest, listing. ARGV: token, manifest, name, seconds that it lives ('' for ever), owner, most bytes, most
# names. Gives the limit that is passed, if one is, and the manifest that stands then.
CREATE = f"""{_INDEX}
local stored = redis.call('GET', KEYS[1])
if stored then return {{false, stored}} end
sweep()
local limit = passed(ARGV[5], 0, 1, ARGV[6], ARGV[7])
if limit then return {{limit, ''}} end
if ARGV[4] == '' then redis.call('SET', KEYS[1], ARGV[2]) else redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[4]) end
redis.call('ZADD', KEYS[2], 0, ARGV[3])
redis.call('HSET', touch(at('state')), 'size', 0, 'revision', 0, 'bytes', 0)
live_on()
book(own, 0, 1, ARGV[5])
lives(own, ARGV[4])
return {{false, ARGV[2]}}
"""

# KEYS: manifest. ARGV: token, the manifest that stands, the one that takes its place, the seconds that all of it lives
# from now on ('' for ever). Gives 0 if another stands there, else 1.
RENEW = f"""{_INDEX}
local stored = redis.call('GET', KEYS[1])
if stored ~= ARGV[2] then return stored == ARGV[3] and 1 or 0 end
if ARGV[4] == '' then redis.call('SET', KEYS[1], ARGV[3]) else redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[4]) end
with_all_keys(function(some)
  for _, key in ipairs(some) do
    if ARGV[4] == '' then redis.call('PERSIST', key) else redis.call('EXPIRE', key, ARGV[4] + 1) end
  end
end)
lives(own, ARGV[4])
return 1
"""

# KEYS: manifest, listing. ARGV: token, manifest, name, receipt. Gives 1 if this call, or the first try of it, has
# deleted the index.
DELETE = f"""{_INDEX}
if redis.call('EXISTS', receipt(ARGV[4])) == 1 then return 1 end
if redis.call('GET', KEYS[1]) ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[3])
with_all_keys(function(some) redis.call('UNLINK', unpack(some)) end)
redis.call('UNLINK', at('receipts'))
unbook(own)
leave(ARGV[4])
return 1
"""

# KEYS: manifest. ARGV: token, bytes of mark and codes, whether vectors are kept ('1', ''), most bytes, most vectors
# ('' for any), and then of each vector its id, its mark and codes, and itself ('' where it is not kept). No id comes
# twice. Gives the limit that is passed, if one is; nil where the index is gone.
UPSERT = f"""{_INDEX}
if not is_there() then return false end
local FIRST, stride, size, bytes = 6, tonumber(ARGV[2]), state('size'), state('bytes')
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
local limit = passed(owner(), grown, 0, ARGV[4], '')
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
changed(blocks, size, bytes + grown)
return {{''}}
"""

# KEYS: manifest. ARGV: token, bytes of mark and codes, whether vectors are kept, id, receipt. Gives 1 if this call, or
# the first try of it, has deleted the vector, 0 if there is none, nil where the index is gone.
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
changed({{[block] = true, [from] = true}}, last, state('bytes') - gone)
return 1
"""

# KEYS: manifest. ARGV: token, ids. Gives the vectors that are kept under them, nil for each that is not there; nil
# where the index is gone.
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
