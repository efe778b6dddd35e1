"""A backup of a running store: the snapshot that its server gives to a new replica, kept as a file.

The server forks for it. So it is of one moment, after the backup has begun, and writes go on meanwhile. Of a cluster,
the snapshots of all primaries stand one after the other, each of a moment of its own: what belongs together lies in one
place, and so is of one moment.
"""

import mmap
import os
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from app.store import snapshot
from app.store.clients import Client
from app.store.data_files import created
from app.store.errors import StoreUnavailable
from app.store.lasting import sync
from app.store.servers import addresses
from app.store.snapshot_walk import SnapshotBroken

# A server that prepares a snapshot sends an empty line every ten seconds.
_PATIENCE_SECONDS = 60.0
_CHUNK_BYTES = 1 << 20
_FIRST_LINE = re.compile(rb"\n*(?:\$(?:EOF:(?P<mark>.{40})|(?P<length>\d+))|(?P<error>-.*))\r\n", re.DOTALL)
_LONGEST_LINE = 4096


class BackupFailed(Exception):
    """There is no backup, or it is not put back; the message is one sentence for the operator."""


def back_up(client: Client, path: Path) -> int:
    """Write a backup of a store to a file that is not there yet. What is there at the end is whole, or nothing is.

    Returns:
        The number of keys in it.

    Raises:
        BackupFailed: the file is there, the store does not give a snapshot, or it cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    if path.exists():
        raise BackupFailed(f"{path} is there already.")
    try:
        with created(part) as file:
            for options in addresses(client):
                with _line(options) as line:
                    for chunk in _sent(line):
                        file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        keys = check(part)
        part.rename(path)
        sync(path.parent)
    except (OSError, ssl.SSLError, StoreUnavailable) as error:
        raise BackupFailed(f"There is no backup: {error}.") from error
    finally:
        part.unlink(missing_ok=True)
    return keys


def check(path: Path) -> int:
    """Read a backup to its end, and compare its check-sum.

    Returns:
        The number of keys in it.

    Raises:
        BackupFailed: it is none, or damaged.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return snapshot.check(data)
    except SnapshotBroken as error:
        raise BackupFailed(f"{path} is no backup that can be used: at byte {error.at}, {error}.") from error
    except (OSError, ValueError) as error:
        raise BackupFailed(f"{path} cannot be read: {error}.") from error


@contextmanager
def _line(options: dict[str, Any]) -> Iterator[socket.socket]:
    """A connection to the server of a client, whose options are given: the client gives no bytes as they come."""
    with ExitStack() as closing:
        if "path" in options:
            line = closing.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            line.settimeout(_PATIENCE_SECONDS)
            line.connect(options["path"])
        else:
            address = (options.get("host", "localhost"), options.get("port", 6379))
            line = closing.enter_context(socket.create_connection(address, _PATIENCE_SECONDS))
            if any(name.startswith("ssl_") for name in options):
                line = closing.enter_context(_secure(line, address[0], options))
        if options.get("password"):
            user = [options["username"]] if options.get("username") else []
            _ask(line, "AUTH", *user, options["password"])
        yield line


def _secure(line: socket.socket, host: str, options: dict[str, Any]) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"), capath=options.get("ssl_ca_path"))
    if options.get("ssl_certfile"):
        context.load_cert_chain(options["ssl_certfile"], options.get("ssl_keyfile"), options.get("ssl_password"))
    context.check_hostname = bool(options.get("ssl_check_hostname", True))
    if options.get("ssl_cert_reqs") in ("none", ssl.CERT_NONE):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(line, server_hostname=host)


def _ask(line: socket.socket, *words: str) -> None:
    _send(line, *words)
    reply = b""
    while not reply.endswith(b"\r\n"):
        reply += _received(line, 1)
    if reply.startswith(b"-"):
        raise BackupFailed(f"The store refuses {words[0]}: {reply[1:].decode(errors='replace').strip()}.")


def _send(line: socket.socket, *words: str) -> None:
    encoded = [word.encode() for word in words]
    line.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded))


def _sent(line: socket.socket) -> Iterator[bytes]:
    """The bytes of a snapshot, as a server sends them to a new replica."""
    _ask(line, "REPLCONF", "capa", "eof")
    _send(line, "SYNC")
    head = b""
    while (found := _FIRST_LINE.match(head)) is None:
        if len(head.lstrip(b"\n")) > _LONGEST_LINE:
            raise BackupFailed("The store answers SYNC in a way that is not known.")
        head = head.lstrip(b"\n") + _received(line, 1)
    if found["error"]:
        raise BackupFailed(f"The store refuses SYNC: {found['error'][1:].decode(errors='replace')}.")
    if found["mark"]:
        yield from _until(line, found["mark"])
        return
    left = int(found["length"])
    while left:
        chunk = _received(line, min(left, _CHUNK_BYTES))
        left -= len(chunk)
        yield chunk


def _until(line: socket.socket, mark: bytes) -> Iterator[bytes]:
    """The bytes that a line receives before a mark, which ends the snapshot."""
    held = b""
    while not held.endswith(mark):
        yield held[: -len(mark)]
        held = held[-len(mark) :] + _received(line, _CHUNK_BYTES)
    yield held[: -len(mark)]


def _received(line: socket.socket, n: int) -> bytes:
    chunk = line.recv(n)
    if not chunk:
        raise BackupFailed("The store has ended the connection before all of the snapshot was there.")
    return chunk
