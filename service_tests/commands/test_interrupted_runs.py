"""`bochner transform` where processes are killed and disks are full."""

import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from service_tests.commands.runs import big, command, ran, rows
from service_tests.running import Running
from service_tests.store.small_disk import small_disk


@pytest.mark.nightly
def test_on_a_full_disk_a_run_ends_and_goes_on_when_there_is_room(
    running: Running, map_name: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    np.save(tmp_path / "x.npy", rows(100_000))  # 19 MB of features
    with small_disk(tmp_path, 12) as disk:
        options = (tmp_path / "x.npy", disk / "out", "--rows-per-file", 10_000)
        full = ran(running, map_name, *options)
        assert full.returncode == 1
        assert "No space left on device" in full.stderr
        assert "The same command goes on from here" in full.stderr
        assert not [*disk.rglob("*.partial")]
        assert 3 <= len([*disk.rglob("x-*.npy")]) <= 6
        subprocess.run(["mount", "-o", "remount,size=40m", str(disk)], check=True)
        assert "100,000 rows of 1 file are in 10 files" in ran(running, map_name, *options).stdout


@pytest.mark.nightly
def test_a_run_that_is_killed_three_times_goes_on_and_has_every_row_once(
    running: Running, map_name: str, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    n, most = 400_000, 2_000
    big(tmp_path / "x.parquet", n, 20_000)
    out, whole = tmp_path / "out", tmp_path / "whole"
    assert ran(running, map_name, tmp_path / "x.parquet", whole, "--rows-per-file", most).returncode == 0
    options, count = (tmp_path / "x.parquet", out, "--rows-per-file", most), 0
    for _ in range(3):
        going = subprocess.Popen(command(running, map_name, *options), stderr=subprocess.DEVNULL)
        while going.poll() is None and len([*out.glob("*.parquet")]) < count + 5:
            time.sleep(0.001)
        going.send_signal(signal.SIGKILL)
        assert going.wait() == -signal.SIGKILL
        before, count = count, len([*out.glob("*.parquet")])
        assert count > before
    last = ran(running, map_name, *options)
    assert last.returncode == 0, last.stderr
    assert f"{n:,} rows of 1 file are in 200 files, {n - most * count:,} of them now" in last.stdout
    names = sorted(one.name for one in out.iterdir())
    assert names == sorted(one.name for one in whole.iterdir()), "something is left of the killed"
    parts = sorted(out.glob("*.parquet"))
    ids = np.concatenate([parquet.read_table(one, columns=["id"]).column("id").to_numpy() for one in parts])
    np.testing.assert_array_equal(ids, np.arange(n))
    assert all(one.read_bytes() == (whole / one.name).read_bytes() for one in parts)
