"""What must not grow however long a service runs: its memory."""

import http.client
import itertools

import numpy as np
import psutil

from service_tests.soak import truth


def growth(port: int, process: psutil.Process, requests: int) -> float:
    """Bytes a request by which the memory of a replica grows: the median of the slopes between any two moments."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    seen = []
    for i in range(requests):
        if i > requests // 5 and i % (requests // 25) == 0:  # the first requests fill what is kept ready
            seen.append((i, process.memory_full_info().uss))
        path = (f"/v1/maps/{truth.STANDING}", "/v1/maps/none", "/v1/info")[i % 3]
        connection.request("GET", path)
        connection.getresponse().read()
    connection.close()
    return float(np.median([(b - a) / (j - i) for (i, a), (j, b) in itertools.combinations(seen, 2)]))
