"""Where a store is: one server, the nodes of a cluster, or the sentinels that know which server is the primary."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from redis.connection import parse_url

Kind = Literal["server", "cluster", "sentinel"]
# What the URL of a store over TLS may name.
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_PORTS = {"cluster": 6379, "sentinel": 26379}
_OF_SENTINELS = "sentinel_"


class Address(NamedTuple):
    """The address of a store."""

    kind: Kind
    url: str
    """For one server, its URL for the client library."""
    nodes: tuple[tuple[str, int], ...] = ()
    """Hosts and ports of some nodes of a cluster, or of the sentinels."""
    tls: bool = False
    options: Mapping[str, Any] = MappingProxyType({})
    """Of connections to servers of the store, beside host and port."""
    service: str = ""
    """By which name sentinels know the primary."""
    of_sentinels: Mapping[str, Any] = MappingProxyType({})
    """Options of connections to sentinels."""


def parsed(url: str) -> Address:
    """The address that a URL gives.

    `redis://host:port/db`, `rediss://…` over TLS and `unix:///path` name one server; `redis+cluster://host:port,host:port`
    some nodes of a cluster; `redis+sentinel://host:port,host:port/service/db` sentinels. `rediss+cluster` and
    `rediss+sentinel` are over TLS. User, password and options after `?` are those of every server; sentinels are asked
    with `sentinel_username` and `sentinel_password`.

    Raises:
        ValueError: it is none of these, or names files for TLS that are not there.
    """
    parts = urlsplit(url)
    scheme, _, kind = parts.scheme.partition("+")
    if not kind:
        options = _read(url)
        _check_database(parts.scheme, unquote(parts.path), url_ends=True)
        _check_files(options)
        return Address("server", url)
    if scheme not in ("redis", "rediss") or kind not in _PORTS:
        known = "redis, rediss, unix, redis+cluster, rediss+cluster, redis+sentinel and rediss+sentinel"
        raise ValueError(f"the URL of the store begins with {parts.scheme!r}; known are {known}")
    nodes = _nodes(parts, _PORTS[kind])
    path = unquote(parts.path).strip("/")
    service, _, database = path.partition("/") if kind == "sentinel" else ("", "", path)
    if kind == "cluster" and database not in ("", "0"):
        raise ValueError(f"the URL of the store ends with {database!r}; a cluster has no databases but 0")
    if kind == "sentinel" and not service:
        raise ValueError("the URL of the store names no service that its sentinels know, as in /service or /service/0")
    _check_database(scheme, database)
    user, at, _ = parts.netloc.rpartition("@")
    query = f"?{parts.query}" if parts.query else ""
    # The client library reads user, password and options as in the URL of one server.
    options = _read(f"redis://{user}{at}host/{database}{query}")
    del options["host"]
    _check_files(options)
    if not options.get("db"):
        options.pop("db", None)
    of_sentinels = {
        name.removeprefix(_OF_SENTINELS): options.pop(name) for name in [*options] if name.startswith(_OF_SENTINELS)
    }
    of_sentinels |= {name: value for name, value in options.items() if name.startswith("ssl_")}
    return Address(_KINDS[kind], url, nodes, scheme == "rediss", options, service, of_sentinels)


_KINDS: dict[str, Kind] = {"cluster": "cluster", "sentinel": "sentinel"}


def _nodes(parts: SplitResult, port: int) -> tuple[tuple[str, int], ...]:
    found = []
    for one in parts.netloc.rpartition("@")[2].split(","):
        node = urlsplit(f"//{one.strip()}")
        if not node.hostname:
            raise ValueError("the URL of the store names no host; wanted are host:port, between commas")
        found.append((node.hostname, node.port or port))
    return tuple(found)


def _check_database(scheme: str, path: str, url_ends: bool = False) -> None:
    """Raise ValueError where the URL names a database that is no number. The client library would take database 0."""
    if scheme in ("redis", "rediss") and not re.fullmatch(r"/?[0-9]*" if url_ends else "[0-9]*", path):
        raise ValueError(f"the URL of the store ends with {path!r}; the number of a database is wanted there, as in /0")


def _read(url: str) -> dict[str, Any]:
    """What the client library reads in the URL of one server."""
    return dict(parse_url(url))  # type: ignore[no-untyped-call]


def _check_files(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name in _FILES and not Path(value).is_file():
            raise ValueError(f"REDIS_URL: {name} {value} is no file")
