"""Loops in a process that can keep them, and in one that can write nowhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.core import compiled
from app.services import warm_up

PROGRAM = """
import numpy as np
from app.core.hashing.parameter_stream import logarithms
from app.core.hashing.sampling import count_collisions

values = np.array([1.0, 2.0])
logarithms(values, values)
assert np.allclose(values, [0, np.log(2)])
print(count_collisions.stats.cache_path)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("writable", [False, True])
def test_where_nothing_can_be_written_loops_are_compiled_all_the_same(writable: bool, tmp_path: Path) -> None:
    # To root every directory is writable, so numba is told to try this one only; below /proc nobody makes another.
    place = {
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",
        "NUMBA_CACHE_DIR": str(tmp_path) if writable else "/proc/none",
    }
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | place,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(str(tmp_path)) if writable else run.stdout == "None\n"
    assert any(tmp_path.iterdir()) == writable


def test_processes_agree_on_the_directory_whatever_they_import_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(warm_up.PARTS) > 1, "the locks of parts lie there"
    directory = compiled.kept_in()
    monkeypatch.setattr(compiled, "LOOPS", compiled.LOOPS[::-1])
    assert compiled.kept_in() == directory
