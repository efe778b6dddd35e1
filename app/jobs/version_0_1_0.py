"""What version 0.1.0 left of its queue: jobs in two sorted sets, and messages and workers of Python-RQ."""

import redis

from app.jobs.prelude import QUEUE
from app.store.places import ONE, places_of

# KEYS: the queue. Jobs that waited, and those that ran and whose lease is over, get a message of the queue in place of
# the old one. A service of 0.1.0 may still run beside this one: it is the store that says which leases are over.
_ADOPT = """
local function adopt(set, ids)
  for _, id in ipairs(ids) do
    local record = 'bochner:{job:' .. id .. '}:record'
    local state = redis.call('HGET', record, 'state')
    if state == 'queued' or state == 'running' then
      redis.call('HSET', record, 'state', 'queued', 'eta', '', 'message', redis.call('XADD', KEYS[1], '*', 'job', id))
    end
    redis.call('ZREM', set, id)
    redis.call('UNLINK', 'rq:job:' .. id)
  end
end
local running, queued = 'bochner:jobs:running', 'bochner:jobs:queued'
adopt(running, redis.call('ZRANGEBYSCORE', running, '-inf', redis.call('TIME')[1], 'LIMIT', 0, 1000))
adopt(queued, redis.call('ZRANGE', queued, 0, 999))
for _, id in ipairs(redis.call('LRANGE', 'rq:queue:bochner', 0, 999)) do redis.call('UNLINK', 'rq:job:' .. id) end
for _, worker in ipairs(redis.call('SMEMBERS', 'rq:workers:bochner')) do
  redis.call('SREM', 'rq:workers', worker)
  redis.call('UNLINK', worker)
end
redis.call('UNLINK', 'rq:queue:bochner', 'rq:queue:bochner:intermediate', 'rq:workers:bochner')
redis.call('SREM', 'rq:queues', 'rq:queue:bochner')
"""


def adopt_jobs(client: redis.Redis) -> None:
    """Take over the jobs that no worker of 0.1.0 holds, and remove what its queue has left.

    It knew no store but of one place.
    """
    if places_of(client) == ONE:
        client.eval(_ADOPT, 1, QUEUE)
