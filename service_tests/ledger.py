"""The account of a store, compared with what the store holds."""

import re
from typing import cast

import redis

from app.store.account import Account, Usage
from app.store.connection import places_of
from app.store.indexes import BASE_BYTES, BASE_NAMES, BLOCK, ENTRY_BYTES, KEY_BYTES, IndexManifest

_PIECE = re.compile(rb"bochner:(?:\{\w+\}:)?\{(\w+):[^}]*\}:.*:\d+")
_INDEX = re.compile(rb"bochner:(?:\{\w+\}:)?\{index:[^}]*\}:.*:state")
_NAME = re.compile(rb"bochner:(?:\{\w+\}:)?\{(job:[^}]*\}:record|\w+:[^}]*\}:manifest)")


def held(client: redis.Redis) -> Usage:
    """Bytes of all pieces in the store, and its maps, datasets and jobs, one by one."""
    keys = [*client.scan_iter(count=1000)]
    nbytes = sum(int(client.strlen(key)) for key in keys if _PIECE.fullmatch(key))
    nbytes += sum(_of_index(client, key) for key in keys if _INDEX.fullmatch(key))
    aliases = [
        alias for key in keys if key.endswith(b":manifest") if b'"alias_of":' in (alias := client.get(key) or b"")
    ]
    nbytes += sum(2 * len(alias) + 512 for alias in aliases)
    return Usage(nbytes, sum(_NAME.fullmatch(key) is not None for key in keys))


def _of_index(client: redis.Redis, state: bytes) -> int:
    """Bytes of what an index holds, counted one by one."""
    own = state.removesuffix(b":state")
    # Each id is kept twice. A block has its full length from the start.
    ids = {key: client.hkeys(key) for key in client.scan_iter(match=own + b":slots.*")}
    vectors = [one for key in client.scan_iter(match=own + b":vectors.*") for one in client.hvals(key)]
    size, manifest = sum(map(len, ids.values())), client.get(own.rsplit(b":", 1)[0] + b":manifest")
    row = 8 + IndexManifest.parse(cast(bytes, manifest)).code_bytes
    tags, of_others = client.hvals(own + b":tags"), client.hlen((own + b":tags_by").decode())
    of_ids = sum(2 * len(one) for some in ids.values() for one in some)
    entries = ENTRY_BYTES * (size + len(vectors) + len(tags) + of_others)
    of_keys = sum(KEY_BYTES + len(key) for key in ids)
    base = BASE_BYTES + BASE_NAMES * len(own)
    return base + -(-size // BLOCK) * BLOCK * row + of_ids + of_keys + entries + sum(map(len, [*vectors, *tags]))


def entries(client: redis.Redis) -> dict[str, tuple[int, int, str]]:
    """Bytes, names and owner of each entry of the account."""
    found = {}
    for root in places_of(client).roots:
        for key, value in cast("dict[bytes, bytes]", client.hgetall(f"{root}account:entries")).items():
            nbytes, names, owner = value.decode().split(" ", 2)
            found[key.decode()] = int(nbytes), int(names), owner
    return found


def assert_true(client: redis.Redis, promised: int = 0) -> Usage:
    """Check that the account is what the store holds, and each of its sums that of its entries; gives it.

    `promised` are the bytes that jobs may still write for the maps that they build.
    """
    usage, there = Account(client).usage(), held(client)
    assert usage == (there.nbytes + promised, there.names), f"the account says {usage}, the store holds {there}"
    kept = entries(client)
    for owner in {"", *(owner for *_, owner in kept.values())}:
        own = [(nbytes, names) for nbytes, names, whose in kept.values() if owner in ("", whose)]
        assert Account(client).usage(owner) == (sum(one[0] for one in own), sum(one[1] for one in own))
    return usage


def pass_time(client: redis.Redis) -> None:
    """Let everything expire that has a time to live."""
    for key in [*client.scan_iter(count=1000)]:
        if client.pttl(key) >= 0:
            client.delete(key)
    for root in places_of(client).roots:
        for entry in cast("list[bytes]", client.zrange(f"{root}account:ends", 0, -1)):
            client.zadd(f"{root}account:ends", {entry: 0})
