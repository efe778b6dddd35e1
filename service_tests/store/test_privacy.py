"""Directories of a store: who may look into them, and that they outlast a power loss."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from app.store.embedded import EmbeddedStore, make_private
from app.store.server import StoreNotStarted
from service_tests.power.disk import Disk, Loss
from service_tests.servers import STORE_PROGRAM
from service_tests.store.site import reachable

NOBODY = 65534


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_directory_that_is_open_is_closed_and_that_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    with EmbeddedStore(data, STORE_PROGRAM) as store:
        assert reachable(store.url)
        assert mode(data) == 0o700
    assert "was open to other users (mode 755)" in caplog.text
    data.chmod(0o701)  # by a later hand
    with EmbeddedStore(data, STORE_PROGRAM):
        assert mode(data) == 0o700


def test_a_directory_with_other_things_is_not_closed_to_those_who_use_them(tmp_path: Path) -> None:
    (tmp_path / "somebody's").touch()
    tmp_path.chmod(0o755)
    with pytest.raises(StoreNotStarted, match=rf"mode 755.*chmod 700 {tmp_path}"):
        EmbeddedStore(tmp_path, STORE_PROGRAM).start()
    assert mode(tmp_path) == 0o755
    assert {path.name for path in tmp_path.iterdir()} == {"somebody's"}


@pytest.mark.parametrize(("opened", "taken"), [(0o2775, True), (0o2770, True), (0o777, False), (0o1777, False)])
def test_what_is_somebody_elses_is_taken_unless_everybody_may_write(tmp_path: Path, opened: int, taken: bool) -> None:
    """As volumes are that containers share by a group."""
    if os.geteuid():
        pytest.skip("this user may not give a directory away")
    os.chown(tmp_path, NOBODY, NOBODY)
    tmp_path.chmod(opened)
    if taken:
        make_private(tmp_path)
    else:
        with pytest.raises(StoreNotStarted, match=f"mode {opened:o}"):
            make_private(tmp_path)
    assert mode(tmp_path) == opened


MADE = """
import os, sys
from pathlib import Path
from app.store.data_files import make_lasting

Path("plain").mkdir()
make_lasting(Path("there") / "above" / "data")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="open files have paths in /proc on Linux only")
def test_a_directory_outlasts_a_power_loss_and_so_do_those_above_it(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    (disk.root / "there").mkdir()
    disk.settle()
    command, root = [sys.executable, "-c", MADE], Path(__file__).parents[2]
    subprocess.run(command, cwd=disk.root, env={**disk.environment, "PYTHONPATH": str(root)}, check=True)
    assert (disk.root / "plain").is_dir()
    disk.lose_power(Loss("synced", "cut"), Random())
    assert [path.relative_to(disk.root).as_posix() for path in sorted(disk.root.rglob("*"))] == [
        *("there", "there/above", "there/above/data")
    ]
