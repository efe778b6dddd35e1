"""Status of a store's servers: versions, durability, replicas, and warnings for operators."""

import secrets
from collections import Counter
from typing import Any, Literal, cast

import redis
from redis.sentinel import SentinelConnectionPool

from app.core.model import Described
from app.store import lua
from app.store.connection import Client, ClusterClient, Known, ask_shards, check_room, places_of
from app.store.disk import DAMAGED, cut_tails
from app.store.errors import StoreFull, StoreOutdated, StoreUnavailable, store_errors
from app.store.server import LEAST, is_too_old

Durability = Literal["always", "everysec", "rdb", "volatile"]
"""Durability of a store: the data that a crash of the server may lose.

always: nothing acknowledged. everysec: about the last second. rdb: everything since the last snapshot, or since the
kernel last wrote back the append-only file. volatile: everything.
"""
Topology = Literal["server", "cluster", "sentinel"]
_PROBE, _COMMANDS = lua.read("probe"), lua.commands()
_LONELY = "a server of the store is a replica that has lost its primary, and may lack the latest writes"
_SAFEST: tuple[Durability, ...] = ("volatile", "rdb", "everysec", "always")


class StoreInfo(Described):
    """Status of the store, as its servers report it."""

    server: str
    """Product and version of the server."""
    durability: Durability
    """What a crash of the store may lose: nothing, the last second, all since the last snapshot, or everything."""
    maxmemory_policy: str
    """What the store does when its memory is full."""
    topology: Topology = "server"
    """Kind of store: one server, a cluster, or a primary found through sentinels."""
    primaries: int = 1
    """Number of primaries (servers that accept writes) that answer."""
    replicas: int = 0
    """Smallest number of replicas of any primary."""
    confirmed_by: int = 0
    """Number of replicas that have stored each acknowledged write: the setting `store_replicas`."""
    warnings: list[str]
    """Warnings for the operator, one sentence each."""

    def unfit(self) -> str | None:
        """Return why acknowledged maps are not safe in the store; None if they are."""
        if self.durability == "volatile":
            return "the store keeps nothing on disk (no append-only file, no snapshots)"
        if self.maxmemory_policy != "noeviction":
            return f"the store may evict maps (maxmemory-policy is {self.maxmemory_policy}, not noeviction)"
        return None


def check_versions(client: redis.Redis) -> None:
    """Raise StoreOutdated if a primary is too old to run on; StoreUnavailable if one does not answer."""
    for server in primaries(client):
        with store_errors():
            info = server.info("server")
        version_of(info)


def keeping(client: redis.Redis) -> StoreInfo:
    """Return the status of the store: version and durability of its least durable primary, and any eviction policy.

    StoreUnavailable if no primary answers, StoreOutdated if one is too old.
    """
    found, away = list[StoreInfo](), StoreUnavailable("the store does not answer")
    every = primaries(client)
    for server in every:
        try:
            found.append(_of_server(server))
        except StoreOutdated:
            raise
        except StoreUnavailable as error:
            away = error
    if not found:
        raise away
    least = min(found, key=lambda one: _SAFEST.index(one.durability))
    evicts = [one.maxmemory_policy for one in found if one.maxmemory_policy != "noeviction"]
    silent = len(every) - len(found)
    confirmed_by = client.replicas if isinstance(client, Known) else 0
    replicas = min(one.replicas for one in found)
    warnings = [*_warnings(client), *(warning for one in found for warning in one.warnings)]
    if silent:
        warnings.append(f"{silent} of {len(every)} primaries of the store do not answer: {away}")
    if replicas < confirmed_by:
        warnings.append(f"a primary of the store has {replicas} replicas, and store_replicas is {confirmed_by}")
    if least.durability in ("rdb", "volatile"):
        warnings.append(f"the durability of the store is {least.durability}: what is acknowledged may be lost")
    policy = evicts[0] if evicts else least.maxmemory_policy
    counts = {"primaries": len(found), "replicas": replicas, "confirmed_by": confirmed_by}
    told = {"maxmemory_policy": policy, "topology": _topology(client), "warnings": warnings}
    return least.model_copy(update=told | counts)


def memory_of(client: redis.Redis) -> int:
    """Return the bytes of memory that all primaries take together."""
    with store_errors():
        return sum(int(server.info("memory")["used_memory"]) for server in primaries(client))


