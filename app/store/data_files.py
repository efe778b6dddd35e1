r"""The files in which an embedded store keeps its data: which there are, whether they are whole, and their repair.

A directory holds a manifest, which names a base, a snapshot, and files of commands that were appended since. The last
of these is written to. A power loss can tear its end, where nothing is acknowledged yet. In a file of commands, each
is `*<n>\r\n` and n strings, each `$<length>\r\n<bytes>\r\n`. Lines that begin with # are remarks. What stands between
MULTI and EXEC counts whole or not at all.
"""

import logging
import mmap
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from app.store import snapshot
from app.store.disk import CUT, DAMAGED, FOLDER, MANIFEST
from app.store.server import StoreNotStarted
from app.store.snapshot import SnapshotBroken

logger = logging.getLogger(__name__)

_ENTRY = re.compile(r'file "?(?P<name>appendonly\.aof\.\d+\.\w+\.\w+)"? seq \d+ type (?P<kind>[bhi])( .*)?')
_FILE = re.compile(r"appendonly\.aof\.(?P<number>\d+)\.(?P<kind>base|incr)\.(rdb|aof)")
_TEMPORARY = ("temp-*", f"{FOLDER}/temp-*")


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
    return [_check_file(path) for path in _files(data_dir)]


def require_base(data_dir: Path) -> None:
    """Raise StoreNotStarted where the manifest is missing, or a base has no bytes: a server would start without."""
    for path in _files(data_dir):
        if path.suffix == ".rdb" and not path.stat().st_size:
            raise StoreNotStarted(
                f"{_check_file(path)}. A server would start without what was in it: restore a backup."
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
    path, kept = damaged.path, _find_free_path(f"{damaged.path}{CUT}{damaged.end}")
    with path.open("r+b") as file:
        file.seek(damaged.end)
        try:
            with create_private(kept) as copy:
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


def link_beside(data_dir: Path) -> None:
    """Keep the files of a store under other names too, as a server has refused something in them."""
    for path in _files(data_dir):
        with suppress(FileExistsError):
            os.link(path, f"{path}{DAMAGED}")


def repair(data_dir: Path, dry_run: bool = False) -> list[str]:
    """Make the files of a store such that a server starts with them; no server may run. What is cut off is kept.

    Returns:
        What was done, a sentence each; in a dry run, what would be.

    Raises:
        StoreNotStarted: a file is missing, or so damaged that nothing of it can be used.
    """
    done = []
    try:
        found = check(data_dir)
    except ManifestLost:
        if dry_run:
            return [f"{MANIFEST} would be written anew from the names of the files, which would then be repaired."]
        _write_manifest(data_dir)
        done.append(f"{MANIFEST} was written anew from the names of the files.")
        found = check(data_dir)
    for damaged in (one for one in found if one.fault):
        if not damaged.cuttable:
            raise StoreNotStarted(f"{damaged}. Nothing of it can be used: restore a backup.")
        if dry_run:
            nbytes = damaged.nbytes - damaged.end
            done.append(f"{damaged}. It would be cut off there, and the {nbytes} bytes cut off kept beside it.")
            continue
        kept = cut(damaged)
        done.append(f"{damaged}. It was cut off there; what was cut off is {kept or 'not kept'}.")
    return done


def _write_manifest(data_dir: Path) -> None:
    """Write the manifest anew, from the names of the files; one that cannot be read is kept beside it.

    Raises:
        StoreNotStarted: there is not exactly one base, so that the names do not tell.
    """
    folder = data_dir / FOLDER
    files = _number_files(folder)
    bases = [path for path in files if ".base." in path.name]
    if len(bases) != 1:
        names = ", ".join(path.name for path in bases) or "none"
        raise StoreNotStarted(f"{folder} has not one base file but {names}: restore a backup.")
    lines = [
        f"file {path.name} seq {files[path]} type {'b' if path in bases else 'i'}\n"
        for path in bases + [path for path in files if path not in bases]
    ]
    # Its name comes last: half a manifest would have a server start without the files that the other half names.
    whole = folder / f"temp-{MANIFEST}"
    with whole.open("w") as manifest:
        manifest.writelines(lines)
        manifest.flush()
        os.fsync(manifest.fileno())
    if (folder / MANIFEST).exists():
        (folder / MANIFEST).rename(_find_free_path(f"{folder / MANIFEST}{CUT}0"))
    whole.rename(folder / MANIFEST)
    sync(folder)


def remove_temporary(data_dir: Path) -> None:
    """Remove what servers that were killed while they wrote a file anew have left; no server may run."""
    for pattern in _TEMPORARY:
        for path in data_dir.glob(pattern):
            with suppress(OSError):
                path.unlink()


def create_private(path: Path) -> BinaryIO:
    """A new file to write to, which other users may not read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _files(data_dir: Path) -> list[Path]:
    """The files that the manifest names, base first; StoreNotStarted where it, or one of them, is missing.

    In a moment of a server's first start it is, with nothing in the files.
    """
    folder = data_dir / FOLDER
    manifest = folder / MANIFEST
    if not manifest.is_file() and not all(_check_file(path).empty for path in _number_files(folder)):
        raise ManifestLost(
            f"{folder} has files of a store, and not the manifest {MANIFEST} that names them: a server would start "
            f"empty. Put it back, or restore a backup, or let `bochner repair --data-dir {data_dir}` write it anew."
        )
    if not manifest.is_file():
        return []
    entries = [_ENTRY.fullmatch(line) for line in manifest.read_text(errors="replace").splitlines()]
    found = [entry for entry in entries if entry is not None]
    if not found or len(found) < len(entries):
        raise ManifestLost(f"{manifest} cannot be read: `bochner repair --data-dir {data_dir}` writes it anew.")
    paths = [folder / entry["name"] for kind in "bi" for entry in found if entry["kind"] == kind]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise StoreNotStarted(f"{folder} misses {', '.join(missing)}, which its manifest names: restore a backup.")
    return paths


def _number_files(folder: Path) -> dict[Path, int]:
    """Files that a manifest may name, in the order of their numbers, and these."""
    named = ((path, _FILE.fullmatch(path.name)) for path in folder.glob("appendonly.aof.*"))
    found = {path: int(match["number"]) for path, match in named if match is not None}
    return dict(sorted(found.items(), key=lambda one: one[1]))


def _check_file(path: Path) -> Checked:
    nbytes = path.stat().st_size
    with path.open("rb") as file:
        is_snapshot = path.suffix == ".rdb" or file.read(6).startswith((b"REDIS", b"VALKEY"))
    if not is_snapshot:
        found = read(path)
        holds = f"{found.commands} commands" + (f", the last {found.last}" if found.commands else "")
        return Checked(path, nbytes, holds, not nbytes, found.end, found.fault, found.again, True)
    if not nbytes:
        return Checked(path, 0, "a snapshot", False, 0, "the file is empty", None, False)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            n = snapshot.check(data)
        except SnapshotBroken as error:
            return Checked(path, nbytes, "a snapshot", False, error.at, str(error), None, False)
    return Checked(path, nbytes, f"a snapshot of {n} keys", not n, nbytes, "", None, True)


def _find_free_path(name: str) -> Path:
    """A path with this name, or with a number behind it, that is not there."""
    path, n = Path(name), 1
    while path.exists():
        path, n = Path(f"{name}-{n}"), n + 1
    return path


_REMARK = re.compile(rb"#[^\n]{0,4096}\n")
_COUNT = re.compile(rb"\*([1-9]\d{0,6})\r\n")
_LENGTH = re.compile(rb"\$(\d{1,9})\r\n")
_NAME = re.compile(rb"[A-Za-z][A-Za-z0-9._|-]*")
_COMMAND = re.compile(rb"\*[1-9]\d{0,6}\r\n\$\d{1,9}\r\n[A-Za-z]")


class Reading(NamedTuple):
    """How far a file is whole."""

    commands: int
    """Commands that are whole."""
    end: int
    """Where the last of them ends, in bytes: what comes then cannot be used."""
    last: str
    """Name of the last of them; empty if there is none."""
    fault: str
    """What is wrong there; empty if nothing is, and the file ends."""
    again: int | None
    """Where a whole command stands behind the fault: then it is not the end of the file that is torn."""


class _Broken(Exception):
    """No whole command is there; `at` is where it breaks."""

    def __init__(self, at: int, detail: str) -> None:
        super().__init__(detail)
        self.at = at


def read(path: Path) -> Reading:
    """How far a file of appended commands is whole. It may be of any length, and takes hardly any memory."""
    if path.stat().st_size == 0:
        return Reading(0, 0, "", "", None)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _read(data)


def _read(data: mmap.mmap) -> Reading:
    commands, at, last = 0, 0, b""
    before: Reading | None = None  # the transaction that is open
    try:
        while at < len(data):
            if data[at] == b"#"[0]:
                remark = _REMARK.match(data, at)
                if remark is None:
                    raise _Broken(at, "the file ends inside a remark")
                at = remark.end()
                continue
            name, end = _command(data, at)
            if name == b"MULTI":
                if before is not None:
                    raise _Broken(at, "a transaction begins inside another")
                before = Reading(commands, at, last.decode(), "", None)
            elif name == b"EXEC":
                before = None
            commands, at, last = commands + 1, end, name
    except _Broken as error:
        fault, again = str(error), _next(data, max(at + 1, error.at))
    else:
        fault, again = "" if before is None else "the file ends inside a transaction", None
    kept = before or Reading(commands, at, last.decode(), "", None)
    return kept._replace(fault=fault, again=again)


def _command(data: mmap.mmap, at: int) -> tuple[bytes, int]:
    """Name in capitals, and end, of the command at an offset; _Broken if there is no whole one."""
    head = _COUNT.match(data, at)
    if head is None:
        raise _Broken(at, _no_match(data, at, "no command begins here"))
    name, end = b"", head.end()
    for i in range(int(head[1])):
        length = _LENGTH.match(data, end)
        if length is None:
            raise _Broken(end, _no_match(data, end, f"string {i} of a command is none"))
        start, end = length.end(), length.end() + int(length[1]) + 2
        if end > len(data):
            raise _Broken(start, "the file ends inside a command")
        if data[end - 2 : end] != b"\r\n":
            raise _Broken(start, f"string {i} of a command is longer than it says, or shorter")
        if i == 0:
            name = data[start : end - 2].upper()
            if not _NAME.fullmatch(name):
                raise _Broken(start, "a command has a name that is none")
    return name, end


def _no_match(data: mmap.mmap, at: int, otherwise: str) -> str:
    """What is wrong where a line was expected: that the file ends in it, or is empty from there on."""
    rest = data[at : at + 16]
    if rest and not rest.strip(b"\0"):
        return "there are only zeros"
    return "the file ends inside a command" if len(rest) < 16 and b"\n" not in rest else otherwise


def _next(data: mmap.mmap, at: int) -> int | None:
    """Where the next whole command begins, None if there is none."""
    for found in _COMMAND.finditer(data, at):
        try:
            _command(data, found.start())
        except _Broken:
            continue
        return found.start()
    return None


def make_lasting(directory: Path) -> None:
    """Make a directory of mode 0700, and those above it that are missing, and have the system write down their names.

    A file may be synced as often as one likes: it is gone after a power loss if the name of its directory was never
    written down. A directory that may not be listed cannot be synced; then the system writes the names in its own time.
    """
    missing = [one for one in directory.parents if not one.exists()]
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for one in (directory, *missing):
        with suppress(PermissionError):
            sync(one.parent)


def sync(directory: Path) -> None:
    """Have the system write down which files a directory has."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
