"""A client of the service, and how it checks what it is answered against its model."""

import time
from dataclasses import dataclass
from random import Random
from typing import Any

import httpx

from service_tests.soak.disturbances import Deployment
from service_tests.soak.model import Job, Model, Name, Wrong
from service_tests.soak.truth import Truth

NAMES = 6
"""Of maps, for each client."""
MOST_WAITING = 3
"""Jobs that a client leaves to the service at once, so that its work adapts to the machine."""
AWAY = 503
REFUSED = (429, 507)
"""The service says that it did not do it: too many jobs wait, or the disk is full."""


@dataclass
class Disturbances:
    """How many have begun, and how many have ended, so far."""

    begun: int = 0
    ended: int = 0


class Client:
    """One client. It asks any of the replicas at each request, and checks each answer against its model.

    Args:
        number: its own.
        deployment: what it asks, and whose jobs note when they were worked to their end.
        truth: what everything gives.
        disturbances: how many there were.
        chance: decides what it does.
    """

    def __init__(
        self,
        number: int,
        deployment: Deployment,
        truth: Truth,
        disturbances: Disturbances,
        chance: Random,
    ) -> None:
        self.model = Model(f"client{number}", NAMES)
        self.chance, self.answers, self.away = chance, 0, 0
        self.truth, self.done, self.disturbances = truth, deployment.done, disturbances
        self._replicas = [httpx.Client(base_url=url, timeout=60, verify=False) for url in deployment.urls]

    def close(self) -> None:
        """Close its connections."""
        for replica in self._replicas:
            replica.close()

    def ask(self, method: str, path: str, wanted: tuple[int, ...], **options: Any) -> httpx.Response | None:
        """An answer with a status that is wanted; None if the service was away: nobody knows what it has done."""
        replica = self.chance.choice(self._replicas)
        try:
            answer = replica.request(method, path, **options)
        except httpx.TransportError:
            answer = None
        if answer is None or answer.status_code == AWAY:
            self.away += 1
            return None
        self.answers += 1
        if answer.status_code not in wanted:
            raise Wrong(f"{method} {path} is answered {answer.status_code}, not {wanted}: {answer.text[:300]}")
        return answer

    def follow(self, job: Job) -> None:
        """Look at a job, and at how often it was done."""
        answer = self.ask("GET", job.link, (200,))
        if answer is None:
            return
        job.seen(answer.json())
        if job.record is None:
            return
        times = self.done.read_text().split().count(job.record["id"]) if self.done.exists() else 0
        disturbances = self.disturbances.begun - job.disturbances
        if times > 1 + disturbances:
            raise Wrong(f"{job.link} was done {times} times in {disturbances} disturbances")

    def follow_all(self) -> None:
        """Look at every job."""
        for job in self.model.jobs:
            self.follow(job)

    def settle(self) -> None:
        """Look at everything, with nobody disturbing: nothing may be unknown then, and no job may be left."""
        for name, stands in self.model.maps.items():
            if not self.look_at_map(name, stands):
                raise Wrong(f"{name} cannot be looked at")
        if not self.look_at_alias():
            raise Wrong(f"the alias of {self.model.prefix} cannot be looked at")

    def delete_all(self) -> None:
        """Delete whatever is there."""
        self.delete(self.alias_path, self.model.alias)
        for name, stands in self.model.maps.items():
            while name in self.model.held:  # for a minute at most
                answer = self.ask("DELETE", f"/v1/maps/{name}", (204, 404, 409))
                if answer is not None and answer.status_code != 409:
                    self.model.held.remove(name)
                    stands.is_now(None)
                time.sleep(0.5)
            self.delete(f"/v1/maps/{name}", stands)

    def settled(self) -> tuple[str, Name]:
        """Any name; what it stands for is looked at first, where that is not known."""
        name, stands = self.chance.choice(list(self.model.maps.items()))
        if not stands.known:
            self.look_at_map(name, stands)
        return name, stands

    def delete(self, path: str, stands: Name) -> None:
        """Delete what stands under a name, if that is known."""
        if not stands.known:
            return
        answer = self.ask("DELETE", path, (204 if stands.value is not None else 404, *REFUSED))
        if answer is not None and answer.status_code in REFUSED:
            return
        if stands.job is not None:
            stands.job.cancelled = None
        if answer is None:
            stands.perhaps(None)
        else:
            stands.is_now(None)

    def look_at_map(self, name: str, stands: Name) -> bool:
        """See what a map's name stands for; False where nobody answers."""
        answer = self.ask("GET", f"/v1/maps/{name}", (200, 404))
        if answer is None:
            return False
        if answer.status_code == 404:
            stands.seen(None)
            return True
        record = answer.json()
        spec = next((key for key, known in self.truth.items() if known.spec == record["spec"]), "another spec")
        if record["status"] == "failed":
            raise Wrong(f"{name} has failed: {record['error']}")
        building = record["status"] == "building"
        stands.seen(spec, building)
        if building and stands.job is None:  # the answer that named it was lost
            stands.job = self.submitted(record["job"])
        if not building:
            self.check_map(spec, record)
        return True

    @property
    def alias_path(self) -> str:
        """Address of its alias."""
        return f"/v1/aliases/{self.model.prefix}"

    def look_at_alias(self) -> bool:
        """See what the alias stands for; False where nobody answers."""
        answer = self.ask("GET", f"/v1/maps/{self.model.prefix}", (200, 404))
        if answer is not None:
            self.model.alias.seen(answer.json()["name"] if answer.status_code == 200 else None)
        return answer is not None

    def check_map(self, spec: str, record: dict[str, Any]) -> None:
        """Raise Wrong unless a record is that of a spec."""
        self.same((record["spec"], record["digest"]), self.truth[spec][:2], spec)

    def submitted(self, link: str) -> Job:
        """A job that was submitted just now."""
        self.model.jobs.append(Job(link, self.disturbances.ended))
        return self.model.jobs[-1]

    @property
    def waits(self) -> bool:
        """Whether it must see a job end before it leaves another."""
        return sum(job.record is None for job in self.model.jobs) >= MOST_WAITING

    def job(self, ended: bool) -> Job | None:
        """One that has ended as far as this client knows, or one that has not; None if there is none."""
        jobs = [job for job in self.model.jobs if (job.record is not None) == ended]
        return self.chance.choice(jobs) if jobs else None

    @staticmethod
    def same(given: object, wanted: object, what: str) -> None:
        """Raise Wrong unless an answer is what is wanted."""
        if given != wanted:
            raise Wrong(f"{what}: {str(given)[:200]} is not {str(wanted)[:200]}")
