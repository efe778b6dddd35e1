"""Identity of a store: a store that comes back without its data must not be mistaken for a new one.

The first service that finds a store without a mark writes one. Each process remembers the mark that it has seen, and
refuses a store without this mark until an operator accepts the store (`bochner accept-store`) or restores its data. A
store of several shards has the same mark in each, as each shard may lose its data alone.
"""

import secrets
import time
from functools import partial
from typing import Annotated, Literal, cast

import redis
from pydantic import BaseModel, Field, ValidationError

from app.store.connection import ROOT, Client, Known, acknowledge, ask_shards, inside, places_of
from app.store.errors import StoreUnavailable, store_errors

KEY = "bochner:store"
# Clocks of two machines may differ by this much.
_SKEW_SECONDS = 60
_CAME_BACK = (
    "the store came back without what it held. If nothing is to be put back, an operator accepts it as it is with "
    "`bochner accept-store`"
)


class StoreReplaced(StoreUnavailable):
    """The store has lost its mark, or has another one than this process has seen."""


FORMAT = 1
"""Version of the whole stored format. Raise it if earlier versions could not work with what this one writes."""


class Mark(BaseModel):
    """Mark that identifies a store."""

    format: int = FORMAT
    id: str
    state: Literal["found", "accepted", "restoring"]
    """Origin: a service found no mark, an operator accepted the store, or a backup is being restored."""
    at: Annotated[float | None, Field(exclude_if=lambda value: value is None)] = None
    """Time in seconds since 1970 when an operator accepted the store, or restored a backup."""


def settle(client: Client) -> None:
    """Write a mark to a store that has none, if this process has seen none; then check the mark of every shard.

    Raises:
        StoreReplaced: as from `check`, in any shard.
        StoreUnavailable: no shard answers. Some silent shards are ignored.
    """
    first, *others = places_of(client).roots
    if client.seen is None:
        with store_errors():
            if not client.exists(inside(first, KEY)):
                if any(client.exists(inside(root, KEY)) for root in others):
                    raise StoreReplaced(_CAME_BACK)
                text: bytes | str = Mark(id=secrets.token_hex(8), state="found").model_dump_json()
                # The first shard is written last: once it has a mark, any shard without one has lost it. If two
                # services write at once, both use the mark of the one that was first in the last shard.
                with acknowledge():
                    for root in (*reversed(others), first):
                        client.set(inside(root, KEY), text, nx=True)
                        text = cast(bytes, client.get(inside(root, KEY)))
    found = [one for roots in ([first], others) for one in ask_shards(roots, partial(check, client))]
    away = [error for error in found if error is not None]
    for error in away:
        if isinstance(error, StoreReplaced) or len(away) > len(others):
            raise error


def check(client: redis.Redis, root: str = ROOT) -> None:
    """Raise StoreReplaced if a shard does not have the mark that this process has seen.

    StoreUnavailable if the shard does not answer.
    """
    with store_errors():
        stored = cast(bytes | None, client.get(inside(root, KEY)))
    compare(client, root, stored)


def compare(client: redis.Redis, root: str, stored: bytes | None) -> None:
    """Raise StoreReplaced if the mark `stored` of a shard is not the one that this process has seen.

    A process learns the mark from the first shard, which is written last: before, other shards may have no mark.
    """
    if not isinstance(client, Known):  # a plain client, which remembers no mark
        return
    mark = None if stored is None else _read(stored)
    if mark is not None and mark.state == "restoring":
        raise StoreReplaced("a backup is being put back into the store")
    now = time.time()
    # A store that was accepted before this process saw its own is another one.
    is_new = mark is not None and mark.state == "accepted" and (mark.at or now) + _SKEW_SECONDS > client.seen_at
    if client.seen is None or is_new:
        if root == client.places.roots[0]:
            client.seen = None if mark is None else mark.id
    elif mark is None or mark.id != client.seen:
        raise StoreReplaced(_CAME_BACK)
    client.seen_at = now


def require_marks(client: Client) -> None:
    """Raise StoreReplaced unless all shards have the same mark, whatever this process has seen before."""
    with store_errors():
        stored = [cast(bytes | None, client.get(inside(root, KEY))) for root in places_of(client).roots]
    if None in stored or len({_read(one).id for one in stored if one is not None}) > 1:
        raise StoreReplaced("no service has used the store yet, or it came back without what it held")
    compare(client, places_of(client).roots[0], stored[0])


@acknowledge()
def accept(client: Client) -> None:
    """Make services accept a store that is not the one they have seen; may raise StoreUnavailable."""
    with store_errors():
        of_store = client.time()[0]  # the clock of the operator's machine may be behind
    put(client, Mark(id=secrets.token_hex(8), state="accepted", at=max(time.time(), of_store)))


def put(client: Client, mark: Mark) -> None:
    """Write a mark to all shards of a store; may raise StoreUnavailable."""
    with store_errors():
        for root in reversed(places_of(client).roots):
            client.set(inside(root, KEY), mark.model_dump_json())


def _read(stored: bytes) -> Mark:
    try:
        mark = Mark.model_validate_json(stored)
    except ValidationError as error:
        raise StoreReplaced("the store has a mark that this version cannot read") from error
    if mark.format > FORMAT:
        raise StoreReplaced(f"the store has format {mark.format}; this version knows formats to {FORMAT}")
    return mark
