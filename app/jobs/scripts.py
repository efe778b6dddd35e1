"""Every change of a job's state, each as one script.

A job `j` is the hash `bochner:{job:j}:record`, the stream `…:events`, and the keys that the set `…:keys` names: its
payload, its attachments, its checkpoint, the bodies of its result. `bochner:jobs` lists the ids, `bochner:jobs:ended`
those that have ended by when they expire. All times are the store's own, in seconds.

A job that waits or runs has one message in the stream `bochner:jobs:queue`, whose consumer group are the workers. Its
record names the message. A message that no worker has read belongs to a job that waits; one that was read is pending
until the job has ended. A message also stands for an attempt: a job that goes back to the queue gets a new one, and
what an attempt writes is refused once its message is not the job's any more.

A script may be carried out twice, as the client library repeats a call whose reply was lost, so each finds its own
work done and says so.
"""

from typing import Any

import redis

from app.jobs.checkpoints import FORMAT

INDEX = "bochner:jobs"
QUEUE = "bochner:jobs:queue"
ENDED = "bochner:jobs:ended"
GROUP = "workers"
# All workers read under one name: whether the one that holds a message still lives is said by the message's idle time.
CONSUMER = "worker"
# A worker that has not touched its message for so long is taken for dead.
LEASE_SECONDS = 3.0

# More events than anybody who lost the connection for a moment has missed.
_EVENTS = 256

# ARGV: id, message; for a script that is not for one attempt, '' as the message.
_PRELUDE = f"""
local record, index, queue, ended = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local base = string.sub(record, 1, -7)
local id, message = ARGV[1], ARGV[2]
local function now()
  local t = redis.call('TIME')
  return tonumber(t[1]) + tonumber(t[2]) / 1000000
end
local function get(field) return redis.call('HGET', record, field) or '' end
local function set(...) redis.call('HSET', record, ...) end
local function event()
  redis.call('XADD', base .. 'events', 'MAXLEN', {_EVENTS}, '*', 'state', get('state'), 'progress', get('progress'),
    'step', get('step'), 'of', get('of'), 'objective', get('objective'), 'eta', get('eta'))
end
local function newer() return tonumber('0' .. get('format')) > {FORMAT} end
local function mine() return get('state') == 'running' and get('message') == message end
local function enqueue() set('message', redis.call('XADD', queue, '*', 'job', id)) end
local function dequeue(done)
  if done == '' then return end
  redis.call('XACK', queue, '{GROUP}', done)
  redis.call('XDEL', queue, done)
end
local function held()
  if get('message') == '' then -- of version 0.1.0, which kept leases in a sorted set
    return tonumber(redis.call('ZSCORE', 'bochner:jobs:running', id) or 0) > now()
  end
  local found = redis.call('XPENDING', queue, '{GROUP}', get('message'), get('message'), 1)[1]
  return found and found[3] < {1000 * LEASE_SECONDS}
end
local function drop_placeholder(left)
  local key = get('placeholder_key')
  if key == '' or redis.call('GET', key) ~= get('placeholder') then return end
  if left == '' then
    redis.call('DEL', key)
    redis.call('ZREM', get('placeholder_index'), get('placeholder_member'))
  else
    redis.call('SET', key, left)
  end
end
local function finish(state, ttl, failed)
  local kept = {{}}
  if state == 'succeeded' then
    for i = 1, #KEYS - 4 do kept[KEYS[4 + i]] = true end
  elseif state == 'cancelled' then drop_placeholder('')
  elseif failed ~= '' then drop_placeholder(failed) end
  for _, key in ipairs(redis.call('SMEMBERS', base .. 'keys')) do
    -- What is not the job's own and has no time to live was made to stay, as what the job made.
    local own = string.sub(key, 1, #base) == base
    if kept[key] then redis.call('EXPIRE', key, ttl)
    elseif own or redis.call('TTL', key) >= 0 then redis.call('UNLINK', key) end
  end
  redis.call('DEL', base .. 'keys')
  redis.call('HDEL', record, 'checkpoint', 'checkpoint_pieces', 'cancel', 'placeholder')
  set('state', state, 'ended', now(), 'eta', '')
  if state == 'succeeded' then set('progress', 1) end
  event()
  redis.call('EXPIRE', record, ttl)
  redis.call('EXPIRE', base .. 'events', ttl)
  dequeue(get('message'))
  redis.call('ZADD', ended, now() + ttl, id)
end
"""

