"""How jobs are stored, and what the scripts that change them have in common.

A job `j` is the hash `bochner:{job:j}:record`, the stream `…:events`, and the keys that the set `…:keys` names: its
payload, its attachments, its checkpoint, the bodies of its result. `bochner:jobs` lists the ids, `bochner:jobs:ended`
those that have ended by when they expire. All times are the store's own, in seconds.

A job that waits or runs has one message in the stream `bochner:jobs:queue`, whose consumer group are the workers. Its
record names the message. A message that no worker has read belongs to a job that waits; one that was read is pending
until the job has ended. A message also stands for an attempt: a job that goes back to the queue gets a new one, and
what an attempt writes is refused once its message is not the job's any more.
"""

from app.jobs.checkpoints import FORMAT
from app.store.places import ONE, Places
from app.store.reservations import LUA

INDEX = "bochner:jobs"
QUEUE = "bochner:jobs:queue"
ENDED = "bochner:jobs:ended"
TALLY = "bochner:jobs:tally"
"""Counts of jobs that have begun and ended, which nobody who dies takes along: see `tally`."""
GROUP = "workers"
# All workers read under one name: whether the one that holds a message still lives is said by the message's idle time.
CONSUMER = "worker"
# A worker that has not touched its message for so long is taken for dead.
LEASE_SECONDS = 3.0

# More events than anybody who lost the connection for a moment has missed.
_EVENTS = 256

# Seconds, of histograms of jobs.
SECONDS = (0.1, 1, 5, 15, 60, 300, 900, 3600, 14400)
_BOUNDS = ", ".join(map(str, SECONDS))

# ARGV: id, message; for a script that is not for one attempt, '' as the message.
PRELUDE = f"""{LUA}
local record, index, queue, ended = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local base = string.sub(record, 1, -7)
local id, message = ARGV[1], ARGV[2]
local function get(field) return redis.call('HGET', record, field) or '' end
-- Counts, and never fails what it counts.
local function tally(field, by) redis.pcall('HINCRBY', ROOT .. 'jobs:tally', field .. ' ' .. get('kind'), by) end
local function tally_seconds(what, since)
  local took = math.max(0, now() - (tonumber(since) or now()))
  local bound = 'Inf'
  for _, one in ipairs({{{_BOUNDS}}}) do
    if took <= one then bound = one break end
  end
  tally(what .. ' le ' .. bound, 1)
  tally(what .. ' milliseconds', math.floor(1000 * took))
end
local function set(...) redis.call('HSET', record, ...) end
local function event()
  redis.call('XADD', base .. 'events', 'MAXLEN', {_EVENTS}, '*', 'state', get('state'), 'progress', get('progress'),
    'step', get('step'), 'of', get('of'), 'objective', get('objective'), 'eta', get('eta'))
end
local function newer() return tonumber('0' .. get('format')) > {FORMAT} end
-- Else the idle time of a message that this version has read would begin anew, and workers of this version that look
-- after it each second could keep it from those of the newer one for ever.
local function leave_to_newer()
  redis.call('XCLAIM', queue, '{GROUP}', '{CONSUMER}', 0, message, 'IDLE', {1000 * LEASE_SECONDS:.0f}, 'JUSTID')
end
local function mine() return get('state') == 'running' and get('message') == message end
local function enqueue() set('message', redis.call('XADD', queue, '*', 'job', id)) end
local function dequeue(done)
  if done == '' then return end
  redis.call('XACK', queue, '{GROUP}', done)
  redis.call('XDEL', queue, done)
end
local function held()
  local found = redis.call('XPENDING', queue, '{GROUP}', get('message'), get('message'), 1)[1]
  return found and found[3] < {1000 * LEASE_SECONDS}
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
  local kept = {{}}
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
"""


def key(job_id: str, part: str, places: Places = ONE) -> str:
    """A key of a job in a store of such places."""
    return f"{places.of_job(job_id)}{{job:{job_id}}}:{part}"
