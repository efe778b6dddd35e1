"""Counts of all jobs that the store has had, kept there by the scripts that change them.

So they are the same for every service on one store, and nobody who dies takes them along.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

import redis

from app.jobs.prelude import GROUP, QUEUE, SECONDS, TALLY
from app.store.errors import store_errors
from app.store.places import inside, places_of


class Seconds(NamedTuple):
    """How long jobs of one kind took: how many each number of seconds at most, and all together."""

    buckets: list[tuple[str, int]]
    """Counts up to a bound, each with those of smaller bounds in it; the last bound is `+Inf`."""
    total: float


class Tally(NamedTuple):
    """Counts of jobs."""

    queued: int
    running: int
    ended: dict[tuple[str, str], int]
    """By kind and state."""
    ran: dict[str, Seconds]
    """By kind."""
    waited: dict[str, Seconds]
    """By kind."""


def tally(client: redis.Redis) -> Tally:
    """The counts as they are now; StoreUnavailable."""
    roots = places_of(client).roots
    found = [_queue(client, root) for root in roots]
    there, running = (sum(each) for each in zip(*found, strict=True))
    counts = Counter[str]()
    for root in roots:
        with store_errors():
            stored = cast("dict[bytes, bytes]", client.hgetall(inside(root, TALLY)))
        counts.update({field.decode(): int(count) for field, count in stored.items()})
    ended = {}
    for field, count in counts.items():
        what, state, *kind = field.split(" ")
        if what == "ended":
            ended[kind[0], state] = count
    return Tally(there - running, running, ended, _seconds(counts, "ran"), _seconds(counts, "waited"))


def waiting(client: redis.Redis, roots: Iterable[str]) -> int:
    """How many jobs wait in places of a store; StoreUnavailable."""
    return sum(there - running for there, running in (_queue(client, root) for root in roots))


def _queue(client: redis.Redis, root: str) -> tuple[int, int]:
    """How many jobs wait or run in a place, and how many run."""
    queue = inside(root, QUEUE)
    with store_errors():
        there = client.xlen(queue)
        running = cast("dict[str, int]", client.xpending(queue, GROUP))["pending"] if there else 0
    return there, running


def _seconds(counts: Mapping[str, int], of: str) -> dict[str, Seconds]:
    """From fields such as `ran le 0.1 build` and `ran milliseconds build`."""
    totals, buckets = {}, defaultdict[str, dict[str, int]](dict)
    for field, count in counts.items():
        what, *rest = field.split(" ")
        if what == of and rest[0] == "le":
            buckets[rest[2]][rest[1]] = count
        elif what == of:
            totals[rest[1]] = count / 1000
    return {kind: Seconds(_cumulated(buckets[kind]), total) for kind, total in totals.items()}


def _cumulated(buckets: dict[str, int]) -> list[tuple[str, int]]:
    found, so_far = [], 0
    for bound in (*map(str, SECONDS), "Inf"):
        so_far += buckets.get(bound, 0)
        found.append((bound if bound != "Inf" else "+Inf", so_far))
    return found
