"""Backup of a running store to a file, and restoring it.

A backup is the snapshot that a server sends to a new replica. The server forks for it, so the snapshot is of one moment
after the start of the backup, and writes go on meanwhile. For a cluster, the snapshots of all primaries follow each
other in the file, each of its own moment. Keys that belong together are in one shard, and so of one moment.
"""

import mmap
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import redis
from pydantic import ValidationError

from app.store import identity, snapshot
from app.store.connection import ONE, ROOT, Client, N, check_room, inside, places_of, root_of
from app.store.data_files import create_private, sync
from app.store.errors import StoreFull, StoreUnavailable, store_errors
from app.store.identity import KEY, Mark, require_marks
from app.store.servers import primaries, slots_of
from app.store.snapshot import STREAMS, Key, SnapshotBroken

# A server that prepares a snapshot sends an empty line every ten seconds.
_PATIENCE_SECONDS = 60.0
_CHUNK_BYTES = 1 << 20
_FIRST_LINE = re.compile(rb"\n*(?:\$(?:EOF:(?P<mark>.{40})|(?P<length>\d+))|(?P<error>-.*))\r\n", re.DOTALL)
_LONGEST_LINE = 4096


class BackupFailed(Exception):
    """A backup or a restore has failed; the message is one sentence for the operator."""


def back_up(client: Client, path: Path) -> int:
    """Write a backup of a store to a new file. After a failure there is no file, rather than part of one.

    Returns:
        The number of keys in the backup.

    Raises:
        BackupFailed: the file exists, the store sends no whole snapshot or is empty, or the file cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    if path.exists():
        raise BackupFailed(f"{path} is there already.")
    try:
        with create_private(part) as file:
            send(client, file)
            os.fsync(file.fileno())
        keys = check(part)
        with part.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            _require_same_places(client, _Backup(data, None))
        part.rename(path)
        sync(path.parent)
    except OSError as error:
        raise BackupFailed(f"There is no backup: {error}.") from error
    finally:
        part.unlink(missing_ok=True)
    return keys


def send(client: Client, file: BinaryIO) -> None:
    """Write a backup of a store to an open file; `restore` uses its check-sum to see whether it is whole.

    Raises:
        BackupFailed: the store sends no snapshot, or not all of it, or slots of a cluster move meanwhile.
    """
    try:
        require_marks(client)
        _require_content(client)
        slots = slots_of(client)
        for server in primaries(client):
            for chunk in _sent(server):
                file.write(chunk)
        if slots_of(client) != slots or any(moving for *_, moving in slots):
            # Keys that moved from a later primary to an earlier one are in no snapshot.
            raise BackupFailed("There is no backup: slots of the cluster moved meanwhile.")
    except StoreUnavailable as error:
        raise BackupFailed(f"There is no backup: {error}.") from error
    file.flush()


def note(client: Client) -> None:
    """Record in the store that a backup was made now, if the store accepts writes."""
    with suppress(StoreUnavailable), store_errors():
        client.set(inside(places_of(client).roots[0], LAST), time.time())


def last(client: Client) -> float | None:
    """Return the time of the last backup, in seconds since 1970; None if there was none."""
    with store_errors():
        noted = cast(bytes | None, client.get(inside(places_of(client).roots[0], LAST)))
    return None if noted is None else float(noted)


def check(path: Path) -> int:
    """Read a whole backup and verify its check-sums.

    Returns:
        The number of keys in the backup.

    Raises:
        BackupFailed: the file is no backup, is damaged, or cannot be read.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return snapshot.check(data)
    except SnapshotBroken as error:
        raise BackupFailed(f"{path} is no backup that can be used: at byte {error.at}, {error}.") from error
    except (OSError, ValueError) as error:
        raise BackupFailed(f"{path} cannot be read: {error}.") from error


def _sent(server: redis.Redis) -> Iterator[bytes]:
    """Yield the snapshot that a server sends to a new replica, read from the socket: the client cannot stream bytes."""
    connection: Any = server.connection_pool.make_connection()
    try:
        with store_errors():
            connection.connect()
            connection.send_command("REPLCONF", "capa", "eof")
            connection.read_response()
            connection.send_command("SYNC")
        line: socket.socket = connection._get_socket()
        line.settimeout(_PATIENCE_SECONDS)
        yield from _snapshot(line)
    finally:
        connection.disconnect()


def _snapshot(line: socket.socket) -> Iterator[bytes]:
    """Yield the bytes of a snapshot, whose end is given by its length or by a mark."""
    head = b""
    while (found := _FIRST_LINE.match(head)) is None:
        if len(head.lstrip(b"\n")) > _LONGEST_LINE:
            raise BackupFailed("The store answers SYNC in a way that is not known.")
        head = head.lstrip(b"\n") + _receive(line, 1)
    if found["error"]:
        raise BackupFailed(f"The store refuses SYNC: {found['error'][1:].decode(errors='replace')}.")
    if mark := found["mark"]:
        held = b""
        while not held.endswith(mark):
            yield held[: -len(mark)]
            held = held[-len(mark) :] + _receive(line, _CHUNK_BYTES)
        yield held[: -len(mark)]
        return
    left = int(found["length"])
    while left:
        chunk = _receive(line, min(left, _CHUNK_BYTES))
        left -= len(chunk)
        yield chunk


def _receive(line: socket.socket, n: int) -> bytes:
    chunk = line.recv(n)
    if not chunk:
        raise BackupFailed("The store has ended the connection before all of the snapshot was there.")
    return chunk


