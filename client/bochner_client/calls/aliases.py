"""Calls for aliases: put, read, list, delete."""

from bochner_client.exchange import paged
from bochner_client.pages import AliasPage
from bochner_client.records import AliasRecord
from bochner_client.requests import (
    Request,
    Stream,
    address,
    as_json,
    as_nothing,
    preconditions,
    tagged,
    unless_known,
    written_json,
)


def put_alias(
    name: str,
    *,
    map: str | None = None,  # noqa: A002 - as the contract has it
    index: str | None = None,
    if_match: str | None = None,
    only_new: bool = False,
) -> Request[AliasRecord]:
    """Make a name stand for a map or an index, wherever that is named. If it stands for another one, move it at once.

    What it stands for is neither deleted nor expires.

    Args:
        name: name of the alias.
        map: name of the map that it is to stand for.
        index: name of the index that it is to stand for, in place of a map.
        if_match: digest that an existing alias must have.
        only_new: whether to fail if the alias exists.

    Returns:
        The record of the alias.

    Raises:
        MapExists, IndexExists: the name is that of a map or an index.
        PreconditionFailed: the condition of `if_match` or `only_new` is not met.
    """
    wanted = {"map": map, "index": index}
    return Request(
        method="PUT",
        path=address("v1", "aliases", name),
        headers=preconditions(if_match, only_new),
        body=written_json({kind: one for kind, one in wanted.items() if one is not None}),
        reads=as_json(AliasRecord.read, 200, 201),
        repeatable=if_match is None and not only_new,  # a repetition would find what the first request made
    )


def get_alias(name: str, *, if_none_match: str | None = None) -> Request[AliasRecord]:
    """Return the record of an alias; NotModified if it still has the digest `if_none_match`."""
    return Request(
        method="GET",
        path=address("v1", "aliases", name),
        headers=tagged("If-None-Match", if_none_match),
        reads=unless_known(as_json(AliasRecord.read)),
    )


def list_aliases(prefix: str = "", *, limit: int = 100, cursor: str | None = None) -> Request[AliasPage]:
    """Return one page of the aliases whose names begin with `prefix`, in order of their names.

    Args:
        prefix: beginning of the names.
        limit: most aliases on the page.
        cursor: `next` of the previous page; None for the first page.
    """
    return Request(
        method="GET",
        path="/v1/aliases",
        params={"prefix": prefix, "limit": limit, "cursor": cursor},
        reads=as_json(AliasPage.read),
    )


def iter_aliases(prefix: str = "") -> Stream[AliasRecord]:
    """Iterate over all aliases whose names begin with `prefix`, in order of their names."""
    return paged(lambda cursor: list_aliases(prefix, cursor=cursor), lambda page: page.aliases)


def delete_alias(name: str, *, if_match: str | None = None) -> Request[None]:
    """Delete an alias; what it stands for stays. PreconditionFailed if it has another digest than `if_match`."""
    return Request(
        method="DELETE",
        path=address("v1", "aliases", name),
        headers=preconditions(if_match),
        reads=as_nothing(),
        done_by=frozenset({"alias-not-found"}),
    )
