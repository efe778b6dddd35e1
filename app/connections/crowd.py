"""How many connections there are, and which of them makes room for one more."""

import resource
from collections.abc import Collection
from typing import Any, Protocol

# Files of a process that are no connections to clients.
_OTHER_FILES = 128
# Connections that may take their time to leave. More are ended at once.
_MOST_LEAVING = 64


class Member(Protocol):
    """A connection."""

    transport: Any
    has_asked: bool
    """Whether a request has come on it."""
    waits_since: float
    """The moment from which on it waits for its client; infinity while it does not."""
    is_leaving: bool
    """Whether it is at its end, and counts no more."""


def most_connections(wanted: int) -> int:
    """So many connections as are wanted, if the process may open enough files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if files == resource.RLIM_INFINITY else max(1, min(wanted, files - _OTHER_FILES))


def make_room(others: Collection[Member], most: int, now: float) -> bool:
    """End the connection that has waited longest for its client, if there are `most` of them; False if none waits.

    Those on which no request has come go first. So who opens connections and says nothing keeps nobody out.
    """
    leaving = [one for one in others if one.is_leaving]
    if len(leaving) > _MOST_LEAVING:
        min(leaving, key=lambda one: one.waits_since).transport.abort()
    if len(others) - len(leaving) < most:
        return True
    waiting = [one for one in others if not one.is_leaving and one.waits_since <= now]
    if not waiting:
        return False
    longest = min(waiting, key=lambda one: (one.has_asked, one.waits_since))
    longest.is_leaving = True
    longest.transport.abort()
    return True
