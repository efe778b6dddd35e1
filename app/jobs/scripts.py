"""How jobs are stored, and the Lua scripts that change a job's state, one script per change.

A job `j` is the hash `bochner:{job:j}:record`, the stream `…:events`, and the keys listed in the set `…:keys`: its
payload, its attachments, its checkpoint, the bodies of its result. `bochner:jobs` lists all ids; `bochner:jobs:ended`
lists the ids of ended jobs by the time when they expire. All times are the store's own, in seconds.

A job that waits or runs has one message in the stream `bochner:jobs:queue`, whose consumer group are the workers. The
job's record names the message. An unread message belongs to a waiting job; a message that a worker has read is pending
until the job has ended. A message also stands for an attempt: a job that goes back to the queue gets a new message, and
the store then refuses what the attempt with the old one writes.

A script may run twice, as the client library repeats a call whose reply was lost. So each script recognises its own
work and reports it as done.
"""

from collections.abc import Sequence
from typing import Any

import redis

from app.jobs.checkpoints import FORMAT
from app.store.connection import ONE, Places, inside, places_of
from app.store.errors import store_errors
from app.store.named import LUA

INDEX = "bochner:jobs"
QUEUE = "bochner:jobs:queue"
ENDED = "bochner:jobs:ended"
TALLY = "bochner:jobs:tally"
"""Hash of counts of jobs that have started and ended; being in the store, it survives any process. See `Jobs.tally`."""
GROUP = "workers"
# All workers read under one consumer name: the idle time of a message shows whether the worker that holds it is alive.
CONSUMER = "worker"
# A worker that has not touched its message for this time is considered dead.
LEASE_SECONDS = 3.0

# Events kept per job: more than a client misses that loses the connection for a moment.
_EVENTS = 256

# Bucket bounds of the histograms of jobs' durations, in seconds.
SECONDS = (0.1, 1, 5, 15, 60, 300, 900, 3600, 14400)
_BOUNDS = ", ".join(map(str, SECONDS))

# Shared beginning of all scripts. ARGV: id, message ('' for a script that does not belong to an attempt).
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
local function enqueue(since)
  since = since or string.format('%.0f', 1000 * now())
  set('message', redis.call('XADD', queue, '*', 'job', id, 'owner', get('owner'), 'since', since))
end
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
    """Return the key of a part of a job, in a store with the given shards."""
    return f"{places.of_job(job_id)}{{job:{job_id}}}:{part}"


