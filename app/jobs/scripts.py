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
from app.store import lua
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

# Bucket bounds of the histograms of jobs' durations, in seconds.
SECONDS = (0.1, 1, 5, 15, 60, 300, 900, 3600, 14400)

_LEASE_MILLISECONDS = int(1000 * LEASE_SECONDS)
_SHARED = LUA + lua.read(
    "jobs/shared", GROUP=GROUP, CONSUMER=CONSUMER, FORMAT=FORMAT, LEASE_MILLISECONDS=_LEASE_MILLISECONDS, BOUNDS=SECONDS
)
TEND = lua.read("jobs/tend", GROUP=GROUP, CONSUMER=CONSUMER)


def key(job_id: str, part: str, places: Places = ONE) -> str:
    """Return the key of a part of a job, in a store with the given shards."""
    return f"{places.of_job(job_id)}{{job:{job_id}}}:{part}"


_SCRIPTS = {
    name: lua.read(f"jobs/{name}")
    for name in (
        "submit",
        "claim",
        "renew",
        "progress",
        "announce",
        "checkpoint",
        "discard",
        "end",
        "cancel",
        "release",
    )
}


def run(client: redis.Redis, name: str, job_id: str, *args: Any, keys: Sequence[str] = ()) -> Any:
    """Run the script `name` on one job; may raise StoreUnavailable."""
    places = places_of(client)
    lists = (inside(places.of_job(job_id), one) for one in (INDEX, QUEUE, ENDED))
    every = [key(job_id, "record", places), *lists, *keys]
    with store_errors():
        return client.register_script(_SHARED + _SCRIPTS[name])(keys=every, args=[job_id, *args])
