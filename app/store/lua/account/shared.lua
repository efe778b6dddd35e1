-- Shared functions of scripts. The first key of a script determines the shard of all keys that the script changes. An
-- entry ends one second after its keys, so that there are never keys without an entry.
local SUMS, ENTRIES, ENDS = ROOT .. 'account', ROOT .. 'account:entries', ROOT .. 'account:ends'
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
    local over = redis.call('ZRANGEBYSCORE', ENDS, '-inf', now(), 'LIMIT', 0, 500)
    for _, entry in ipairs(over) do unbook(entry) end
  until #over == 0
end
local function of_job(entry) return string.find(entry, ROOT .. '{job:', 1, true) == 1 end
-- The entry of everything that a thing has, by the key of its manifest, and that of any piece.
local function entry_at(key, token) return string.sub(key, 1, -string.len('manifest') - 1) .. token end
local function entry_of(piece) return (string.gsub(piece, of_job(piece) and ':%d+$' or ':[^:]+:%d+$', '')) end
-- The limit that so much more would pass, and its value; nil if there is room. Of the bytes, the owner may get others.
-- `elsewhere` has the bytes of all, and of the owner, in other shards.
local function passed(owner, bytes, names, most_bytes, most_names, own_bytes, elsewhere)
  local every, own = unpack(elsewhere or {0, 0})
  local limits = {
    {'max_store_bytes', 'bytes', bytes, most_bytes, every}, {'max_store_names', 'names', names, most_names, 0},
  }
  if owner ~= '' then
    for what, wanted in pairs({bytes = own_bytes or bytes, names = names}) do
      local most = redis.call('HGET', SUMS, 'max_' .. what .. ' ' .. owner)
      if what == 'names' and most_names ~= '' then  -- no more than it leaves to others
        most = math.min(tonumber(most) or math.huge, most_names - (redis.call('HGET', SUMS, 'names') or 0))
      end
      table.insert(limits, {'key_' .. what, what .. ' ' .. owner, wanted, most or '', what == 'bytes' and own or 0})
    end
  end
  for _, limit in ipairs(limits) do
    local there = (redis.call('HGET', SUMS, limit[2]) or 0) + limit[5]
    if limit[3] > 0 and limit[4] ~= '' and there + limit[3] > tonumber(limit[4]) then
      return {limit[1], tonumber(limit[4]), there}
    end
  end
end
