"""What a running server of the embedded store is told from time to time, so that a full disk does not end it.

A server that syncs every write ends when one cannot be written, and with it everything that it could still give. So it
is told to take no writes before the disk is full. It is then told to sync once a second instead, as a server that does
so goes on when a write fails: it still writes down what expires. Nothing is acknowledged meanwhile.

The server does not decide by itself when to write its file anew, beside the old one: it would not look whether there
is room for both.
"""

import logging
import time
from pathlib import Path
from typing import Any

import psutil
import redis

from app.store.disk import Disk, held_bytes

REFUSING = ("--min-replicas-to-write", "1", "--appendfsync", "everysec")
"""Options of a server that is to take no writes: it has no replicas."""
_CALL_SECONDS = 5.0
_LOOK_SECONDS = 2.0
_RETRY_SECONDS = 60.0
_SMALLEST_BYTES = 64 << 20
"""A file is not written anew while it is smaller, unless the disk is short."""
_WASTE_BYTES = 1 << 20

logger = logging.getLogger(__name__)


class Upkeep:
    """Watches over one server, of the process id, at the socket, on a disk."""

    def __init__(self, disk: Disk, socket: Path, pid: int, writes: bool) -> None:
        self._disk, self._socket, self._pid = disk, socket, pid
        self._writes = writes
        self._next_look = 0.0

    def look(self) -> None:
        """Do what is due. A server that does not answer is left alone until the next time."""
        due = time.monotonic() >= self._next_look
        try:
            free = self._disk.free()
            wanted = free >= self._disk.critical if self._writes else due and free >= 2 * self._disk.critical
            if not due and wanted == self._writes:
                return
            with redis.Redis(
                unix_socket_path=str(self._socket), socket_timeout=_CALL_SECONDS, decode_responses=True
            ) as client:
                if self._writes and not wanted:
                    self._refuse_writes(client)
                elif not self._writes and wanted:
                    self._allow_writes(client)
                if due:
                    self._next_look = time.monotonic() + _LOOK_SECONDS
                    self._write_anew(client, free)
        except (redis.RedisError, OSError) as error:
            logger.debug("the store's server cannot be looked after: %s", error)

    def _refuse_writes(self, client: redis.Redis) -> None:
        # In this order, and one after the other's reply: what was acknowledged before has been synced.
        client.config_set("min-replicas-to-write", 1)
        client.config_set("appendfsync", "everysec")
        self._writes = False
        logger.warning("the disk of the store is full: the store takes no writes until there is room; reads go on")

    def _allow_writes(self, client: redis.Redis) -> None:
        info: dict[str, Any] = client.info("persistence")
        if info["aof_last_write_status"] != "ok" or not self._disk.takes_writes():
            return
        client.config_set("appendfsync", "always")
        client.config_set("min-replicas-to-write", 0)
        self._writes = True
        logger.warning("there is room on the disk of the store: it takes writes again")

    def _write_anew(self, client: redis.Redis, free: int) -> None:
        """Have the file written anew where that is worth it and there is room; stop it where the room goes."""
        info: dict[str, Any] = client.info()
        if info["aof_rewrite_in_progress"]:
            if free < 2 * self._disk.critical:
                logger.warning("there is no room to write the store's file anew; it is stopped")
                _kill_children(self._pid)
                self._next_look = time.monotonic() + _RETRY_SECONDS
            return
        size, held = info["aof_current_size"], held_bytes(info)
        grown = size >= max(_SMALLEST_BYTES, 2 * info["aof_base_size"])
        short = free < self._disk.min_free_bytes + 2 * held and size > held + max(_WASTE_BYTES, held // 16)
        if (grown or short) and free > 2 * self._disk.critical + held:
            client.bgrewriteaof()
            if info["aof_last_bgrewrite_status"] != "ok":  # let it fail no more often than this
                self._next_look = time.monotonic() + _RETRY_SECONDS


def _kill_children(pid: int) -> None:
    """Kill the process that writes a server's file anew."""
    try:
        for child in psutil.Process(pid).children():
            child.kill()
    except psutil.Error as error:
        logger.debug("nobody writes the store's file anew any more: %s", error)