PREFIX = b"bochner:"
LAST = "bochner:last-backup"
# Key prefixes that say nothing of a store's content. The last one exists while a worker starts.
_NOTES = (b"bochner:probe:", LAST.encode(), b"bochner:jobs:starting")
_BATCH_BYTES = 1 << 22
_BATCH_KEYS = 500


class _Backup(NamedTuple):
    """Backup in memory, and the database of its server that is restored; None for the only one."""

    data: mmap.mmap
    database: int | None

    def stored(self) -> Iterator[Key]:
        """Yield the keys of the service, and the marks of its stores."""
        every = (key for key in snapshot.keys(self.data) if key.name.startswith(PREFIX))
        return every if self.database is None else (key for key in every if key.database == self.database)


def restore(client: Client, path: Path, database: int | None = None) -> int:
    """Restore all keys of the service from a backup into an empty store.

    Meanwhile no service accepts the store. An interrupted restore can be repeated with the same file. `database` is the
    one to restore if the service had stores in several databases of the server.

    Returns:
        The number of keys restored.

    Raises:
        BackupFailed: the backup cannot be used, the store is not empty, or its server is older than the backup's.
        StoreUnavailable: the store does not answer, or has no room.
    """
    check(path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        mark = Mark(id=data[-8:].hex(), state="restoring")
        every = _Backup(data, None).stored()
        there = sorted({key.database for key in every if not _is_in_every_store(key.name)})
        if database is None and len(there) < 2:
            database = there[0] if there else None
        elif database not in there:
            named = ", ".join(map(str, there))
            raise BackupFailed(f"The backup has stores of the service in databases {named}: name one with --database.")
        backup = _Backup(data, database)
        _require_same_places(client, backup)
        _require_empty(client, mark)
        accepted = _mark_in(backup, mark)
        identity.put(client, mark)
        kept = sum(_write(client, backup, rank) for rank in range(3))
        identity.put(client, accepted.model_copy(update={"state": "accepted", "at": time.time()}))
    return kept


def _require_same_places(client: Client, backup: _Backup) -> None:
    """Raise BackupFailed unless backup and store have the same shards, which are part of keys and stored values."""
    of_cluster = any(root_of(key.name.decode(errors="replace")) != ROOT for key in _ours(backup))
    to_cluster = places_of(client) != ONE
    if of_cluster != to_cluster and any(_ours(backup)):
        words = {True: "a cluster", False: "one server"}
        raise BackupFailed(f"The backup is of {words[of_cluster]}, and the store is {words[to_cluster]}.")
    marked = {root_of(key.name.decode(errors="replace")) for key in backup.stored() if _is_mark(key.name)}
    if of_cluster and marked != {*places_of(client).roots}:
        raise BackupFailed(f"The backup is not whole: it has {len(marked)} of {N} places of a cluster.")


def _require_content(client: Client) -> None:
    """Raise BackupFailed if the store holds nothing: after a loss, backups would push out earlier ones that have data.

    Workers create the job queue even in an empty store.
    """
    with store_errors():
        for name in client.scan_iter(match=f"{ROOT}*", count=1000):
            if not _is_in_every_store(name) and client.type(name) != b"stream":
                return
    raise BackupFailed("There is no backup: the store holds nothing.")


def _require_empty(client: Client, mark: Mark) -> None:
    with store_errors():
        there = client.get(inside(places_of(client).roots[0], KEY))
        if there == mark.model_dump_json().encode():
            return
        for name in client.scan_iter(count=1000):
            empty_queue = client.type(name) == b"stream" and client.xlen(name) == 0
            if not _is_in_every_store(name) and not empty_queue:
                raise BackupFailed(f"The store is not empty: it holds {name.decode(errors='replace')!r}.")


def _mark_in(backup: _Backup, otherwise: Mark) -> Mark:
    """Return the mark of the backup's store; `otherwise` if the backup has none."""
    for key in backup.stored():
        if _is_mark(key.name):
            try:
                return Mark.model_validate_json(snapshot.text(backup.data, key))
            except (ValidationError, SnapshotBroken) as error:
                raise BackupFailed("The mark of its store, which the backup holds, cannot be read.") from error
    return otherwise


def _ours(backup: _Backup) -> Iterator[Key]:
    return (key for key in backup.stored() if not _is_mark(key.name))


def _is_mark(name: bytes) -> bool:
    return _in_one_place(name) == KEY.encode()


def _is_in_every_store(name: bytes) -> bool:
    """Return whether a key describes the store itself, so that an empty store may have it as well."""
    return _is_mark(name) or _in_one_place(name).startswith(_NOTES)


def _in_one_place(name: bytes) -> bytes:
    """Return the name that a key has in a store of one shard."""
    text = name.decode(errors="surrogateescape")
    return (ROOT + text.removeprefix(root_of(text))).encode(errors="surrogateescape")


def _rank(key: Key) -> int:
    """Return when a key is restored: what a manifest or record names comes first, then these, and the job queue last.

    So whatever is found while a backup is being put back is whole.
    """
    return 2 if key.type in STREAMS else int(key.name.endswith((b":manifest", b":record")))


def _write(client: Client, backup: _Backup, rank: int) -> int:
    """Restore the keys of a rank, in batches too small to block other clients for long."""
    n, nbytes, batch = 0, 0, client.pipeline(transaction=False)
    for key in _ours(backup):
        if _rank(key) != rank:
            continue
        payload = snapshot.as_payload(backup.data, key)
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
