"""Bytes of any length in the store, cut into chunks so that no single call blocks other clients for long."""

from collections.abc import Iterator
from typing import cast

import redis

from app.store.connection import check_room
from app.store.errors import StoreDamaged, store_errors

PIECE_BYTES = 1 << 20


def count(length: int) -> int:
    """Return the number of chunks of `length` bytes."""
    return -(-length // PIECE_BYTES)


def keys(prefix: str, length: int) -> list[str]:
    """Return the keys of the chunks of `length` bytes."""
    return [f"{prefix}:{i}" for i in range(count(length))]


def write(client: redis.Redis, prefix: str, data: bytes | memoryview, deadline: int) -> list[str]:
    """Write bytes under keys that expire at `deadline` unless a script makes them permanent; return the keys.

    `deadline` comes from `Account.charge`. StoreFull if there is no room on the disk of the store.
    """
    written = keys(prefix, len(data))
    whole = memoryview(data)
    # One chunk per call: a pipeline of many chunks would block every other client of the store.
    for i, key in enumerate(written):
        piece = whole[i * PIECE_BYTES : (i + 1) * PIECE_BYTES]
        check_room(client, len(piece))
        with store_errors():
            client.set(key, piece, exat=deadline)
    return written


def parts(client: redis.Redis, prefix: str, pieces: int) -> Iterator[bytes]:
    """Yield the chunks in order; StoreDamaged if one is missing."""
    for i in range(pieces):
        with store_errors():
            piece = cast(bytes | None, client.get(f"{prefix}:{i}"))
        if piece is None:
            raise StoreDamaged(f"piece {i} of {prefix} is missing")
        yield piece


def read(client: redis.Redis, prefix: str, pieces: int) -> bytes:
    """Return all bytes; StoreDamaged if a chunk is missing."""
    return b"".join(parts(client, prefix, pieces))
