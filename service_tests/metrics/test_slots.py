import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.metrics import slots

# Counts as often as it is told to, one line each; then tells what all processes have counted.
PROGRAM = """
import os, sys
from pathlib import Path
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from app.metrics.slots import LIVE_SUM, Slot
slot = Slot(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]))
counted = Counter("counted", "Lines.", registry=None)
alive = Gauge("alive", "Processes.", registry=None, multiprocess_mode=LIVE_SUM)
alive.set(1)
for line in sys.stdin:
    counted.inc()
    registry = CollectorRegistry()
    slot.register(registry)
    print(*(line for line in generate_latest(registry).decode().split("\\n") if line[:1] in "ac"), sep=";", flush=True)
"""


class Counting:
    """A process that counts beside others in a directory."""

    def __init__(self, directory: Path) -> None:
        environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(directory)}
        command = [sys.executable, "-c", PROGRAM]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def count(self) -> tuple[float, float]:
        """Count once more; gives what all have counted, and how many live."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print("once", file=self.process.stdin, flush=True)
        told = dict(line.split(" ") for line in self.process.stdout.readline().strip().split(";") if line)
        return float(told["counted_total"]), float(told["alive"])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@contextmanager
def counting(directory: Path) -> Iterator[Counting]:
    made = Counting(directory)
    try:
        yield made
    finally:
        made.kill()


def test_what_a_killed_process_has_counted_stays_and_its_gauges_go(tmp_path: Path) -> None:
    with counting(tmp_path) as first, counting(tmp_path) as second:
        assert first.count()[0] == 1
        assert second.count() == (2, 2)
        second.kill()
        assert first.count() == (3, 1)
        with counting(tmp_path) as third:
            assert third.count() == (4, 2)
            first.kill()
            assert third.count() == (5, 1)


def test_files_have_their_room_from_the_beginning(tmp_path: Path) -> None:
    """A page of a mapped file for which there is no room kills its process."""
    with counting(tmp_path) as one:
        one.count()
        for path in tmp_path.glob("*.db"):
            assert path.stat().st_blocks * 512 >= path.stat().st_size


def test_a_directory_goes_with_its_service_and_those_of_killed_ones_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "_MEMORY", tmp_path / "none")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "bochner-metrics-left"
    new = tmp_path / "bochner-metrics-new"
    for one in (left, new):
        one.mkdir()
        (one / "counter_0.db").write_bytes(b"x")
    os.utime(left, (0, time.time() - 3600))
    with slots.shared() as directory:
        assert {*tmp_path.iterdir()} == {directory, new}, "one that begins just now is left alone"
        assert directory.stat().st_mode & 0o77 == 0
    assert {*tmp_path.iterdir()} == {new}
