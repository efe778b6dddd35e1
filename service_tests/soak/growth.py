"""What must not grow however long a service runs: its memory, its descriptors and the keys of its store."""

import http.client
import itertools
from collections.abc import Sequence

import numpy as np
import psutil
import redis

from service_tests.soak import truth
from service_tests.soak.deployment import Deployment
from service_tests.soak.model import Wrong

SETTLED_MINUTES = 6
"""So long after the first things were deleted, what is kept of them for a time has begun to go: receipts, for 300 s."""
MOST_GROWTH = 30 << 20
MOST_KEYS = 1.5
"""Times as many as in the first minute that has settled."""
MOST_DESCRIPTORS = 20
"""More than in the first minute."""


def minute(deployment: Deployment) -> dict[str, int]:
    """Bytes and descriptors of the replicas' processes, the largest, and keys of the store."""
    processes = [process for replica in deployment.replicas() for process in replica]
    with redis.Redis.from_url(deployment.store) as store:
        keys = store.dbsize()
    nbytes = max(one.memory_full_info().uss for one in processes)
    return {"bytes": nbytes, "descriptors": max(one.num_fds() for one in processes), "keys": keys}


def check_flat(minutes: Sequence[dict[str, int]]) -> None:
    """Raise Wrong unless memory and descriptors stay as in the first minute, and keys as once they have settled."""
    first, last = minutes[0], minutes[-1]
    if last["bytes"] > first["bytes"] + MOST_GROWTH or last["descriptors"] > first["descriptors"] + MOST_DESCRIPTORS:
        raise Wrong(f"what was {first} in the first minute is {last} at the end")
    settled = [one["keys"] for one in minutes[SETTLED_MINUTES:]]
    if settled and settled[-1] > MOST_KEYS * settled[0]:
        raise Wrong(f"the store had {settled[0]} keys when it had settled, and has {settled[-1]}")


def growth(port: int, key: str, processes: Sequence[psutil.Process], requests: int) -> float:
    """Bytes a request by which the memory of a replica grows: the median of the slopes between any two moments."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    seen = []
    for i in range(requests):
        if i > requests // 5 and i % (requests // 25) == 0:  # the first requests fill what is kept ready
            seen.append((i, sum(process.memory_full_info().uss for process in processes)))
        path = (f"/v1/maps/{truth.STANDING}", "/v1/maps/none", "/v1/info")[i % 3]
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        connection.getresponse().read()
    connection.close()
    return float(np.median([(b - a) / (j - i) for (i, a), (j, b) in itertools.combinations(seen, 2)]))
