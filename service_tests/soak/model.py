"""What a client may expect: what stands under each of its names, and what becomes of its jobs.

The model is the whole truth about one client's names, since nobody else uses them. Where an answer was lost, nobody can
tell whether the request was carried out: a name may then stand for one of several things, until it is looked at.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


class Wrong(Exception):
    """The service has lost, changed, resurrected or repeated something."""


@dataclass
class Name:
    """A name, and what it may stand for: keys of `Truth`, None for nothing."""

    may: set[str | None] = field(default_factory=lambda: {None})
    building: bool = False
    """Whether a job may still be at work on what it stands for."""
    job: "Job | None" = None
    """That job, if the client knows it."""

    @property
    def known(self) -> bool:
        """Whether it can stand for one thing only."""
        return len(self.may) == 1

    @property
    def value(self) -> str | None:
        """The one thing that it stands for."""
        (one,) = self.may
        return one

    def is_now(self, value: str | None, job: "Job | None" = None) -> None:
        """From now on the name stands for this, which the job builds, if there is one."""
        self.may, self.job, self.building = {value}, job, job is not None

    def perhaps(self, value: str | None, building: bool = False) -> None:
        """A request whose answer was lost may have made it so."""
        self.may.add(value)
        self.building |= building

    def seen(self, value: str | None, building: bool = False) -> None:
        """The service says that the name stands for this."""
        if value not in self.may:
            raise Wrong(f"it stands for {value}, and can only stand for {self.may}")
        if building and not self.building:
            raise Wrong(f"{value} is being built, though it was ready, or was never left to a job")
        self.may, self.building, self.job = {value}, building, self.job if building else None


@dataclass
class Job:
    """A job that was answered with 202."""

    link: str
    disturbances: int
    """How many there had been when it was submitted."""
    cancelled: bool | None = False
    """Whether it was told to end; None where an answer was lost, or its map was deleted."""
    record: dict[str, Any] | None = None
    """Its record once it has ended, after which nothing changes it."""

    def seen(self, record: dict[str, Any]) -> None:
        """The service says this of the job."""
        if self.record is not None and record != self.record:
            raise Wrong(f"{self.link} has ended as {self.record}, and is now {record}")
        if record["ended_at"] is None or self.record is not None:
            return
        state = record["state"]
        if state == "failed" or self.cancelled not in (None, state == "cancelled"):
            raise Wrong(f"{self.link} has {state}, told to end or not ({self.cancelled}): {record}")
        self.record = record


class Model:
    """One client's names of maps, its index and its jobs."""

    def __init__(self, prefix: str, count: int) -> None:
        self.prefix = prefix
        self.maps = {f"{prefix}-{i}": Name() for i in range(count)}
        self.index = Name()
        """That of the index of its own."""
        self.vectors = {f"{prefix}/{i}": Name() for i in range(2 * count)}
        """Ids in this index, which stand for the tags of their vectors."""
        self.alias = Name()
        """That of its alias, which stands for names of maps."""
        self.held: set[str] = set()
        """Maps that a lost request may have reserved for the alias, for a minute."""
        self.jobs: list[Job] = []

    def listed(self, names: Iterable[str]) -> None:
        """The service says that these are all maps of the client."""
        there = set(names)
        for name, stands in self.maps.items():
            if stands.known and (name in there) != (stands.value is not None):
                raise Wrong(f"map {name} is {'' if name in there else 'not '}listed; it stands for {stands.value}")
        if strange := there - self.maps.keys():
            raise Wrong(f"maps {strange} were never made")
