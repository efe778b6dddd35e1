"""Every change of a job's state, each as one script; `prelude` says how jobs are stored.

A script may be carried out twice, as the client library repeats a call whose reply was lost, so each finds its own
work done and says so.
"""

from collections.abc import Sequence
from typing import Any

import redis

from app.jobs.checkpoints import FORMAT
from app.jobs.prelude import CONSUMER, ENDED, GROUP, INDEX, PRELUDE, QUEUE, key
from app.store.errors import store_errors
from app.store.places import inside, places_of

_SCRIPTS = {
    # ARGV: id, '', most that may wait, manifest of a reservation (or ''), its name, field, value, …
    # KEYS from 5: key of that manifest and its listing, if there is one; then everything written for the job.
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
if waiting >= tonumber(ARGV[3]) then return {{'full', waiting}} end
for i = first, #KEYS do
  if redis.call('PERSIST', KEYS[i]) == 0 and redis.call('EXISTS', KEYS[i]) == 0 then return {{'expired'}} end
end
if ARGV[4] ~= '' then
  drop_spec(KEYS[5], found)
  redis.call('SET', KEYS[5], ARGV[4])
  redis.call('ZADD', KEYS[6], 0, ARGV[5])
  set('placeholder_key', KEYS[5], 'placeholder_index', KEYS[6], 'placeholder_member', ARGV[5])
end
set('id', id, 'format', {FORMAT}, 'state', 'queued', 'created', now(), unpack(ARGV, 6))
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
    # A message that no waiting job names is dropped.
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
    # ARGV: id, message, seconds run in all.
    "renew": f"""
if not mine() then return 'lost' end
if get('cancel') ~= '' then return 'cancelled' end
redis.call('XCLAIM', queue, '{GROUP}', '{CONSUMER}', 0, message, 'JUSTID')
set('ran', ARGV[3])
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
    # KEYS from 5: keys that are about to be written, so that they are removed whatever happens next.
    "announce": """
if not mine() then return 0 end
for i = 5, #KEYS do redis.call('SADD', base .. 'keys', KEYS[i]) end
return 1
""",
    # ARGV: id, message, prefix of the new checkpoint. KEYS from 5: its pieces.
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
    # ARGV: id, message, state, seconds to keep, error, bodies. KEYS from 5: what is kept.
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
    # ARGV: id, '', seconds to keep, receipt to leave if this frees the name that the job holds ('' for none), token of
    # this call. A store without memory lets a script write anything once it has deleted something, so that comes first.
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
    # ARGV: id, message, deaths to count, most deaths, seconds to keep, error. A job whose message was read and not
    # claimed goes back as it was; a message that is no job's is dropped.
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
enqueue()
return 'queued'
""",
}

# KEYS: index, queue, ended. Makes sure that workers can read, and forgets the ids of jobs that have expired. Where the
# clock was set back, a message was read in what is the future now, and shows no idle time until then: it begins anew.
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
    """Run a script on one job; StoreUnavailable."""
    places = places_of(client)
    lists = (inside(places.of_job(job_id), one) for one in (INDEX, QUEUE, ENDED))
    every = [key(job_id, "record", places), *lists, *keys]
    with store_errors():
        return client.register_script(PRELUDE + _SCRIPTS[name])(keys=every, args=[job_id, *args])
