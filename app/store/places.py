"""The places of a store: what lies in one is changed at once, by one script.

A store of one server is one place, whose keys begin with `bochner:`. A cluster changes at once only what lies in one
of its 16384 slots. There the service keeps sixteen places, each in a slot of its own by the tag that its keys begin
with, `bochner:{p1}:`. Each has everything that a store of one server has: lists of names, a queue of jobs, an account.
The name of a map or a dataset decides where it lies, and a job lies with the map that it builds. So each script finds
all that it changes in its place; only sums and lists of the whole store are put together from all places.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple
from zlib import crc32

ROOT = "bochner:"
"""What every key of the service begins with."""
N = 16
# In the middle of each sixteenth of all slots, or near it, so that nodes have the same share of places. Frozen: another
# tag is another place, where nothing is found.
TAGS = (
    *("p64", "p126", "p19", "p3", "p65", "p127", "p18", "p2"),
    *("p66", "p48", "p160", "p1", "p67", "p49", "p161", "p0"),
)


class Places(NamedTuple):
    """The places of a store, by what their keys begin with."""

    roots: tuple[str, ...]

    def of(self, name: str) -> str:
        """The root of the place of a thing."""
        return self.roots[_number(name) % len(self.roots)]

    def of_job(self, job_id: str) -> str:
        """The root of the place of a job; of an id that no job has, any."""
        number = int(job_id[-1], N) if job_id[-1:] in _DIGITS else 0
        return self.roots[number % len(self.roots)]


ONE = Places((ROOT,))
MANY = Places(tuple(f"{ROOT}{{{tag}}}:" for tag in TAGS))


def places_of(client: Any) -> Places:
    """The places of the store of a client."""
    found: Places = getattr(client, "places", ONE)
    return found


def root_of(key: str) -> str:
    """The root of the place of a key."""
    found = _START.match(key)
    return ROOT if found is None else found[0]


def by_root(keys: Iterable[str]) -> dict[str, list[str]]:
    """Keys by the roots of their places."""
    found: dict[str, list[str]] = {}
    for key in keys:
        found.setdefault(root_of(key), []).append(key)
    return found


def inside(root: str, key: str) -> str:
    """A key as it is called in a place, by how it is called in a store that is one place."""
    return root + key.removeprefix(ROOT)


def digit(name: str) -> str:
    """The last digit of the ids of jobs that lie in the place of a thing."""
    return f"{_number(name):x}"


_START = re.compile(r"bochner:\{\w+\}:")
_DIGITS = frozenset("0123456789abcdef")


def _number(name: str) -> int:
    return crc32(name.encode()) % N
