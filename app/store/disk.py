"""File system of the embedded store: its free space, and the space that must stay free."""

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from app.store.errors import StoreFull, StoreUnavailable

SOCKET_NAME = "store.sock"
"""Name of an embedded store's socket, in its data directory."""
FOLDER = "appendonlydir"
"""Name of the folder of the store's files, in the data directory."""
APPENDED = "appendonly.aof"
"""Beginning of the names of the store's files."""
MANIFEST = f"{APPENDED}.manifest"
"""Name of the file that lists the store's files, in their folder."""
CUT = ".cut-at-"
"""Part of the name of a file with bytes cut off another file; their offset there follows."""
DAMAGED = f"{CUT}load"
"""End of the name of a copy of a file in which a server has found damage while loading."""
LIMIT = "min_free_bytes"
_PROBE_BYTES = 1 << 16


def held_bytes(info: Mapping[str, Any]) -> int:
    """Return the bytes of a server's data set, from its INFO.

    If clients take more memory than the server has counted, INFO has a negative number, written as unsigned: return 0.
    """
    told = int(info["used_memory_dataset"])
    return told if told < 1 << 63 else 0


@dataclass
class Disk:
    """Data directory, and the bytes that must stay free on its file system."""

    directory: Path
    min_free_bytes: int
    _seen: tuple[str, int, int] = ("", 0, 0)
    """Run of the server, and device and inode of the folder when that run was seen first."""

    @property
    def critical(self) -> int:
        """Free bytes below which the server must accept no writes, because a failed write would end it."""
        return self.min_free_bytes // 8

    def free(self) -> int:
        """Return the bytes that are free for this user; OSError if the files no longer exist."""
        found = os.statvfs(self.directory / FOLDER)
        return found.f_bavail * found.f_frsize

    def is_served(self, run: str, pid: int) -> bool:
        """Return whether the files are those that a server writes in this run; OSError if there are none.

        A server does not notice if its files are replaced; the next server would then miss acknowledged writes.
        """
        if run != self._seen[0] and not self._is_open_in(pid):
            return False
        named = (self.directory / FOLDER / MANIFEST).stat()
        found = (self.directory / FOLDER).stat()
        there = run, found.st_dev, found.st_ino
        self._seen = there if run != self._seen[0] else self._seen
        return self._seen == there and named.st_size > 0

    def _is_open_in(self, pid: int) -> bool:
        """Return whether a server has one of the files open; True if the system does not show what it has open."""
        opened = []
        with suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    opened += [link.stat()] if f"/{APPENDED}" in str(link.readlink()) else []
        there = [path.stat() for path in (self.directory / FOLDER).iterdir()]
        return not opened or any(os.path.samestat(one, other) for one in opened for other in there)

    def is_short(self, info: Mapping[str, Any]) -> bool:
        """Return whether the files have fewer bytes than the server has written, by its INFO."""
        return self.size() < int(info.get("aof_current_size", 0))

    def size(self) -> int:
        """Return the total size of the files in bytes; OSError if there are none."""
        there = 0
        for path in (self.directory / FOLDER).iterdir():
            with suppress(FileNotFoundError):  # a file that the server has just replaced
                there += path.stat().st_size if path.suffix in (".rdb", ".aof") else 0
        return there

    def check(self, nbytes: int, ask: Callable[[], Mapping[str, Any]]) -> None:
        """Raise StoreFull unless the disk has room for `nbytes` more bytes; `ask` returns the INFO of the server.

        StoreUnavailable if the files are not those of the server, or lack some of the bytes that it has written.

        Now and then the server rewrites its file beside the old one. Held bytes need room once, for the rewrite; new
        bytes need it twice, for the append and the rewrite. So deleting something from a full store frees room.
        """
        info = ask()
        held = 0 if info["aof_rewrite_in_progress"] else held_bytes(info)
        try:
            free, is_served = self.free(), self.is_served(info["run_id"], info["process_id"])
            # Once may only mean that the server has rewritten its files since it reported their size.
            is_served = is_served and not (self.is_short(info) and self.is_short(ask()))
        except OSError as error:
            raise StoreUnavailable(f"the files of the store cannot be looked at: {error.strerror}") from error
        if not is_served:
            raise StoreUnavailable(
                "other files, or less of them, lie in the place of those that the store's server writes"
            )
        if free < self.min_free_bytes + held + 2 * nbytes:
            detail = (
                f"{nbytes} bytes more would not leave the store the room that it needs: its disk has {free} bytes "
                f"free; {held} are for writing anew what it holds, and {LIMIT} is {self.min_free_bytes}"
            )
            raise StoreFull(detail, LIMIT, self.min_free_bytes)

    def takes_writes(self) -> bool:
        """Return whether a server here may accept writes: where a probe file can be written, an append succeeds."""
        try:
            if self.free() < self.critical:
                return False
            with tempfile.TemporaryFile(dir=self.directory) as probe:
                probe.write(bytes(_PROBE_BYTES))
                probe.flush()
                os.fsync(probe.fileno())
        except OSError:
            return False
        return True


def cut_tails(data_dir: Path) -> list[Path]:
    """Return the files with bytes that were cut off a store's files, and copies of its damaged files."""
    return sorted((data_dir / FOLDER).glob(f"*{CUT}*"))


def data_dir_of(url: str) -> Path | None:
    """Return the data directory of the embedded store at a URL; None if the URL is of another store."""
    parts = urlsplit(url)
    path = Path(unquote(parts.path))
    return path.parent if parts.scheme == "unix" and path.name == SOCKET_NAME else None
