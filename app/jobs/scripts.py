"""Every change of a job's state, each as one script.

A job `j` is the hash `bochner:{job:j}:record`, the stream `…:events`, and the keys that the set `…:keys` names: its
payload, its attachments, its checkpoint, the bodies of its result. `bochner:jobs` lists the ids, `…:queued` those that
wait by their turn, `…:running` those that run by the end of their lease, `…:ended` those that have ended by when they
expire. All times are the store's own, in seconds.

A script may be carried out twice, as the client library repeats a call whose reply was lost, so each finds its own
work done and says so.
"""

from typing import Any

import redis

INDEX = "bochner:jobs"
QUEUED = "bochner:jobs:queued"
RUNNING = "bochner:jobs:running"
ENDED = "bochner:jobs:ended"

# More events than anybody who lost the connection for a moment has missed.
_EVENTS = 256

_PRELUDE = f"""
local record, index, queued, running, ended = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local base = string.sub(record, 1, -7)
local id, token = ARGV[1], ARGV[2]
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
local function mine() return get('state') == 'running' and get('token') == token end
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
    for i = 1, #KEYS - 5 do kept[KEYS[5 + i]] = true end
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
  redis.call('ZREM', queued, id)
  redis.call('ZREM', running, id)
  redis.call('ZADD', ended, now() + ttl, id)
end
"""

# ARGV: id, -, most that may wait, placeholder (or ''), one that it may take the place of (or ''), field, value, …
# KEYS from 6: where the placeholder goes and its index, if there is one; then everything written for the job.
_SUBMIT = """
if redis.call('EXISTS', record) == 1 then return {'ok'} end
local first = 6
if ARGV[4] ~= '' then
  first = 8
  local present = redis.call('GET', KEYS[6])
  if present and present ~= ARGV[5] then return {'taken', present} end
end
local waiting = redis.call('ZCARD', queued)
if waiting >= tonumber(ARGV[3]) then return {'full', waiting} end
for i = first, #KEYS do
  if redis.call('PERSIST', KEYS[i]) == 0 and redis.call('EXISTS', KEYS[i]) == 0 then return {'expired'} end
end
if ARGV[4] ~= '' then
  redis.call('SET', KEYS[6], ARGV[4])
  redis.call('ZADD', KEYS[7], 0, ARGV[6])
  set('placeholder_key', KEYS[6], 'placeholder', ARGV[4], 'placeholder_index', KEYS[7], 'placeholder_member', ARGV[6])
end
local at = now()
set('id', id, 'state', 'queued', 'created', at, unpack(ARGV, 7))
for i = first, #KEYS do redis.call('SADD', base .. 'keys', KEYS[i]) end
redis.call('ZADD', index, 0, id)
redis.call('ZADD', queued, at, id)
event()
return {'ok'}
"""

# ARGV: id, token, seconds of the lease.
_CLAIM = """
if mine() then return 1 end
if get('state') ~= 'queued' then return 0 end
set('state', 'running', 'token', token)
if get('started') == '' then set('started', now()) end
redis.call('ZREM', queued, id)
redis.call('ZADD', running, now() + tonumber(ARGV[3]), id)
event()
return 1
"""

# ARGV: id, token, seconds of the lease, seconds run in all.
_RENEW = """
if not mine() then return 'lost' end
if get('cancel') ~= '' then return 'cancelled' end
redis.call('ZADD', running, now() + tonumber(ARGV[3]), id)
set('ran', ARGV[4])
return 'ok'
"""

# ARGV: id, token, progress, step, of, objective, eta.
_PROGRESS = """
if not mine() then return 0 end
if get('cancel') ~= '' then return 0 end
set('progress', ARGV[3], 'step', ARGV[4], 'of', ARGV[5], 'objective', ARGV[6], 'eta', ARGV[7])
event()
return 1
"""

# ARGV: id, token. KEYS from 6: keys that are about to be written, so that they are removed whatever happens next.
_ANNOUNCE = """
if not mine() then return 0 end
for i = 6, #KEYS do redis.call('SADD', base .. 'keys', KEYS[i]) end
return 1
"""

# ARGV: id, token, prefix of the new checkpoint. KEYS from 6: its pieces.
_CHECKPOINT = """
if not mine() then return 0 end
local before = get('checkpoint')
if before == ARGV[3] then return 1 end
for i = 6, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then return 0 end
  redis.call('PERSIST', KEYS[i])
end
for i = 0, tonumber('0' .. get('checkpoint_pieces')) - 1 do
  redis.call('UNLINK', before .. ':' .. i)
  redis.call('SREM', base .. 'keys', before .. ':' .. i)
end
set('checkpoint', ARGV[3], 'checkpoint_pieces', #KEYS - 5, 'deaths', 0)
return 1
"""

# ARGV: id, token, state, seconds to keep, error, bodies, placeholder of a failure. KEYS from 6: what is kept.
_END = """
if get('token') == token and get('state') == ARGV[3] then return 1 end
if not mine() then return 0 end
-- Whoever has asked for the end has been answered that it will come.
local state = get('cancel') == '' and ARGV[3] or 'cancelled'
if state == 'failed' then set('error', ARGV[5]) end
if state == 'succeeded' then set('bodies', ARGV[6]) end
finish(state, tonumber(ARGV[4]), ARGV[7])
return 1
"""

# ARGV: id, -, seconds to keep.
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
  if tonumber(redis.call('ZSCORE', running, id) or 0) < now() then finish('cancelled', tonumber(ARGV[3]), '') end
end
return state
"""

# ARGV: id, token ('' for any whose lease has run out), deaths to count, most deaths, seconds to keep, error,
# placeholder of a failure.
_RELEASE = """
if token == '' then
  local lease = redis.call('ZSCORE', running, id)
  if not lease or tonumber(lease) > now() then return '' end
  if get('state') ~= 'running' then redis.call('ZREM', running, id) return '' end
elseif not mine() then return '' end
local deaths = tonumber('0' .. get('deaths')) + tonumber(ARGV[3])
set('deaths', deaths)
if get('cancel') ~= '' then finish('cancelled', tonumber(ARGV[5]), '') return 'cancelled' end
if deaths > tonumber(ARGV[4]) then
  set('error', ARGV[6])
  finish('failed', tonumber(ARGV[5]), ARGV[7])
  return 'failed'
end
set('state', 'queued', 'token', '', 'eta', '')
redis.call('ZREM', running, id)
redis.call('ZADD', queued, get('created'), id)
event()
return 'queued'
"""

_OVERDUE = """
local t = redis.call('TIME')
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', t[1], 'LIMIT', 0, 1000)) do
  redis.call('ZREM', KEYS[3], id)
  redis.call('ZREM', KEYS[1], id)
end
return redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', tonumber(t[1]) + tonumber(t[2]) / 1000000, 'LIMIT', 0, 1000)
"""


class Scripts:
    """The scripts, registered with a client. They are called through `run`, but for `overdue`."""

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
        self._overdue = client.register_script(_OVERDUE)

    def run(self, name: str, job_id: str, *args: Any, keys: list[str] | None = None) -> Any:
        """Run a script on one job."""
        every = [key(job_id, "record"), INDEX, QUEUED, RUNNING, ENDED, *(keys or [])]
        return self._known[name](keys=every, args=[job_id, *args])

    def overdue(self) -> list[str]:
        """Ids of running jobs whose lease has run out; forgets the ids of those that have expired."""
        return [found.decode() for found in self._overdue(keys=[INDEX, RUNNING, ENDED])]


def key(job_id: str, part: str) -> str:
    """A key of a job."""
    return f"bochner:{{job:{job_id}}}:{part}"
