"""The scripts of the account, and the text that other scripts need to keep it.

Each place of a store keeps an account of its own, see `places`. The hash `bochner:account:entries` has the entries,
the sorted set `bochner:account:ends` the times when those end that do, and the hash `bochner:account` the sums, of all
and of each owner. What an entry is, `account.py` tells.
"""

SUMS, ENTRIES = "account", "account:entries"
"""Keys, behind the root of a place."""
# Entries looked at by one call.
AT_ONCE = 500

# For scripts, whose first key tells the place: all that they change is there. An entry ends a second after its keys, so
# that there are never keys without it.
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

# KEYS: sums. ARGV: most bytes, most names ('' for any), owner, an entry that has room for all of it ('' for none),
# seconds to live, then entry, bytes and names of each. Gives the moment when keys are to expire, in seconds, or the
# limit that is passed; and whether there was an entry that had room. A repeated charge finds its entries.
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

# KEYS: sums. ARGV: most bytes, most names, owner, bytes, names. Gives the limit that so much more would pass.
CHECK = f"""{LUA}
sweep()
return passed(ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[1], ARGV[2])
"""

# KEYS: sums, pieces. ARGV: entries. What was made to stay, though the reply was lost, stays; so does the record of a
# job.
DISCARD = f"""{LUA}
for i = 2, #KEYS do
  if redis.call('TTL', KEYS[i]) >= 0 then redis.call('UNLINK', KEYS[i]) end
end
for _, entry in ipairs(ARGV) do
  if redis.call('ZSCORE', ENDS, entry) and redis.call('EXISTS', entry) == 0 then unbook(entry) end
end
"""

# KEYS: sums. ARGV: owner, '' for all. A store that takes no writes still answers.
USAGE = f"""{LUA}
pcall(sweep)
local of = ARGV[1] == '' and '' or ' ' .. ARGV[1]
return redis.call('HMGET', SUMS, 'bytes' .. of, 'names' .. of)
"""
