"""Clients do whatever comes to their minds, everything is disturbed, and nothing is wrong; and what would be wrong."""

import sys
from pathlib import Path

import pytest

from service_tests.cases import few_and_many
from service_tests.soak.disturbances import ALL
from service_tests.soak.growth import check_flat
from service_tests.soak.model import Job, Model, Name, Wrong
from service_tests.soak.runner import CLIENTS, soaked

STEPS_OF_A_CLIENT = 10
"""While one disturbance comes and goes."""


@pytest.mark.skipif(sys.platform != "linux", reason="open files have paths in /proc on Linux only")
@pytest.mark.gate
@pytest.mark.parametrize("rounds", few_and_many(1, 5))
def test_nothing_is_lost_changed_resurrected_or_repeated(tmp_path: Path, rounds: int) -> None:
    """Each disturbance comes once a round; memory is measured where there are several."""
    steps = CLIENTS * STEPS_OF_A_CLIENT * len(ALL) * rounds
    figures = soaked(tmp_path, 1, steps, list(ALL), 6000 if rounds > 1 else 0, in_a_round=STEPS_OF_A_CLIENT)
    assert sum(figures.steps.values()) >= steps
    assert set(figures.disturbances) == set(ALL)
    if rounds > 1:
        assert max(map(max, figures.ready.values())) < 50  # ten times what is promised, as the machine may be busy


def test_a_name_is_only_what_it_can_be() -> None:
    name = Name()
    name.seen(None)
    name.perhaps("a")
    assert not name.known
    name.seen("a")
    assert name.value == "a"
    for value, building in ((None, False), ("b", False), ("a", True)):
        with pytest.raises(Wrong):
            name.seen(value, building)


def test_a_job_that_has_ended_stays_as_it_was() -> None:
    ended = {"state": "succeeded", "ended_at": "2026-11-22T00:00:00Z"}
    job = Job("/v1/jobs/1", 0)
    job.seen({"state": "running", "ended_at": None})
    assert job.record is None
    job.seen(ended)
    job.seen(ended)
    for later in ({**ended, "progress": 0.5}, {"state": "running", "ended_at": None}):
        with pytest.raises(Wrong):
            job.seen(later)
    for state, cancelled in (("cancelled", False), ("succeeded", True), ("failed", None)):
        with pytest.raises(Wrong):
            Job("/v1/jobs/2", 0, cancelled=cancelled).seen({**ended, "state": state})
    Job("/v1/jobs/3", 0, cancelled=None).seen(ended)


def test_what_grows_from_minute_to_minute_is_wrong() -> None:
    minutes = [{"bytes": 100 << 20, "descriptors": 28, "keys": 300 * min(i, 6)} for i in range(1, 31)]
    check_flat(minutes)
    for grown, much in (("bytes", 31 << 20), ("descriptors", 21), ("keys", 1000)):
        with pytest.raises(Wrong):
            check_flat([*minutes, {**minutes[-1], grown: minutes[-1][grown] + much}])


def test_a_list_has_what_is_there_and_nothing_else() -> None:
    model = Model("c", 3)
    model.maps["c-0"].is_now("a")
    model.maps["c-1"].perhaps("a")
    model.listed(["c-0"])
    model.listed(["c-0", "c-1"])
    for names in ([], ["c-0", "c-2"], ["c-0", "c-7"]):
        with pytest.raises(Wrong):
            model.listed(names)
