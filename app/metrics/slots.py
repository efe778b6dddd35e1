"""The files in which the processes of a service count, side by side.

Each process holds a slot: a number that no other living process holds, kept by a lock that the system drops with the
process. It counts in mapped files of its slot, as the client library of Prometheus has them, so that what it has
counted stays when it is killed. The next process that takes the slot goes on counting where the dead one stopped: no
counter goes down, and there are no more files than there were processes at a time. Gauges of a slot that nobody holds
are removed.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Literal

from prometheus_client import CollectorRegistry, multiprocess, values

# Counting must never wait for a disk: a page of a file that is just being written back cannot be changed.
_MEMORY = Path("/dev/shm")  # noqa: S108 - directories there are made by mkdtemp
_PREFIX = "bochner-metrics-"
_SERVICE = "service.lock"
_KIB = 1 << 10
# What the files of a process take, from the beginning: a mapped page that finds no room ends its process.
_SIZES = {"counter": 256 * _KIB, "histogram": 1024 * _KIB, "gauge_livesum": 64 * _KIB}
# Containers have 64 MiB there.
_LEAST_FREE = 32 << 20
# So long may a service take from making its directory to locking it.
_NEW_SECONDS = 60.0

LIVE_SUM: Literal["livesum"] = "livesum"
"""The mode of all gauges: the sum over the processes that live."""


@contextmanager
def shared() -> Iterator[Path]:
    """A directory for the processes of a service, for the length of a with block.

    Those that killed services have left are removed.
    """
    for parent in {*_parents()}:
        for left in parent.glob(_PREFIX + "*"):
            _remove(left)
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=next(_parents())))
    with _locked(directory / _SERVICE):
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


class Slot:
    """The slot of this process in a directory. Metrics that are made from now on count in its files.

    A process has one, and keeps it to its end.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        for number in count():
            with suppress(_Taken):
                self._held = ExitStack()
                self._held.enter_context(_locked(directory / f"{number}.lock"))
                break
        self._number = number
        multiprocess.mark_process_dead(number, str(directory))
        for kind, size in _SIZES.items():
            path = directory / f"{kind}_{number}.db"
            if not path.exists():
                new = path.with_suffix(".new")  # others may look at any moment, and cannot read half a file
                new.write_bytes(bytes(size))
                new.rename(path)
        values.ValueClass = values.MultiProcessValue(lambda: number)

    def register(self, registry: CollectorRegistry) -> None:
        """Have a registry collect what all processes have counted."""
        for path in self._directory.glob("[0-9]*.lock"):
            if path.stem != str(self._number):
                _forget_dead(self._directory, path)
        multiprocess.MultiProcessCollector(registry, str(self._directory))


def _forget_dead(directory: Path, path: Path) -> None:
    """Remove the gauges of a slot that nobody holds."""
    with suppress(_Taken), _locked(path):
        multiprocess.mark_process_dead(path.stem, str(directory))


def _parents() -> Iterator[Path]:
    """Where a directory may be, the best place first."""
    if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _LEAST_FREE:
        yield _MEMORY
    yield Path(tempfile.gettempdir())


def _remove(left: Path) -> None:
    try:
        if time.time() - left.stat().st_mtime < _NEW_SECONDS:
            return
        with _locked(left / _SERVICE):
            shutil.rmtree(left, ignore_errors=True)
    except (OSError, _Taken):  # of another user, or in use
        return


class _Taken(Exception):
    """Another process has the lock."""


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a file for the length of a with block; _Taken if another process has locked it.

    The lock is not handed on to processes that begin as copies of this one, as those of jobs do, and their end does not
    free it.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            raise _Taken(path) from error
        yield
    finally:
        os.close(file)