def check_writable(client: redis.Redis) -> list[str]:
    """Write a key to every shard and remove it, and ask whether scripts may call their commands.

    Returns:
        Warnings for the operator about shards that accept no writes.

    Raises:
        StoreUnavailable: no shard accepts writes: no server answers, or each is full or a replica, or lacks rights.
    """
    probe = client.register_script(_PROBE)

    def write(root: str) -> None:
        with store_errors():
            lacking = cast("list[bytes]", probe([f"{root}probe:{secrets.token_hex(8)}"], _COMMANDS))
        if lacking:
            named = b", ".join(lacking).decode()
            raise StoreUnavailable(f"the user of the store may not call {named}: docker/users.acl lists what it needs")

    roots = places_of(client).roots
    refused = [error for error in ask_shards(roots, write) if error is not None]
    if len(refused) == len(roots):
        raise refused[0]
    counts = Counter(str(error) for error in refused)
    return [f"{count} of {len(roots)} places of the store take no writes: {why}" for why, count in counts.items()]


def primaries(client: redis.Redis) -> list[redis.Redis]:
    """Return a client of each server that accepts writes; may raise StoreUnavailable."""
    if not isinstance(client, ClusterClient):
        return [client]
    with store_errors():
        client.begin()
        return [client.get_redis_connection(node) for node in client.get_primaries()]


def slots_of(client: redis.Redis) -> list[Any]:
    """Return for each primary of a cluster its epoch, its slots, and the slots that are moving to or from it."""
    if not isinstance(client, ClusterClient):
        return []
    with store_errors():
        known = [one for server in primaries(client) for one in server.cluster("NODES").values()]
    return [(one["epoch"], one["slots"], one["migrations"]) for one in known if "myself" in one["flags"]]


def _topology(client: redis.Redis) -> Topology:
    if isinstance(client, ClusterClient):
        return "cluster"
    return "sentinel" if isinstance(client.connection_pool, SentinelConnectionPool) else "server"


def _of_server(client: redis.Redis) -> StoreInfo:
    with store_errors():
        info = client.info()
        if info.get("loading"):  # until it has loaded its file, a server says that it writes none
            raise redis.exceptions.BusyLoadingError
    return StoreInfo(
        server=version_of(info),
        durability=_durability(client, info),
        maxmemory_policy=str(info.get("maxmemory_policy", "unknown")),
        replicas=int(info.get("connected_slaves", 0)),
        warnings=[_LONELY] if info.get("master_link_status") == "down" else [],
    )


def version_of(info: dict[str, Any]) -> str:
    """Return name and version of a server; StoreOutdated if it is too old, but not if it does not report a version."""
    name = "valkey" if "valkey_version" in info else "redis"
    version = str(info.get(f"{name}_version", "unknown"))
    if is_too_old(name, version):
        raise StoreOutdated(f"the store is {name.title()} {version}; {LEAST} or later is needed")
    return f"{name} {version}"


def _warnings(client: redis.Redis) -> list[str]:
    """Return warnings about an embedded store: that it is full, and which of its files were damaged or cut off."""
    warnings = []
    try:
        check_room(client, 0)
    except StoreFull as error:
        warnings.append(str(error))
    if isinstance(client, Client) and client.disk is not None:
        for path in cut_tails(client.disk.directory):
            is_whole = path.name.endswith(DAMAGED)
            warnings.append(f"{path.name} {'is damaged' if is_whole else 'was cut off a file of the store'}")
    return warnings


def _durability(client: redis.Redis, info: dict[str, Any]) -> Durability:
    if info.get("aof_enabled"):
        # If `appendfsync` is off or unknown, the kernel decides when to write back, which is closest to "rdb".
        synced: dict[str, Durability] = {"always": "always", "everysec": "everysec"}
        return synced.get(_setting(client, "appendfsync", unknown="everysec"), "rdb")
    return "rdb" if _setting(client, "save", unknown="") else "volatile"


def _setting(client: redis.Redis, name: str, unknown: str) -> str:
    """Return a server setting, or `unknown` if the server refuses CONFIG GET, as managed servers may."""
    with store_errors():
        try:
            answer = cast(dict[Any, Any], client.config_get(name))
        except redis.ResponseError:
            return unknown
    value = next(iter(answer.values()), unknown)
    return value.decode() if isinstance(value, bytes) else str(value)
