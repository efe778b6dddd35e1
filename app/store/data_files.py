"""The files in which an embedded store keeps its data: which there are, whether they are whole, and their repair.

A directory holds a manifest, which names a base, a snapshot, and files of commands that were appended since. The last
of these is written to. A power loss can tear its end, where nothing is acknowledged yet.
"""

import logging
import mmap
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from app.store import append_only, snapshot
from app.store.append_only import Reading
from app.store.binary import StoreNotStarted
from app.store.disk import CUT, FOLDER
from app.store.lasting import sync
from app.store.snapshot_walk import SnapshotBroken

MANIFEST = "appendonly.aof.manifest"
_ENTRY = re.compile(r'file "?(?P<name>appendonly\.aof\.\d+\.\w+\.\w+)"? seq \d+ type (?P<kind>[bhi])( .*)?')
_FILE = re.compile(r"appendonly\.aof\.(?P<number>\d+)\.(?P<kind>base|incr)\.(rdb|aof)")
_TEMPORARY = ("temp-*", f"{FOLDER}/temp-*")

logger = logging.getLogger(__name__)


class ManifestLost(StoreNotStarted):
    """Files of a store lie without a manifest that can be read."""


class Checked(NamedTuple):
    """What has become of a file."""

    path: Path
    nbytes: int
    holds: str
    """What can be read of it, for people."""
    empty: bool
    end: int
    """How far it is whole, in bytes."""
    fault: str
    """What is wrong there; empty if nothing is."""
    again: int | None
    """Where something whole stands behind the fault."""
    cuttable: bool
    """Whether what is whole can be used without the rest."""

    def __str__(self) -> str:
        told = f"{self.path.name}: {self.nbytes} bytes, {self.holds}"
        if self.fault:
            told += f"; damaged at byte {self.end}: {self.fault}"
        if self.again is not None:
            told += f"; the next whole command begins at byte {self.again}"
        return told


def check(data_dir: Path) -> list[Checked]:
    """Look at every file of a store; none if there is no store yet.

    Raises:
        StoreNotStarted: what a manifest should name is there, and no manifest that can be read; or a file is missing.
    """
    return [_checked(path) for path in _files(data_dir)]


def require_manifest(data_dir: Path) -> None:
    """Raise StoreNotStarted where files of a store lie without the manifest that names them.

    A server would take them for nothing, and start empty. It lies so, with nothing in the files, for a moment of a
    server's first start.
    """
    folder = data_dir / FOLDER
    if (folder / MANIFEST).is_file() or all(_checked(path).empty for path in _numbered(folder)):
        return
    raise ManifestLost(
        f"{folder} has files of a store, and not the manifest {MANIFEST} that names them: a server would start empty. "
        f"Put the manifest back, or restore a backup, or let `bochner repair --data-dir {data_dir}` write it anew."
    )


def torn_end(data_dir: Path) -> Checked | None:
    """The file of a store whose end is torn, if that is all that is wrong with it; None if nothing is.

    Raises:
        StoreNotStarted: something else is wrong, which nobody but an operator should decide about.
    """
    found = check(data_dir)
    damaged = [one for one in found if one.fault]
    if not damaged:
        return None
    if damaged == found[-1:] and damaged[0].cuttable and damaged[0].again is None:
        return damaged[0]
    raise StoreNotStarted(
        f"The store in {data_dir} is damaged, and not only at its end. {damaged[0]}. Restore a backup; or see what "
        f"`bochner check --data-dir {data_dir}` tells, and what `bochner repair --data-dir {data_dir}` would cut off."
    )


def cut(damaged: Checked) -> Path | None:
    """Cut off a file what is not whole.

    Returns:
        The file that keeps it: what is left, and then this, is the file as it was. None if the disk is too full for it.
    """
    path, kept = damaged.path, _unused(f"{damaged.path}{CUT}{damaged.end}")
    with path.open("r+b") as file:
        file.seek(damaged.end)
        try:
            with created(kept) as copy:
                shutil.copyfileobj(file, copy)
                copy.flush()
                os.fsync(copy.fileno())
        except OSError as error:
            logger.warning("what is cut off %s is not kept: %s", path.name, error.strerror)
            kept.unlink(missing_ok=True)
        sync(path.parent)
        file.truncate(damaged.end)
        os.fsync(file.fileno())
    return kept if kept.exists() else None


