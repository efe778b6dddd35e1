r"""Data files of an embedded store: finding, checking and repairing them.

The folder has a manifest, which names a base file (a snapshot) and files of commands appended since then. The server
writes to the last of these. A power loss can tear its end, where nothing is acknowledged yet. A command in such a file
is `*<n>\r\n` followed by n strings, each `$<length>\r\n<bytes>\r\n`. Lines that begin with # are comments. The commands
between MULTI and EXEC count as a whole or not at all.
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
    """There are files of a store, but no readable manifest."""


class Checked(NamedTuple):
    """Result of checking a file."""

    path: Path
    nbytes: int
    holds: str
    """Readable content of the file, as a phrase for people."""
    empty: bool
    end: int
    """Number of bytes up to which the file is whole."""
    fault: str
    """Description of the fault at `end`; empty if there is none."""
    again: int | None
    """Offset of the next whole command after the fault; None if there is none."""
    cuttable: bool
    """Whether the whole part can be used without the rest."""

    def __str__(self) -> str:
        told = f"{self.path.name}: {self.nbytes} bytes, {self.holds}"
        if self.fault:
            told += f"; damaged at byte {self.end}: {self.fault}"
        if self.again is not None:
            told += f"; the next whole command begins at byte {self.again}"
        return told


def check(data_dir: Path) -> list[Checked]:
    """Check every file of a store; return an empty list if there is no store yet.

    Raises:
        StoreNotStarted: there are data files but no readable manifest, or a file is missing.
    """
    return [_check_file(path) for path in _files(data_dir)]


def require_base(data_dir: Path) -> None:
    """Raise StoreNotStarted if the manifest is missing or the base file is empty; a server would start without data."""
    for path in _files(data_dir):
        if path.suffix == ".rdb" and not path.stat().st_size:
            raise StoreNotStarted(f"{_check_file(path)}. A server would start without its content: restore a backup.")


def torn_end(data_dir: Path) -> Checked | None:
    """Return the file of a store whose end is torn, if this is the only fault; None if there is no fault.

    Raises:
        StoreNotStarted: there is another fault, about which an operator must decide.
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
    """Truncate a damaged file to its whole part.

    Returns:
        The new file with the bytes cut off, which restore the old file if appended; None if it cannot be written.
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
    """Keep the files of a store under further names (hard links), because a server has refused data in them."""
    for path in _files(data_dir):
        with suppress(FileExistsError):
            os.link(path, f"{path}{DAMAGED}")


def repair(data_dir: Path, dry_run: bool = False) -> list[str]:
    """Repair the files of a store so that a server starts with them; no server may run. Bytes cut off are kept.

    Returns:
        A sentence for each repair done; in a dry run, for each repair needed.

    Raises:
        StoreNotStarted: a file is missing, or so damaged that no part of it can be used.
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
    """Write a new manifest from the names of the files; keep an unreadable old one under another name.

    Raises:
        StoreNotStarted: the number of base files is not one, so the names do not determine the manifest.
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
    # The file gets its final name last: with half a manifest, a server would start without the files of the other half.
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
    """Remove temporary files left by servers that were killed while rewriting a file; no server may run."""
    for pattern in _TEMPORARY:
        for path in data_dir.glob(pattern):
            with suppress(OSError):
                path.unlink()


def create_private(path: Path) -> BinaryIO:
    """Create a file for writing that other users may not read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _files(data_dir: Path) -> list[Path]:
    """Return the files named by the manifest, base first; StoreNotStarted if the manifest or a file is missing.

    Return an empty list if there is no manifest and all files are empty: a server's first start passes through this.
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
    """Return the files that a manifest may name, with their numbers, in ascending order of the numbers."""
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
    """Return a path that does not exist: `name`, or `name` with a number appended."""
    path, n = Path(name), 1
    while path.exists():
        path, n = Path(f"{name}-{n}"), n + 1
    return path


_REMARK = re.compile(rb"#[^\n]{0,4096}\n")
_COUNT = re.compile(rb"\*([1-9]\d{0,6})\r\n")
_LENGTH = re.compile(rb"\$(\d{1,9})\r\n")
# Names of the commands that a server may write: all that change data, and some around them. It ends at any other.
_NAMES = frozenset(
    b"""
    APPEND BITFIELD BITOP BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN COPY DECR DECRBY DEL EVAL
    EVALSHA EXEC EXPIRE EXPIREAT FCALL FLUSHALL FLUSHDB FUNCTION GEOADD GEORADIUS GEORADIUSBYMEMBER GEOSEARCHSTORE
    GETDEL GETEX GETSET HDEL HINCRBY HINCRBYFLOAT HMSET HSET HSETNX INCR INCRBY INCRBYFLOAT LINSERT LMOVE LMPOP LPOP
    LPUSH LPUSHX LREM LSET LTRIM MIGRATE MOVE MSET MSETNX MULTI PERSIST PEXPIRE PEXPIREAT PFADD PFDEBUG PFMERGE PSETEX
    PUBLISH RENAME RENAMENX RESTORE RESTORE-ASKING RPOP RPOPLPUSH RPUSH RPUSHX SADD SCRIPT SDIFFSTORE SELECT SET SETBIT
    SETEX SETNX SETRANGE SINTERSTORE SMOVE SORT SPOP SPUBLISH SREM SUNIONSTORE SWAPDB UNLINK XACK XADD XAUTOCLAIM XCLAIM
    XDEL XGROUP XREADGROUP XSETID XTRIM ZADD ZDIFFSTORE ZINCRBY ZINTERSTORE ZMPOP ZPOPMAX ZPOPMIN ZRANGESTORE ZREM
    ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE
    """.split()
)
_COMMAND = re.compile(rb"\*[1-9]\d{0,6}\r\n\$\d{1,9}\r\n[A-Za-z]")


class Reading(NamedTuple):
    """Result of reading a file of commands: the part that is whole."""

    commands: int
    """Number of whole commands."""
    end: int
    """Offset where the last whole command ends; bytes after it cannot be used."""
    last: str
    """Name of the last whole command; empty if there is none."""
    fault: str
    """Description of the fault at `end`; empty if the file ends there without a fault."""
    again: int | None
    """Offset of a whole command after the fault; if there is one, the fault is not a torn end."""


class _Broken(Exception):
    """There is no whole command; `at` is the offset where reading failed."""

    def __init__(self, at: int, detail: str) -> None:
        super().__init__(detail)
        self.at = at


def read(path: Path) -> Reading:
    """Return how far a file of appended commands is whole; takes little memory for files of any length."""
    if path.stat().st_size == 0:
        return Reading(0, 0, "", "", None)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _read(data)


def _read(data: mmap.mmap) -> Reading:
    commands, at, last = 0, 0, b""
    before: Reading | None = None  # the state before the open transaction
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
    """Return the name in capitals, and the end, of the command at an offset; _Broken if it is not whole."""
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
            if name not in _NAMES:
                raise _Broken(start, "a command has a name that is none")
    return name, end


def _no_match(data: mmap.mmap, at: int, otherwise: str) -> str:
    """Return why no line was found at `at`: zeros, the end of the file, or else the text `otherwise`."""
    rest = data[at : at + 16]
    if rest and not rest.strip(b"\0"):
        return "there are only zeros"
    return "the file ends inside a command" if len(rest) < 16 and b"\n" not in rest else otherwise


def _next(data: mmap.mmap, at: int) -> int | None:
    """Return the offset of the next whole command, None if there is none."""
    for found in _COMMAND.finditer(data, at):
        try:
            _command(data, found.start())
        except _Broken:
            continue
        return found.start()
    return None


def make_lasting(directory: Path) -> None:
    """Create a directory of mode 0700 and its missing parents, and sync their names to the disk.

    Even a synced file is gone after a power loss if the name of its directory was never written to the disk. A parent
    directory that may not be read cannot be synced; the system then writes the names in its own time.
    """
    missing = [one for one in directory.parents if not one.exists()]
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for one in (directory, *missing):
        with suppress(PermissionError):
            sync(one.parent)


def sync(directory: Path) -> None:
    """Sync a directory, so that the names of its files are on the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