# ARGV: id, '', most that may wait, placeholder (or ''), one that it may take the place of (or ''), field, value, …
# KEYS from 5: where the placeholder goes and its index, if there is one; then everything written for the job.
_SUBMIT = f"""
if redis.call('EXISTS', record) == 1 then return {{'ok'}} end
local first = 5
if ARGV[4] ~= '' then
  first = 7
  local present = redis.call('GET', KEYS[5])
  if present and present ~= ARGV[5] then return {{'taken', present}} end
end
redis.pcall('XGROUP', 'CREATE', queue, '{GROUP}', '0', 'MKSTREAM')
local waiting = redis.call('XLEN', queue) - redis.call('XPENDING', queue, '{GROUP}')[1]
if waiting >= tonumber(ARGV[3]) then return {{'full', waiting}} end
for i = first, #KEYS do
  if redis.call('PERSIST', KEYS[i]) == 0 and redis.call('EXISTS', KEYS[i]) == 0 then return {{'expired'}} end
end
if ARGV[4] ~= '' then
  redis.call('SET', KEYS[5], ARGV[4])
  redis.call('ZADD', KEYS[6], 0, ARGV[6])
  set('placeholder_key', KEYS[5], 'placeholder', ARGV[4], 'placeholder_index', KEYS[6], 'placeholder_member', ARGV[6])
end
set('id', id, 'format', {FORMAT}, 'state', 'queued', 'created', now(), unpack(ARGV, 7))
for i = first, #KEYS do redis.call('SADD', base .. 'keys', KEYS[i]) end
redis.call('ZADD', index, 0, id)
enqueue()
event()
return {{'ok'}}
"""

# A message that no waiting job names is dropped.
_CLAIM = f"""
if mine() then return 'ok' end
if newer() then return get('format') end
if get('state') ~= 'queued' or get('message') ~= message then dequeue(message) return '' end
set('state', 'running', 'format', {FORMAT})
if get('started') == '' then set('started', now()) end
event()
return 'ok'
"""

# ARGV: id, message, seconds run in all.
_RENEW = f"""
if not mine() then return 'lost' end
if get('cancel') ~= '' then return 'cancelled' end
redis.call('XCLAIM', queue, '{GROUP}', '{CONSUMER}', 0, message, 'JUSTID')
set('ran', ARGV[3])
return 'ok'
"""

# ARGV: id, message, progress, step, of, objective, eta.
_PROGRESS = """
if not mine() then return 0 end
if get('cancel') ~= '' then return 0 end
set('progress', ARGV[3], 'step', ARGV[4], 'of', ARGV[5], 'objective', ARGV[6], 'eta', ARGV[7])
event()
return 1
"""

# KEYS from 5: keys that are about to be written, so that they are removed whatever happens next.
_ANNOUNCE = """
if not mine() then return 0 end
for i = 5, #KEYS do redis.call('SADD', base .. 'keys', KEYS[i]) end
return 1
"""

# ARGV: id, message, prefix of the new checkpoint. KEYS from 5: its pieces.
_CHECKPOINT = """
if not mine() then return 0 end
local before = get('checkpoint')
if before == ARGV[3] then return 1 end
for i = 5, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then return 0 end
  redis.call('PERSIST', KEYS[i])
end
for i = 0, tonumber('0' .. get('checkpoint_pieces')) - 1 do
  redis.call('UNLINK', before .. ':' .. i)
  redis.call('SREM', base .. 'keys', before .. ':' .. i)
end
set('checkpoint', ARGV[3], 'checkpoint_pieces', #KEYS - 4, 'deaths', 0)
return 1
"""

