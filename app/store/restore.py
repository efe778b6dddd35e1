"""Putting a backup into a store that is empty."""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import redis
from pydantic import ValidationError

from app.store import backup, snapshot
from app.store.backup import BackupFailed
from app.store.connection import Client, check_room
from app.store.errors import StoreFull, StoreUnavailable, store_errors
from app.store.identity import KEY, Mark
from app.store.snapshot import Key
from app.store.snapshot_walk import STREAMS, SnapshotBroken

PREFIX = b"bochner:"
_PROBE = b"bochner:probe:"
_BATCH_BYTES = 1 << 22
_BATCH_KEYS = 500


def restore(client: Client, path: Path) -> int:
    """Put everything of the service that a backup holds into a store that holds nothing of it.

    Meanwhile no service takes the store for its own. A restore that was cut short is begun anew with the same file.

    Returns:
        The number of keys.

    Raises:
        BackupFailed: the backup cannot be used, the store is not empty, or is older than the one of the backup.
        StoreUnavailable: the store does not answer, or has no room.
    """
    backup.check(path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        mark = Mark(id=data[-8:].hex(), state="restoring")
        _require_empty(client, mark)
        _require_one_database(data)
        accepted = _mark_in(data, mark).model_copy(update={"state": "accepted"})
        with store_errors():
            client.set(KEY, mark.model_dump_json())
        # The queue last: a worker that waits for it finds all that its jobs need.
        kept = _written(client, data, streams=False) + _written(client, data, streams=True)
        with store_errors():
            client.set(KEY, accepted.model_dump_json())
    return kept


def _require_empty(client: Client, mark: Mark) -> None:
    with store_errors():
        there = client.get(KEY)
        if there == mark.model_dump_json().encode():
            return
        for name in client.scan_iter(count=1000):
            empty_queue = client.type(name) == b"stream" and client.xlen(name) == 0
            if name != KEY.encode() and not name.startswith(_PROBE) and not empty_queue:
                raise BackupFailed(f"The store is not empty: it holds {name.decode(errors='replace')!r}.")


def _require_one_database(data: mmap.mmap) -> None:
    databases = {key.database for key in _ours(data)}
    if len(databases) > 1:
        raise BackupFailed(f"The backup has stores of the service in {len(databases)} databases of its server.")


def _mark_in(data: mmap.mmap, otherwise: Mark) -> Mark:
    """The mark of the store that the backup is of."""
    for key in snapshot.keys(data):
        if key.name == KEY.encode():
            try:
                return Mark.model_validate_json(snapshot.text(data, key))
            except (ValidationError, SnapshotBroken) as error:
                raise BackupFailed("The mark of its store, which the backup holds, cannot be read.") from error
    return otherwise


def _ours(data: mmap.mmap) -> Iterator[Key]:
    return (key for key in snapshot.keys(data) if key.name.startswith(PREFIX) and key.name != KEY.encode())


def _written(client: Client, data: mmap.mmap, streams: bool) -> int:
    """Write the streams of a backup, or all else, in batches that hold up nobody for long."""
    n, nbytes, batch = 0, 0, client.pipeline(transaction=False)
    for key in _ours(data):
        if (key.type in STREAMS) != streams:
            continue
        payload = snapshot.as_payload(data, key)
        batch.restore(cast(str, key.name), key.expires or 0, payload, replace=True, absttl=key.expires is not None)
        n, nbytes = n + 1, nbytes + len(payload)
        if nbytes >= _BATCH_BYTES or len(batch) >= _BATCH_KEYS:
            _carry_out(client, batch, nbytes)
            nbytes = 0
    _carry_out(client, batch, nbytes)
    return n


def _carry_out(client: Client, batch: redis.client.Pipeline, nbytes: int) -> None:
    check_room(client, nbytes)
    try:
        with store_errors():
            batch.execute()
    except StoreUnavailable as error:
        if isinstance(error.__cause__, redis.ResponseError) and not isinstance(error, StoreFull):
            detail = f"The store does not take what the backup holds: {error.__cause__}. Is it older than the one"
            raise BackupFailed(f"{detail} that the backup is of?") from error
        raise
