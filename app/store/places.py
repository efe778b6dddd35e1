"""Shards of a store: one script changes keys of one shard, atomically.

A store of one server is one shard, whose keys begin with `bochner:`. A cluster changes keys atomically only within one
of its 16384 slots. There the service keeps sixteen shards, each in a slot of its own, chosen by the hash tag at the
start of its keys, `bochner:{p1}:`. Each shard has all that a store of one server has: lists of names, a job queue, an
account. The name of a map or a dataset determines its shard; a job lies in the shard of the map that it builds. So each
script finds all keys that it changes in one shard; only sums and lists of the whole store combine all shards.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple
from zlib import crc32

ROOT = "bochner:"
"""Prefix of every key of the service."""
N = 16
# Each tag hashes to a slot in or near the middle of a sixteenth of all slots, so that nodes have equal shares of the
# shards. Never change a tag: the keys under the old one would not be found.
TAGS = (
    *("p64", "p126", "p19", "p3", "p65", "p127", "p18", "p2"),
    *("p66", "p48", "p160", "p1", "p67", "p49", "p161", "p0"),
)


class Places(NamedTuple):
    """Shards of a store, by the prefixes of their keys (roots)."""

    roots: tuple[str, ...]

    def of(self, name: str) -> str:
        """Return the root of the shard of the thing `name`."""
        return self.roots[_number(name) % len(self.roots)]

    def of_job(self, job_id: str) -> str:
        """Return the root of the shard of a job; any root for an invalid id."""
        number = int(job_id[-1], N) if job_id[-1:] in _DIGITS else 0
        return self.roots[number % len(self.roots)]


ONE = Places((ROOT,))
MANY = Places(tuple(f"{ROOT}{{{tag}}}:" for tag in TAGS))


def places_of(client: Any) -> Places:
    """Return the shards of the store of a client."""
    found: Places = getattr(client, "places", ONE)
    return found


def root_of(key: str) -> str:
    """Return the root of the shard of a key."""
    found = _START.match(key)
    return ROOT if found is None else found[0]


def by_root(keys: Iterable[str]) -> dict[str, list[str]]:
    """Return keys grouped by the roots of their shards."""
    found: dict[str, list[str]] = {}
    for key in keys:
        found.setdefault(root_of(key), []).append(key)
    return found


def inside(root: str, key: str) -> str:
    """Return the name that a key has in a shard, given its name in a store of one shard."""
    return root + key.removeprefix(ROOT)


def digit(name: str) -> str:
    """Return the last digit of the ids of jobs in the shard of the thing `name`."""
    return f"{_number(name):x}"


_START = re.compile(r"bochner:\{\w+\}:")
_DIGITS = frozenset("0123456789abcdef")


def _number(name: str) -> int:
    return crc32(name.encode()) % N
