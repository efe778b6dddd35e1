"""Two services on one store, killed with it under upserts: what was acknowledged is found by both, a batch whole."""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx
import numpy as np
import pytest
import redis

from service_tests.api.routes.indexing import GMM
from service_tests.cases import few_and_many
from service_tests.checks import keys, put
from service_tests.running import service, start, stop
from service_tests.test_faults import kill_service, store_pid

PATH = "/v1/indexes/i"
BATCH = 300
ROWS = np.random.default_rng(3).uniform(0.1, 2, (BATCH, 5)).tolist()


def upserted(http: httpx.Client, batch: int) -> None:
    """Put a batch, whose tag is its number: half of its ids are new, the others were in the batch before."""
    ids = [f"{(batch - i % 2) // 2 * 2 + 1 - i % 2}-{i}" for i in range(BATCH)]
    answer = http.post(f"{PATH}/vectors", json={"ids": ids, "vectors": ROWS, "tags": [str(batch)] * BATCH})
    answer.raise_for_status()


def of_batch(http: httpx.Client, batch: int) -> int:
    """How many vectors of an index are of a batch."""
    answer = http.post(f"{PATH}/search", json={"vectors": ROWS[:1], "k": 1000, "tag": str(batch)})
    return len(answer.raise_for_status().json()["results"][0]["ids"])


def write(http: httpx.Client, first: int, acknowledged: list[int]) -> None:
    """Put one batch after the other until the service is gone."""
    with suppress(httpx.HTTPError):
        for batch in range(first, first + 1000):
            upserted(http, batch)
            acknowledged.append(batch)


@pytest.mark.gate
@pytest.mark.parametrize("deaths", few_and_many(2, 20))
def test_nothing_acknowledged_is_lost_and_no_batch_is_torn(tmp_path: Path, deaths: int) -> None:
    running = start(tmp_path / "data")
    with running.client() as http:
        assert put(http, "m", {**GMM, "s": 32}).status_code == 201
        assert http.put(PATH, json={"map": "m", "bands": 8, "rows_per_band": 1}).status_code == 201
        acknowledged: list[int] = []
        with service(tmp_path / "other", "--redis-url", running.socket) as other, other.client() as beside:
            for death in range(deaths):
                first = 2 * (acknowledged[-1] // 2) + 4 if acknowledged else 0
                with running.client() as sending:
                    writer = threading.Thread(target=write, args=(sending, first, acknowledged))
                    writer.start()
                    seen, wanted = 0, len(acknowledged) + 5 + 3 * death
                    while len(acknowledged) < wanted:
                        if acknowledged and acknowledged[-1] != seen:
                            # It is found elsewhere from now on; half of it until the next batch replaces that.
                            seen = acknowledged[-1]
                            assert of_batch(beside, seen) in (BATCH, BATCH // 2)
                        time.sleep(0.002)
                    pid = store_pid(running)
                    kill_service(running)
                    os.kill(pid, signal.SIGKILL)
                    writer.join()
                running = start(tmp_path / "data")
                with running.client() as again:
                    last = acknowledged[-1]
                    for reader in (again, beside):
                        found = [of_batch(reader, batch) for batch in (last - 1, last, last + 1)]
                        assert found[0] in (0, BATCH // 2), found
                        assert (found[1], found[2]) in ((BATCH, 0), (BATCH // 2, BATCH)), found
                    size = again.get(PATH).json()["size"]
                    assert size % (BATCH // 2) == 0
    with running.client() as http, redis.Redis.from_url(running.socket) as store:
        assert http.delete(PATH).status_code == 204
        assert http.delete("/v1/maps/m").status_code == 204
        assert not [key for key in keys(store) if b"{index:" in key or b"{map:" in key]
    stop(running)
