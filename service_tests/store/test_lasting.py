import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from service_tests.power.disk import Disk, Loss

MADE = """
import os, sys
from pathlib import Path
from app.store.lasting import make_lasting

Path("plain").mkdir()
make_lasting(Path("there") / "above" / "data")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="open files have paths in /proc on Linux only")
def test_a_directory_outlasts_a_power_loss_and_so_do_those_above_it(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    (disk.root / "there").mkdir()
    disk.settle()
    command, root = [sys.executable, "-S", "-c", MADE], Path(__file__).parents[2]
    subprocess.run(command, cwd=disk.root, env={**disk.environment, "PYTHONPATH": str(root)}, check=True)
    assert (disk.root / "plain").is_dir()
    disk.lose_power(Loss("synced", "cut"), Random())
    assert [path.relative_to(disk.root).as_posix() for path in sorted(disk.root.rglob("*"))] == [
        *("there", "there/above", "there/above/data")
    ]