_SCRIPTS = {
    # ARGV: id, '', most jobs that may wait, manifest of a reservation (or ''), its name, owner ('' for none), field,
    # value, … An owner may take no more of the queue than it leaves to others.
    # KEYS from 5: with a reservation, the key of its manifest and its listing; then all keys written for the job.
    "submit": f"""
if redis.call('EXISTS', record) == 1 then return {{'ok'}} end
local first = 5
local stored, found
if ARGV[4] ~= '' then
  first = 7
  stored, found = manifest(KEYS[5])
  if stored and not failed(found) then return {{'taken'}} end
end
redis.pcall('XGROUP', 'CREATE', queue, '{GROUP}', '0', 'MKSTREAM')
local waiting = redis.call('XLEN', queue) - redis.call('XPENDING', queue, '{GROUP}')[1]
local left, own = tonumber(ARGV[3]) - waiting, 0
for _, message in ipairs(ARGV[6] ~= '' and redis.call('XRANGE', queue, '-', '+') or {{}}) do
  if message[2][4] == ARGV[6] then own = own + 1 end
end
if own >= left then return {{'full', waiting, own}} end
for i = first, #KEYS do
  if redis.call('PERSIST', KEYS[i]) == 0 and redis.call('EXISTS', KEYS[i]) == 0 then return {{'expired'}} end
end
if ARGV[4] ~= '' then
  drop_spec(KEYS[5], found)
  redis.call('SET', KEYS[5], ARGV[4])
  local _, held = manifest(KEYS[5])
  if held.token then lives(entry_at(KEYS[5], held.token), '') end
  redis.call('ZADD', KEYS[6], 0, ARGV[5])
  set('placeholder_key', KEYS[5], 'placeholder_index', KEYS[6], 'placeholder_member', ARGV[5])
end
set('id', id, 'format', {FORMAT}, 'state', 'queued', 'created', now(), unpack(ARGV, 7))
for i = first, #KEYS do
  redis.call('SADD', base .. 'keys', KEYS[i])
  lives(entry_of(KEYS[i]), '')
end
lives(record, '')
redis.call('ZADD', index, 0, id)
enqueue()
event()
return {{'ok'}}
""",
    # Drops a message that no waiting job names.
    "claim": f"""
if mine() then return 'ok' end
if newer() then leave_to_newer() return get('format') end
if get('state') ~= 'queued' or get('message') ~= message then dequeue(message) return '' end
set('state', 'running', 'format', {FORMAT})
if get('started') == '' then
  set('started', now())
  tally_seconds('waited', get('created'))
end
event()
return 'ok'
""",
    # ARGV: id, message, seconds run in all attempts; and if a turn without progress is given up, the total seconds of
    # all such turns.
    "renew": f"""
if not mine() then return 'lost' end
if get('cancel') ~= '' then return 'cancelled' end
redis.call('XCLAIM', queue, '{GROUP}', '{CONSUMER}', 0, message, 'JUSTID')
set('ran', ARGV[3])
if ARGV[4] then set('lost', ARGV[4]) end
return 'ok'
""",
    # ARGV: id, message, progress, step, of, objective, eta.
    "progress": """
if not mine() then return 0 end
if get('cancel') ~= '' then return 0 end
set('progress', ARGV[3], 'step', ARGV[4], 'of', ARGV[5], 'objective', ARGV[6], 'eta', ARGV[7])
event()
return 1
""",
    # KEYS from 5: keys that are about to be written; they are registered so that the end of the job removes them.
    "announce": """
if not mine() then return 0 end
for i = 5, #KEYS do redis.call('SADD', base .. 'keys', KEYS[i]) end
return 1
""",
    # ARGV: id, message, prefix of the new checkpoint. KEYS from 5: its chunks.
    "checkpoint": """
if not mine() then return 0 end
local before = get('checkpoint')
if before == ARGV[3] then return 1 end
for i = 5, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then return 0 end
end
for i = 5, #KEYS do redis.call('PERSIST', KEYS[i]) end
for i = 0, tonumber('0' .. get('checkpoint_pieces')) - 1 do
  redis.call('UNLINK', before .. ':' .. i)
  redis.call('SREM', base .. 'keys', before .. ':' .. i)
end
if before ~= '' then unbook(before) end
lives(ARGV[3], '')
set('checkpoint', ARGV[3], 'checkpoint_pieces', #KEYS - 4, 'deaths', 0)
return 1
""",
    # ARGV: id, message, state, seconds to keep, error, bodies. KEYS from 5: keys to keep.
    "end": """
if get('message') == message and get('state') == ARGV[3] then return 1 end
if not mine() then return 0 end
-- Whoever has asked for the end has been answered that it will come.
local state = get('cancel') == '' and ARGV[3] or 'cancelled'
if state == 'failed' then set('error', ARGV[5]) end
if state == 'succeeded' then set('bodies', ARGV[6]) end
finish(state, tonumber(ARGV[4]))
return 1
""",
    # ARGV: id, '', seconds to keep, receipt to store if this frees the name that the job holds ('' for none), token of
    # this call. A store that is out of memory lets a script write only after it has deleted something, so the script
    # deletes first.
    "cancel": """
local state = get('state')
if get('canceller') == ARGV[5] then return 'running' end
if state ~= 'queued' and state ~= 'running' then return state end
if get('started') ~= '' and get('cancel') == '' and get('placeholder_key') ~= '' and not reserved() then
  -- What it was to make is made, and only its own end is not written down yet.
  return 'made'
end
local frees = reserved() and ARGV[4] ~= ''
if state == 'queued' then finish('cancelled', tonumber(ARGV[3])) end
if state == 'running' and get('cancel') == '' then
  free_name()
  set('cancel', 1)
  -- With its worker dead, nobody else might be there to end it.
  if not held() then finish('cancelled', tonumber(ARGV[3])) end
end
if get('canceller') == '' then set('canceller', ARGV[5]) end
if frees then leave(ARGV[4]) end
return state
""",
    # ARGV: id, message, deaths to add, most deaths, seconds to keep, error, time since which the job waits. A job whose
    # message was read but not claimed goes back to the queue unchanged; a message without a job is dropped.
    "release": """
if newer() then leave_to_newer() return '' end
local state = get('state')
if get('message') ~= message or (state ~= 'running' and state ~= 'queued') then dequeue(message) return '' end
if state == 'running' then
  local deaths = tonumber('0' .. get('deaths')) + tonumber(ARGV[3])
  set('deaths', deaths)
  if get('cancel') ~= '' then finish('cancelled', tonumber(ARGV[5])) return 'cancelled' end
  if deaths > tonumber(ARGV[4]) then
    set('error', ARGV[6])
    finish('failed', tonumber(ARGV[5]))
    return 'failed'
  end
  set('state', 'queued', 'eta', '')
  event()
end
dequeue(message)
enqueue(state == 'queued' and ARGV[7])
return 'queued'
""",
}

# KEYS: index, queue, ended. Creates the consumer group of the workers, and removes the ids of expired jobs from the
# lists. If the clock was set back, a message has a read time in the future and no idle time until then: claiming the
# message restarts its idle time.
TEND = f"""
redis.pcall('XGROUP', 'CREATE', KEYS[2], '{GROUP}', '0', 'MKSTREAM')
for _, read in ipairs(redis.call('XPENDING', KEYS[2], '{GROUP}', '-', '+', 1000)) do
  if read[3] <= 0 then redis.call('XCLAIM', KEYS[2], '{GROUP}', '{CONSUMER}', 0, read[1], 'JUSTID') end
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', redis.call('TIME')[1], 'LIMIT', 0, 1000)) do
  redis.call('ZREM', KEYS[3], id)
  redis.call('ZREM', KEYS[1], id)
end
"""


def run(client: redis.Redis, name: str, job_id: str, *args: Any, keys: Sequence[str] = ()) -> Any:
    """Run the script `name` on one job; may raise StoreUnavailable."""
    places = places_of(client)
    lists = (inside(places.of_job(job_id), one) for one in (INDEX, QUEUE, ENDED))
    every = [key(job_id, "record", places), *lists, *keys]
    with store_errors():
        return client.register_script(PRELUDE + _SCRIPTS[name])(keys=every, args=[job_id, *args])
