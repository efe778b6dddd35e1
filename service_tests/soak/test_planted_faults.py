"""The soak finds each of the faults that are planted for it."""

import sys
from pathlib import Path

import pytest

from service_tests.cases import with_nightly
from service_tests.soak.faults import FAULTS
from service_tests.soak.model import Wrong
from service_tests.soak.runner import soaked

STEPS = 800
DISTURBANCES = {"missing_sync": ["lose_power"]}
"""What it takes to see a fault at all."""


@pytest.mark.skipif(sys.platform != "linux", reason="open files have paths in /proc on Linux only")
@pytest.mark.gate
@pytest.mark.parametrize("fault", with_nightly([fault for fault in FAULTS if fault != "leak"], ["leak"]))
def test_a_fault_is_found(tmp_path: Path, fault: str) -> None:
    # A leak shows in memory only.
    steps, requests = (0, 2000) if fault == "leak" else (STEPS, 0)
    with pytest.raises(Wrong):
        soaked(tmp_path, 1, steps, DISTURBANCES.get(fault, []), requests, fault)
