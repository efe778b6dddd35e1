"""Clients that do whatever comes to their minds, while the service is disturbed: see `docs/explanation/faults.md`.

`python -m service_tests.soak.runner --steps 20000 --seed 3` runs it for as long as one likes, and prints figures.
"""

import argparse
import http.client
import itertools
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx
import numpy as np
import psutil

from app.store.connection import connect
from service_tests.servers import replicas_to_write, until
from service_tests.soak import truth
from service_tests.soak.actions import act, delete_index, list_maps, settle_index
from service_tests.soak.client import Client, Disturbances
from service_tests.soak.disturbances import ALL, Deployment
from service_tests.soak.leftovers import check_leftovers
from service_tests.soak.model import Wrong


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


PROGRAM = "service_tests.soak.program"
CLIENTS = 4
STEPS_IN_A_ROUND = 25
"""Of each client, while one disturbance comes and goes."""
STUCK_SECONDS = 120
LEAST_LEAK = 512
"""Bytes a request by which memory may seem to grow."""


@dataclass
class Figures:
    """What a soak has seen."""

    seed: int
    steps: Counter[str] = field(default_factory=Counter)
    disturbances: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    away: int = 0
    """Requests that nobody answered, or with 503."""
    ready: dict[str, list[float]] = field(default_factory=dict)
    """Seconds from the first answer of the store to the readiness of all replicas, after each disturbance of a name."""


class Soak:
    """A deployment and its clients.

    Args:
        home: a new directory.
        seed: decides what clients do and which disturbances come; not what happens at the same time.
        fault: one of `FAULTS`; none if it is empty.
    """

    def __init__(self, home: Path, seed: int, fault: str = "") -> None:
        self.figures = Figures(seed)
        self.deployment = Deployment(home, (PROGRAM, fault) if fault else (PROGRAM,))
        self._chance = Random(seed)
        self._disturbed = Disturbances()
        self.clients: list[Client] = []

    def begin(self) -> None:
        """Start everything, and learn what it gives."""
        self.deployment.start()
        self.deployment.wait_until_ready()
        with httpx.Client(base_url=self.deployment.urls[0], timeout=60, verify=False) as http:
            known = truth.learned(http)
        for number in range(CLIENTS):
            chance = Random(f"{self.figures.seed} {number}")
            self.clients.append(Client(number, self.deployment, known, self._disturbed, chance))

    def run(self, steps: int, disturbances: Sequence[str], in_a_round: int) -> None:
        """Let the clients make so many steps in all, with disturbances; raises Wrong where the service is."""
        order: Iterator[str] = iter(())
        for _ in range(-(-steps // (CLIENTS * in_a_round))):
            name = next(order, None)
            if name is None and disturbances:
                order = iter(self._chance.sample(disturbances, len(disturbances)))
                name = next(order)
            with self._working(in_a_round) as rounds:
                if name is not None:
                    self.disturb(name, lambda: any(one.done() and one.exception() for one in rounds))

    def disturb(self, name: str, found: Callable[[], bool] = lambda: False) -> None:
        """Disturb the service, and wait until it has recovered, or until a client has found something wrong."""
        time.sleep(self._chance.uniform(0, 0.5))
        self._disturbed.begun += 1
        self.figures.disturbances[name] += 1
        ALL[name](self.deployment, self._chance)
        ready = self.deployment.wait_until_ready(found)
        self._disturbed.ended += 1
        self.figures.ready.setdefault(name, []).append(round(ready, 2))

    @contextmanager
    def _working(self, steps: int) -> Iterator["list[Future[None]]"]:
        """All clients make some steps; what they find wrong is raised at the end."""
        with ThreadPoolExecutor(len(self.clients)) as pool:
            rounds = [pool.submit(self._round, client, steps) for client in self.clients]
            yield rounds
        for one in rounds:
            one.result()

    def _round(self, client: Client, steps: int) -> None:
        """Steps of one client; those that nobody answers do not count."""
        deadline, left = time.monotonic() + STUCK_SECONDS, steps
        while left:
            answers, away = client.answers, client.away
            action = act(client)
            if client.answers > answers:
                left -= 1
                self.figures.steps[action] += 1
                deadline = time.monotonic() + STUCK_SECONDS
            elif time.monotonic() > deadline:
                raise Wrong(f"nobody answers {client.model.prefix}")
            elif client.away > away:
                time.sleep(0.05)

    def end(self) -> None:
        """With nobody disturbing, look at everything, wait for the ends of all jobs, and delete what is left."""
        until(lambda: replicas_to_write(self.deployment.store) == "0")  # not for a moment after its disk was full
        for client in self.clients:
            client.settle()
            deadline, before = time.monotonic() + STUCK_SECONDS, len(client.model.jobs)
            while waiting := [job for job in client.model.jobs if job.record is None]:
                if len(waiting) < before:  # a busy machine may have left many
                    deadline, before = time.monotonic() + STUCK_SECONDS, len(waiting)
                if time.monotonic() > deadline:
                    raise Wrong(f"these jobs do not end: {waiting}")
                client.follow_all()
            client.settle()
            settle_index(client)
            list_maps(client)
            delete_index(client)
            client.delete_all()
            self.figures.answers += client.answers
            self.figures.away += client.away
        with connect(self.deployment.store, 5) as store:
            check_leftovers(store)

    def measure_growth(self, requests: int) -> None:
        """Send many small requests to each replica; raises Wrong if its memory grows with their number."""
        for port, process in self.deployment.replicas():
            grown = growth(port, process, requests)
            if grown > LEAST_LEAK:
                raise Wrong(f"each request leaves {grown:.0f} bytes in memory")

    def close(self) -> None:
        """End everything."""
        for client in self.clients:
            client.close()
        self.deployment.close()


def soaked(home: Path, seed: int, steps: int, disturbances: Sequence[str], in_a_round: int, requests: int) -> Figures:
    """The figures of a whole soak; raises Wrong where the service is."""
    with closing(Soak(home, seed)) as soak:
        soak.begin()
        soak.run(steps, disturbances, in_a_round)
        soak.end()
        if requests:
            soak.measure_growth(requests)
    return soak.figures


def main() -> None:
    """Run the soak from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--disturbances", default=",".join(ALL), help="Which, divided by commas. [%(default)s]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as home:
        names = options.disturbances.split(",")
        figures = soaked(Path(home), options.seed, options.steps, names, STEPS_IN_A_ROUND, 10_000)
    sys.stdout.write(json.dumps(vars(figures), indent=1) + "\n")


if __name__ == "__main__":
    main()
