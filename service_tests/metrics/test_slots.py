import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app import metrics

# Counts as often as it is told to, one line each; then tells what all processes have counted.
PROGRAM = """
import os, sys
from pathlib import Path
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from app.metrics import LIVE_SUM, Slot
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


@contextmanager
def counting(directory: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that counts beside others in a directory."""
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(directory)}
    line, pipe = [sys.executable, "-c", PROGRAM], subprocess.PIPE
    with subprocess.Popen(line, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        process.kill()


def count(process: "subprocess.Popen[str]") -> tuple[float, float]:
    """Let a process count once more; gives what all have counted, and how many live."""
    assert process.stdin is not None
    assert process.stdout is not None
    print("once", file=process.stdin, flush=True)
    told = dict(line.split(" ") for line in process.stdout.readline().strip().split(";") if line)
    return float(told["counted_total"]), float(told["alive"])


def test_what_a_killed_process_has_counted_stays_and_its_gauges_go(tmp_path: Path) -> None:
    with counting(tmp_path) as first, counting(tmp_path) as second:
        assert count(first)[0] == 1
        assert count(second) == (2, 2)
        for path in tmp_path.glob("*.db"):  # a page of a mapped file for which there is no room kills its process
            assert path.stat().st_blocks * 512 >= path.stat().st_size
        second.kill()
        second.wait()
        assert count(first) == (3, 1)
        with counting(tmp_path) as third:
            assert count(third) == (4, 2)
            first.kill()
            first.wait()
            assert count(third) == (5, 1)


def test_processes_go_on_counting_if_their_directory_is_removed(tmp_path: Path) -> None:
    directory = tmp_path / "directory"
    directory.mkdir()
    with counting(directory) as first:
        assert count(first) == (1, 1)
        shutil.rmtree(directory)
        with counting(directory) as second:
            assert count(second) == (1, 1)
            assert count(first) == (1, 1)  # what it has counted itself is lost with its files
            assert count(second) == (2, 1)


def test_a_directory_goes_with_its_service_and_those_of_killed_ones_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_MEMORY", tmp_path / "none")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "bochner-metrics-left"
    new = tmp_path / "bochner-metrics-new"
    for one in (left, new):
        one.mkdir()
        (one / "counter_0.db").write_bytes(b"x")
    os.utime(left, (0, time.time() - 3600))
    with metrics.share_directory() as directory:
        assert {*tmp_path.iterdir()} == {directory, new}, "one that begins just now is left alone"
        assert directory.stat().st_mode & 0o77 == 0
    assert {*tmp_path.iterdir()} == {new}
