"""The file system of the embedded store: how much room it has, and how much must stay free."""

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from app.store.errors import StoreFull, StoreUnavailable

SOCKET_NAME = "store.sock"
"""The socket of an embedded store, in its data directory."""
FOLDER = "appendonlydir"
"""The folder of its files, there too."""
MANIFEST = "appendonly.aof.manifest"
"""Names them, in that folder."""
CUT = ".cut-at-"
"""Stands in the names of files with what was cut off others, before the place where it was."""
DAMAGED = f"{CUT}load"
"""Ends the names of files in which a server has found damage while it was loading them."""
LIMIT = "min_free_bytes"
_PROBE_BYTES = 1 << 16


def held_bytes(info: Mapping[str, Any]) -> int:
    """What a server holds, by its INFO: where clients take more than it has counted, that is below 0, told unsigned."""
    told = int(info["used_memory_dataset"])
    return told if told < 1 << 63 else 0


@dataclass
class Disk:
    """A data directory, and the bytes that are to stay free on its file system."""

    directory: Path
    min_free_bytes: int
    _seen: tuple[str, int, int] = ("", 0, 0)
    """Of which run of a server the folder is, and which it was when that was seen first."""
    _was_short: bool = False

    @property
    def critical(self) -> int:
        """Free bytes below which the server itself is to take no writes, as it would end when one fails."""
        return self.min_free_bytes // 8

    def free(self) -> int:
        """Bytes that are free for this user; OSError if the files are not there any more."""
        found = os.statvfs(self.directory / FOLDER)
        return found.f_bavail * found.f_frsize

    def is_served(self, run: str) -> bool:
        """Whether the files are those that a server writes in this run; OSError if there are none.

        It would not notice others in their place, and the next one would not find what was acknowledged meanwhile.
        """
        named = (self.directory / FOLDER / MANIFEST).stat()
        found = (self.directory / FOLDER).stat()
        there = run, found.st_dev, found.st_ino
        self._seen = there if run != self._seen[0] else self._seen
        return self._seen == there and named.st_size > 0

    def is_short(self, written: int) -> bool:
        """Whether the files together lack some of the bytes that the server has written, twice in a row.

        Once it may have written them anew since it was asked how many there are.
        """
        was, self._was_short = self._was_short, self.size() < written
        return was and self._was_short

    def size(self) -> int:
        """Bytes of the files; OSError if there are none."""
        there = 0
        for path in (self.directory / FOLDER).iterdir():
            with suppress(FileNotFoundError):  # one that the server has just replaced
                there += path.stat().st_size if path.suffix in (".rdb", ".aof") else 0
        return there

    def check(self, nbytes: int, held: int, run: str, written: int) -> None:
        """Raise StoreFull unless there is room for so many bytes more, beside a store that holds `held` bytes.

        StoreUnavailable if the files are not those of this run of its server, or not all that it has written.

        The store writes its file anew now and then, beside the old one. What it holds counts once for that, and what is
        new counts twice. So whoever deletes something from a full store gets the room back.
        """
        try:
            free, is_served = self.free(), self.is_served(run) and not self.is_short(written)
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
        """Whether a server that runs here may take writes. Where a file can be written, an append does not fail."""
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
    """What was cut off files of a store, and has not been taken away since."""
    return sorted((data_dir / FOLDER).glob(f"*{CUT}*"))


def data_dir_of(url: str) -> Path | None:
    """The data directory of the embedded store at a URL; None if another store is there."""
    parts = urlsplit(url)
    path = Path(unquote(parts.path))
    return path.parent if parts.scheme == "unix" and path.name == SOCKET_NAME else None
