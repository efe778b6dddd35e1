"""A disk whose power can be cut: what its processes did not sync is gone then.

`synced.c` keeps what was synced; here it is compiled, and a directory is made what a disk would hold.
"""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

import psutil
import pytest

from service_tests.jobs.site import gone

SOURCE = Path(__file__).parent / "synced.c"

Names = Literal["synced", "now", "between"]
Tail = Literal["cut", "torn", "zeros"]


class Loss(NamedTuple):
    """What a power loss takes of what was not synced.

    names: entries of directories are as of their last sync, as they are now, or of some moment between.
    tail: bytes added to a file since its last sync are gone, partly there, or zeros.
    """

    names: Names
    tail: Tail


class Entry(NamedTuple):
    """A name in a directory."""

    inode: int
    mode: int


Entries = dict[str, Entry]


class Disk:
    """A directory `root` below `home`, and the journal of what was synced in it.

    Processes that shall lose what they did not sync run in `environment`.
    """

    def __init__(self, home: Path) -> None:
        self.root, self._journal = home.resolve() / "disk", home.resolve() / "journal"
        self.root.mkdir()
        self._journal.mkdir()
        self._library = compiled(SOURCE, home)
        self.settle()

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a process on this disk."""
        return {"LD_PRELOAD": str(self._library), "POWER_DISK": str(self.root), "POWER_JOURNAL": str(self._journal)}

    def hold(self) -> None:
        """Let no sync return any more until the power goes."""
        (self._journal / "hold").touch()

    @contextmanager
    def full(self) -> Iterator[None]:
        """A disk without room, for the length of a with block."""
        (self._journal / "full").touch()
        try:
            yield
        finally:
            (self._journal / "full").unlink(missing_ok=True)

    def lose_power(self, loss: Loss, chance: Random) -> None:
        """Leave what the disk would hold now. All processes on it must have been killed."""
        self._end_orphans()
        listings = self._listings()
        inodes = self._inodes()
        left: dict[Path, tuple[int, bytes]] = {}

        def take(directory: Path) -> None:
            choice = listings.get(directory, [{}])
            entries = {"synced": choice[0], "now": choice[-1], "between": chance.choice(choice)}[loss.names]
            for name, (inode, mode) in entries.items():
                path = directory / name
                regular = stat.S_ISREG(mode)
                left[path] = mode, self._bytes(inode, inodes.get(inode), loss.tail, chance) if regular else b""
                if stat.S_ISDIR(mode):
                    take(path)

        take(self.root)
        shutil.rmtree(self.root)
        self.root.mkdir()
        for path, (mode, content) in left.items():
            _make(path, mode, content)
        self.settle()

    def settle(self) -> None:
        """Take all that is there for synced."""
        shutil.rmtree(self._journal)
        for part in ("content", "whole", "dead"):
            (self._journal / part).mkdir(parents=True)
        listings = []
        for directory in (self.root, *(path for path in self.root.rglob("*") if path.is_dir())):
            entries = _entries(directory)
            lines = [f"{inode} {mode:o} {name}" for name, (inode, mode) in entries.items()]
            listings.append("\n".join([f"synced {directory}", *lines]) + "\n\n")
            for name, (inode, mode) in entries.items():
                if stat.S_ISREG(mode):
                    shutil.copyfile(directory / name, self._journal / "content" / str(inode))
        (self._journal / "names").write_text("".join(listings))

    def _end_orphans(self) -> None:
        """End what a store that was killed has begun: the process that writes its file anew lives on."""
        orphans = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if Path(process.cwd()).is_relative_to(self.root):
                    orphans.append(process)
                    process.kill()
        gone(orphans)

    def _bytes(self, inode: int, now: Path | None, tail: Tail, chance: Random) -> bytes:
        """What is left of a file."""
        content = self._journal / "content" / str(inode)
        kept = content.read_bytes() if content.exists() else b""
        if tail == "cut" or now is None:
            return kept
        written = now.read_bytes()
        if (self._journal / "whole" / str(inode)).exists() or len(written) < len(kept):
            return chance.choice([kept, written])
        added = written[len(kept) :]
        return kept + (added[: chance.randint(0, len(added))] if tail == "torn" else bytes(len(added)))

    def _listings(self) -> dict[Path, list[Entries]]:
        """Entries that each directory may be left with: as of its last sync, and all later ones, the last are now's."""
        found: dict[Path, list[Entries]] = {}
        names = self._journal / "names"
        for listing in names.read_text().split("\n\n") if names.exists() else []:
            if not listing.strip():
                continue
            head, *lines = listing.strip("\n").split("\n")
            when, _, path = head.partition(" ")
            entries = dict(map(_entry, lines))
            if when == "synced":
                found[Path(path)] = [entries]
            else:
                found.setdefault(Path(path), [{}]).append(entries)
        for directory in (self.root, *(path for path in self.root.rglob("*") if path.is_dir())):
            found.setdefault(directory, [{}]).append(_entries(directory))
        return found

    def _inodes(self) -> dict[int, Path]:
        """Where the bytes of each file are now, those of files without a name included."""
        named = [path for path in self.root.rglob("*") if path.is_file()]
        return {path.stat().st_ino: path for path in (*(self._journal / "dead").iterdir(), *named)}


def _entry(line: str) -> tuple[str, Entry]:
    inode, mode, name = line.split(" ", 2)
    return name, Entry(int(inode), int(mode, 8))


def _entries(directory: Path) -> Entries:
    def entry(path: Path) -> Entry:
        status = path.lstat()
        return Entry(status.st_ino, status.st_mode)

    return {path.name: entry(path) for path in directory.iterdir()}


def _make(path: Path, mode: int, content: bytes) -> None:
    """Make a file, a directory, or a socket that nobody listens on."""
    if stat.S_ISDIR(mode):
        path.mkdir()
    elif stat.S_ISSOCK(mode):
        os.mknod(path, mode)
    else:
        path.write_bytes(content)
    path.chmod(stat.S_IMODE(mode))


def compiled(source: Path, home: Path) -> Path:
    """A library to preload, made in a directory; the test is skipped where it cannot be made."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip(f"no C compiler (cc) to make the library of {source.name} with")
    library = home / f"{source.stem}.so"
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror"]
    subprocess.run([compiler, *options, "-o", library, source, "-ldl"], check=True)
    return library
