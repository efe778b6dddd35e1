"""A file system that is small, to be filled by tests."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(home: Path, megabytes: int) -> Iterator[Path]:
    """A directory with a file system of its own; the test is skipped where none can be made."""
    directory = home / "disk"
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(directory)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user may not mount a file system")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def fill(path: Path, leave: int = 0) -> None:
    """Write a file that takes all room of its disk but so many bytes, as somebody else might."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            file.truncate(max(0, file.tell() - leave))
