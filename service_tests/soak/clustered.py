"""The same replicas and worker on a cluster of three primaries with a replica each."""

import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import psutil

from service_tests.clusters import Cluster
from service_tests.soak.deployment import Deployment


class ClusteredDeployment(Deployment):
    """A deployment whose store is a cluster. Its disk is left alone, and nothing is lost between it and the service."""

    def __init__(self, home: Path, program: Sequence[str], *options: str, job_ttl: int = 86400) -> None:
        self.cluster = Cluster(home / "cluster")
        self._which, self._chance = 0, Random(1)
        confirmed = ("--store-replicas", "1", "--store-timeout", "5")
        super().__init__(home, program, *options, job_ttl=job_ttl, of_store=confirmed)

    def kill_store(self) -> None:
        """SIGKILL of a primary, which comes back before its replica has taken its place, or after that."""
        primaries = self.cluster.primaries()
        self._which += 1
        killed = primaries[self._which % len(primaries)]
        killed.kill()
        time.sleep(self._chance.choice([0, 0, 4]))
        killed.start()

    def server(self) -> psutil.Process | None:
        """No process alone is the store."""
        return None

    def close(self) -> None:
        """End everything."""
        super().close()
        self.cluster.close()

    def _store(self) -> str:
        return self.cluster.url

    def _reaching(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return ("--redis-url", self.store), ("--redis-url", self.store)

    def _answers(self) -> bool:
        return self.cluster.is_settled()
