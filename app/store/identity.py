"""Whether a store is the one that it was: one that comes back empty must not be taken for one that holds nothing yet.

The first service that finds a store without a mark puts one there. Each process remembers the mark that it has seen,
and refuses a store that has none any more, or another, until an operator accepts it (`bochner accept-store`) or puts
back what it held. A store of several places has the same mark in each, as each may be lost alone.
"""

import secrets
from typing import Literal, cast

import redis
from pydantic import BaseModel, ValidationError

from app.store.connection import Client, Known, acknowledge
from app.store.errors import StoreUnavailable, store_errors
from app.store.places import ROOT, inside, places_of

KEY = "bochner:store"


class StoreReplaced(StoreUnavailable):
    """The store is not the one that it was."""


FORMAT = 1
"""Of all that is stored. It rises when earlier versions could not work with what this one writes."""


class Mark(BaseModel):
    """What a store says of itself."""

    format: int = FORMAT
    id: str
    state: Literal["found", "accepted", "restoring"]
    """Whether a service has found the store empty, an operator has accepted it, or a backup is being put back."""


def settle(client: Client) -> None:
    """Mark a store that has no mark, if this process has not seen one; raises what `check` raises of any place.

    Places that are away keep those of others from nobody, unless all are.
    """
    first, *others = places_of(client).roots
    if client.seen is None:
        with store_errors():
            if not client.exists(inside(first, KEY)):
                text: bytes | str = Mark(id=secrets.token_hex(8), state="found").model_dump_json()
                # The first place last: once that has a mark, a place without one has lost it. What two services write
                # at once is the mark of the one that was first in the last place.
                with acknowledge():
                    for root in (*reversed(others), first):
                        client.set(inside(root, KEY), text, nx=True)
                        text = cast(bytes, client.get(inside(root, KEY)))
    away = list[StoreUnavailable]()
    for root in (first, *others):
        try:
            check(client, root)
        except StoreReplaced:
            raise
        except StoreUnavailable as error:
            away.append(error)
    if len(away) > len(others):
        raise away[0]


def check(client: redis.Redis, root: str = ROOT) -> None:
    """Raise StoreReplaced if a place of the store is not of the one that this process has seen.

    StoreUnavailable if it is away.
    """
    with store_errors():
        stored = cast(bytes | None, client.get(inside(root, KEY)))
    compare(client, root, stored)


def compare(client: redis.Redis, root: str, stored: bytes | None) -> None:
    """Raise StoreReplaced if the mark that was read in a place is not the one that this process has seen.

    It is learned in the first place, which gets it last: before, others may be without.
    """
    if not isinstance(client, Known):  # a plain one, which remembers nothing
        return
    mark = None if stored is None else _read(stored)
    if mark is not None and mark.state == "restoring":
        raise StoreReplaced("a backup is being put back into the store")
    if client.seen is None or (mark is not None and mark.state == "accepted"):
        if root == client.places.roots[0]:
            client.seen = None if mark is None else mark.id
        return
    if mark is None or mark.id != client.seen:
        raise StoreReplaced(
            "the store came back without what it held. If nothing is to be put back, an operator accepts it as it is "
            "with `bochner accept-store`"
        )


@acknowledge()
def accept(client: Client) -> None:
    """Let services take a store for theirs, though it is not the one that it was; StoreUnavailable."""
    put(client, Mark(id=secrets.token_hex(8), state="accepted"))


def put(client: Client, mark: Mark) -> None:
    """Give a store a mark; StoreUnavailable."""
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
