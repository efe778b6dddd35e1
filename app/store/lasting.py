"""Directories that are there again after a power loss."""

import os
from contextlib import suppress
from pathlib import Path


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