def repair(data_dir: Path) -> list[str]:
    """Make the files of a store such that a server starts with them; no server may run. What is cut off is kept.

    Returns:
        What was done, a sentence each.

    Raises:
        StoreNotStarted: a file is missing, or so damaged that nothing of it can be used.
    """
    done = []
    try:
        found = check(data_dir)
    except ManifestLost:
        _write_manifest(data_dir)
        done.append(f"{MANIFEST} was written anew from the names of the files.")
        found = check(data_dir)
    for damaged in (one for one in found if one.fault):
        if not damaged.cuttable:
            raise StoreNotStarted(f"{damaged}. Nothing of it can be used: restore a backup.")
        kept = cut(damaged)
        done.append(f"{damaged}. It was cut off there; what was cut off is {kept or 'not kept'}.")
    return done


def _write_manifest(data_dir: Path) -> None:
    """Write the manifest anew, from the names of the files; one that cannot be read is kept beside it.

    Raises:
        StoreNotStarted: there is not exactly one base, so that the names do not tell.
    """
    folder = data_dir / FOLDER
    files = _numbered(folder)
    bases = [path for path in files if ".base." in path.name]
    if len(bases) != 1:
        names = ", ".join(path.name for path in bases) or "none"
        raise StoreNotStarted(f"{folder} has not one base file but {names}: restore a backup.")
    lines = [
        f"file {path.name} seq {_number(path)} type {'b' if path in bases else 'i'}\n"
        for path in bases + [path for path in files if path not in bases]
    ]
    # Its name comes last: half a manifest would have a server start without the files that the other half names.
    whole = folder / f"temp-{MANIFEST}"
    with whole.open("w") as manifest:
        manifest.writelines(lines)
        manifest.flush()
        os.fsync(manifest.fileno())
    if (folder / MANIFEST).exists():
        (folder / MANIFEST).rename(_unused(f"{folder / MANIFEST}{CUT}0"))
    whole.rename(folder / MANIFEST)
    sync(folder)


def remove_temporary(data_dir: Path) -> None:
    """Remove what servers that were killed while they wrote a file anew have left; no server may run."""
    for pattern in _TEMPORARY:
        for path in data_dir.glob(pattern):
            with suppress(OSError):
                path.unlink()


def created(path: Path) -> BinaryIO:
    """A new file to write to, which other users may not read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _files(data_dir: Path) -> list[Path]:
    """The files that the manifest names, base first."""
    require_manifest(data_dir)
    folder = data_dir / FOLDER
    if not (folder / MANIFEST).is_file():
        return []
    entries = [_ENTRY.fullmatch(line) for line in (folder / MANIFEST).read_text(errors="replace").splitlines()]
    found = [entry for entry in entries if entry is not None]
    if not found or len(found) < len(entries):
        raise ManifestLost(
            f"{folder / MANIFEST} cannot be read: `bochner repair --data-dir {data_dir}` writes it anew."
        )
    paths = [folder / entry["name"] for kind in "bi" for entry in found if entry["kind"] == kind]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise StoreNotStarted(f"{folder} misses {', '.join(missing)}, which its manifest names: restore a backup.")
    return paths


def _numbered(folder: Path) -> list[Path]:
    """Files that a manifest may name, in their order."""
    return sorted((path for path in folder.glob("appendonly.aof.*") if _FILE.fullmatch(path.name)), key=_number)


def _number(path: Path) -> int:
    found = _FILE.fullmatch(path.name)
    return int(found["number"]) if found else 0


def _checked(path: Path) -> Checked:
    nbytes = path.stat().st_size
    with path.open("rb") as file:
        if path.suffix == ".rdb" or file.read(6).startswith((b"REDIS", b"VALKEY")):
            return _checked_snapshot(path, nbytes)
    end, fault, again = 0, "", None
    found: Reading = append_only.read(path)
    last = f", the last {found.last}" if found.commands else ""
    end, fault, again = found.end, found.fault, found.again
    return Checked(path, nbytes, f"{found.commands} commands{last}", not nbytes, end, fault, again, True)


def _checked_snapshot(path: Path, nbytes: int) -> Checked:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            n = snapshot.check(data)
        except SnapshotBroken as error:
            return Checked(path, nbytes, "a snapshot", False, error.at, str(error), None, False)
    return Checked(path, nbytes, f"a snapshot of {n} keys", not n, nbytes, "", None, True)


def _unused(name: str) -> Path:
    """A path with this name, or with a number behind it, that is not there."""
    path, n = Path(name), 1
    while path.exists():
        path, n = Path(f"{name}-{n}"), n + 1
    return path
