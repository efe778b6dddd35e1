"""How a service starts: with nothing compiled, and with all of it; and what it takes when idle."""

import sys
from pathlib import Path

import psutil
import pytest

from service_tests.running import Running, compiler_bytes, service
from service_tests.servers import until

MB = 1_000_000
SERVICE_BYTES, WORKER_BYTES = 168 * MB, 148 * MB
# Of these, what belongs to no file.
SERVICE_OWN_BYTES, WORKER_OWN_BYTES = 160 * MB, 139 * MB
# A process has no less once all is loaded.
LOADED_BYTES = 90 * MB

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what the memory of a process holds"),
    pytest.mark.nightly,  # a first start compiles for half a minute of a processor
]


def resident(pid: int) -> int:
    return int(psutil.Process(pid).memory_info().rss)


def own(pid: int) -> int:
    """Memory of a process that belongs to no file, swapped or not."""
    return sum(part.anonymous + part.swap for part in psutil.Process(pid).memory_maps())


def worker_of(pid: int) -> int:
    """The worker of a process, once it waits for jobs."""

    def waiting() -> list[int]:
        workers = [one for one in psutil.Process(pid).children() if "worker" in one.cmdline()]
        return [one.pid for one in workers if resident(one.pid) > LOADED_BYTES and not compiler_bytes(one.pid) > MB]

    until(waiting)
    return waiting()[0]


def check_idle(running: Running) -> None:
    """Nothing of a compiler is left, neither in memory nor beside the service, which takes no more than it may."""
    worker = worker_of(running.process.pid)
    assert compiler_bytes(running.process.pid) < MB
    assert resident(running.process.pid) <= SERVICE_BYTES
    assert resident(worker) <= WORKER_BYTES
    assert own(running.process.pid) <= SERVICE_OWN_BYTES
    assert own(worker) <= WORKER_OWN_BYTES
    beside = [one for pid in (running.process.pid, worker) for one in psutil.Process(pid).children(recursive=True)]
    assert [one.cmdline() for one in beside if "app.services.warm_up" in one.cmdline()] == []


def test_later_starts_compile_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one compiles into a directory that was empty."""
    place = tmp_path / "compiled"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(place))
    compiled = list[dict[Path, int]]()
    for name in ("first", "second"):
        with service(tmp_path / name, "--job-workers", "1") as running:
            check_idle(running)
        compiled.append({path: path.stat().st_mtime_ns for path in place.rglob("*.nb?")})
    assert compiled[0]
    assert compiled[0] == compiled[1]
