"""Clients do whatever comes to their minds, everything is disturbed, and nothing is wrong."""

import sys
from pathlib import Path

import pytest

from service_tests.cases import few_and_many
from service_tests.soak.disturbances import ALL
from service_tests.soak.runner import CLIENTS, soaked

STEPS_OF_A_CLIENT = 10
"""While one disturbance comes and goes."""


@pytest.mark.skipif(sys.platform != "linux", reason="open files have paths in /proc on Linux only")
@pytest.mark.gate
@pytest.mark.parametrize("rounds", few_and_many(1, 5))
def test_nothing_is_lost_changed_resurrected_or_repeated(tmp_path: Path, rounds: int) -> None:
    """Each disturbance comes once a round; memory is measured where there are several."""
    steps = CLIENTS * STEPS_OF_A_CLIENT * len(ALL) * rounds
    figures = soaked(tmp_path, 1, steps, list(ALL), STEPS_OF_A_CLIENT, 6000 if rounds > 1 else 0)
    assert sum(figures.steps.values()) >= steps
    assert set(figures.disturbances) == set(ALL)
    if rounds > 1:
        assert max(map(max, figures.ready.values())) < 50  # ten times what is promised, as the machine may be busy
