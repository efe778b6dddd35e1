"""`bochner transform` where processes are killed, disks are full and files are larger than memory."""

import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from service_tests.commands.runs import big, command, ran, rows
from service_tests.running import Running
from service_tests.store.small_disk import small_disk


@pytest.mark.nightly
def test_a_run_that_is_killed_five_times_goes_on_and_has_every_row_once(
    running: Running, map_name: str, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "in").mkdir()
    n = 400_000
    big(tmp_path / "in" / "groups.parquet", n, 20_000)
    big(tmp_path / "in" / "one.parquet", n, n)
    out, most, n_files = tmp_path / "out", 2_000, 400
    options = (tmp_path / "in", out, "--rows-per-file", most)
    assert ran(running, map_name, tmp_path / "in", tmp_path / "whole", "--rows-per-file", most).returncode == 0
    counts = [0]
    for _ in range(5):
        going = subprocess.Popen(command(running, map_name, *options), stderr=subprocess.DEVNULL)
        while going.poll() is None and len([*out.glob("*.parquet")]) < counts[-1] + 5:
            time.sleep(0.001)
        going.send_signal(signal.SIGKILL)
        assert going.wait() == -signal.SIGKILL
        counts.append(len([*out.glob("*.parquet")]))
    assert all(later > before for before, later in pairwise(counts))
    last = ran(running, map_name, *options)
    assert last.returncode == 0, last.stderr
    left = 2 * n - most * counts[-1]
    assert f"{2 * n:,} rows of 2 files are in {n_files} files, {left:,} of them now" in last.stdout
    names = sorted(one.name for one in (tmp_path / "out").iterdir())
    assert names == sorted(one.name for one in (tmp_path / "whole").iterdir()), "something is left of the killed"
    for stem in ("groups", "one"):
        parts = sorted((tmp_path / "out").glob(f"{stem}-*.parquet"))
        ids = np.concatenate([parquet.read_table(one, columns=["id"]).column("id").to_numpy() for one in parts])
        np.testing.assert_array_equal(ids, np.arange(n))
        assert all(one.read_bytes() == (tmp_path / "whole" / one.name).read_bytes() for one in parts)


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
