r"""Reading a file of appended commands, to find out how far it is whole.

A command is `*<n>\r\n` and n strings, each `$<length>\r\n<bytes>\r\n`. Lines that begin with # are remarks. What
stands between MULTI and EXEC counts whole or not at all.
"""

import mmap
import re
from pathlib import Path
from typing import NamedTuple

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
                at = _remark(data, at)
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


def _remark(data: mmap.mmap, at: int) -> int:
    """Where a remark ends."""
    found = _REMARK.match(data, at)
    if found is None:
        raise _Broken(at, "the file ends inside a remark")
    return found.end()


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