# ARGV: id, message, state, seconds to keep, error, bodies, placeholder of a failure. KEYS from 5: what is kept.
_END = """
if get('message') == message and get('state') == ARGV[3] then return 1 end
if not mine() then return 0 end
-- Whoever has asked for the end has been answered that it will come.
local state = get('cancel') == '' and ARGV[3] or 'cancelled'
if state == 'failed' then set('error', ARGV[5]) end
if state == 'succeeded' then set('bodies', ARGV[6]) end
finish(state, tonumber(ARGV[4]), ARGV[7])
return 1
"""

# ARGV: id, '', seconds to keep.
_CANCEL = """
local state = get('state')
if state == 'queued' then finish('cancelled', tonumber(ARGV[3]), '') end
if state == 'running' and get('cancel') == '' then
  local key = get('placeholder_key')
  -- What it was to make is made, and only its own end is not written down yet.
  if key ~= '' and redis.call('GET', key) ~= get('placeholder') then return 'made' end
  set('cancel', 1)
  drop_placeholder('')
  -- With its worker dead, nobody else might be there to end it.
  if not held() then finish('cancelled', tonumber(ARGV[3]), '') end
end
return state
"""

# ARGV: id, message, deaths to count, most deaths, seconds to keep, error, placeholder of a failure. A job whose message
# was read and not claimed goes back as it was; a message that is no job's is dropped.
_RELEASE = """
if newer() then return '' end
local state = get('state')
if get('message') ~= message or (state ~= 'running' and state ~= 'queued') then dequeue(message) return '' end
if state == 'running' then
  local deaths = tonumber('0' .. get('deaths')) + tonumber(ARGV[3])
  set('deaths', deaths)
  if get('cancel') ~= '' then finish('cancelled', tonumber(ARGV[5]), '') return 'cancelled' end
  if deaths > tonumber(ARGV[4]) then
    set('error', ARGV[6])
    finish('failed', tonumber(ARGV[5]), ARGV[7])
    return 'failed'
  end
  set('state', 'queued', 'eta', '')
  event()
end
dequeue(message)
enqueue()
return 'queued'
"""

# KEYS: index, queue, ended. Makes sure that workers can read, and forgets the ids of jobs that have expired.
_TEND = f"""
redis.pcall('XGROUP', 'CREATE', KEYS[2], '{GROUP}', '0', 'MKSTREAM')
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', redis.call('TIME')[1], 'LIMIT', 0, 1000)) do
  redis.call('ZREM', KEYS[3], id)
  redis.call('ZREM', KEYS[1], id)
end
"""


class Scripts:
    """The scripts, registered with a client. Those on one job are called through `run`."""

    def __init__(self, client: redis.Redis) -> None:
        self._known = {
            name: client.register_script(_PRELUDE + body)
            for name, body in {
                "submit": _SUBMIT,
                "claim": _CLAIM,
                "renew": _RENEW,
                "progress": _PROGRESS,
                "announce": _ANNOUNCE,
                "checkpoint": _CHECKPOINT,
                "end": _END,
                "cancel": _CANCEL,
                "release": _RELEASE,
            }.items()
        }
        self._tend = client.register_script(_TEND)

    def run(self, name: str, job_id: str, *args: Any, keys: list[str] | None = None) -> Any:
        """Run a script on one job."""
        every = [key(job_id, "record"), INDEX, QUEUE, ENDED, *(keys or [])]
        return self._known[name](keys=every, args=[job_id, *args])

    def tend(self) -> None:
        """Prepare the queue for its workers, and forget the ids of jobs that have expired."""
        self._tend(keys=[INDEX, QUEUE, ENDED])


def key(job_id: str, part: str) -> str:
    """A key of a job."""
    return f"bochner:{{job:{job_id}}}:{part}"
