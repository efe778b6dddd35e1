-- Shared beginning of all scripts. ARGV: id, message ('' for a script that does not belong to an attempt).
local record, index, queue, ended = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local base = string.sub(record, 1, -7)
local id, message = ARGV[1], ARGV[2]
local function get(field) return redis.call('HGET', record, field) or '' end
-- Counts, and never fails what it counts.
local function tally(field, by) redis.pcall('HINCRBY', ROOT .. 'jobs:tally', field .. ' ' .. get('kind'), by) end
local function tally_seconds(what, since)
  local took = math.max(0, now() - (tonumber(since) or now()))
  local bound = 'Inf'
  for _, one in ipairs(BOUNDS) do
    if took <= one then bound = one break end
  end
  tally(what .. ' le ' .. bound, 1)
  tally(what .. ' milliseconds', math.floor(1000 * took))
end
local function set(...) redis.call('HSET', record, ...) end
-- Adds an event; 256 are kept per job, more than a client misses that loses the connection for a moment.
local function event()
  redis.call('XADD', base .. 'events', 'MAXLEN', 256, '*', 'state', get('state'), 'progress', get('progress'),
    'step', get('step'), 'of', get('of'), 'objective', get('objective'), 'eta', get('eta'))
end
local function newer() return tonumber('0' .. get('format')) > FORMAT end
-- Else the idle time of a message that this version has read would begin anew, and workers of this version that look
-- after it each second could keep it from those of the newer one for ever.
local function leave_to_newer()
  redis.call('XCLAIM', queue, GROUP, CONSUMER, 0, message, 'IDLE', LEASE_MILLISECONDS, 'JUSTID')
end
local function mine() return get('state') == 'running' and get('message') == message end
local function enqueue(since)
  since = since or string.format('%.0f', 1000 * now())
  set('message', redis.call('XADD', queue, '*', 'job', id, 'owner', get('owner'), 'since', since))
end
local function dequeue(done)
  if done == '' then return end
  redis.call('XACK', queue, GROUP, done)
  redis.call('XDEL', queue, done)
end
local function held()
  local found = redis.call('XPENDING', queue, GROUP, get('message'), get('message'), 1)[1]
  return found and found[3] < LEASE_MILLISECONDS
end
-- What stands under the name that was reserved for the job, while it is the job's.
local function reserved()
  local key = get('placeholder_key')
  if key == '' then return end
  local stored, found = manifest(key)
  if found.job == id then return found end
end
local function free_name()
  local found = reserved()
  if not found then return end
  redis.call('DEL', get('placeholder_key'))
  drop_spec(get('placeholder_key'), found)
  redis.call('ZREM', get('placeholder_index'), get('placeholder_member'))
end
local function mark_failed()
  local found = reserved()
  if not found then return end
  local at, seconds = get('placeholder_key'), ttl(found)
  found.state, found.error = 'failed', cjson.decode(get('error'))
  if seconds ~= '' then found.expires_at = math.floor(now()) + seconds end
  redis.call('SET', at, cjson.encode(found))
  -- Nothing is promised to it any more.
  local own = entry_at(at, found.token)
  if booked(own) then book(own, type(found.spec) == 'table' and found.spec.nbytes or 0, 1, get('owner')) end
  if seconds == '' then return end
  redis.call('EXPIRE', at, seconds)
  for _, piece in ipairs(spec_pieces(own, found)) do redis.call('EXPIRE', piece, seconds) end
  lives(own, seconds)
end
-- The entry of what stands under the name that was reserved for the job, be it the job's or another's.
local function standing()
  local key = get('placeholder_key')
  local _, found = manifest(key)
  return found.token and entry_at(key, found.token)
end
local function finish(state, ttl)
  local kept = {}
  if state == 'succeeded' then
    for i = 1, #KEYS - 4 do kept[KEYS[4 + i]] = true end
  elseif state == 'cancelled' then free_name()
  else mark_failed() end
  local stands = get('placeholder_key') ~= '' and standing()
  for _, key in ipairs(redis.call('SMEMBERS', base .. 'keys')) do
    -- What is not the job's own and belongs to what stands, or has no time to live, was made to stay.
    local own = string.sub(key, 1, #base) == base
    if kept[key] then
      redis.call('EXPIRE', key, ttl)
      lives(entry_of(key), ttl)
    elseif own or (entry_of(key) ~= stands and redis.call('TTL', key) ~= -1) then
      redis.call('UNLINK', key)
      unbook(entry_of(key))
    end
  end
  redis.call('DEL', base .. 'keys')
  redis.call('HDEL', record, 'checkpoint', 'checkpoint_pieces', 'cancel', 'placeholder')
  tally('ended ' .. state, 1)
  if get('started') ~= '' then tally_seconds('ran', get('started')) end
  set('state', state, 'ended', now(), 'eta', '')
  if state == 'succeeded' then set('progress', 1) end
  event()
  redis.call('EXPIRE', record, ttl)
  redis.call('EXPIRE', base .. 'events', ttl)
  lives(record, ttl)
  dequeue(get('message'))
  redis.call('ZADD', ended, now() + ttl, id)
end
