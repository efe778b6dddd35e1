"""The soak finds each of the faults that are planted for it, by a few steps of one client."""

import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from service_tests.soak.actions import delete_map, put_map, use_map
from service_tests.soak.client import Client
from service_tests.soak.model import Wrong
from service_tests.soak.runner import Soak

ROUNDS = 200
"""More than any fault takes."""


def put_use_and_delete(soak: Soak, client: Client) -> None:
    """Use what stands under one name in both replicas, and then something else under the same name."""
    del soak
    client.model.maps = dict([*client.model.maps.items()][:1])
    for action in (put_map, use_map, use_map, delete_map, use_map):
        action(client)


def wait_for_jobs(soak: Soak, client: Client) -> None:
    """Leave maps to jobs, and look how often each was done."""
    del soak
    put_map(client)
    client.follow_all()


def lose_power(soak: Soak, client: Client) -> None:
    """Look for acknowledged maps after a power loss."""
    for _ in range(20):
        put_map(client)
    soak.disturb("lose_power")
    client.settle()


def repeat(script: Callable[[Soak, Client], None], soak: Soak) -> None:
    """Have one client do the same until something is wrong, but not for ever."""
    for _ in range(ROUNDS):
        script(soak, soak.clients[0])


SCRIPTS: dict[str, Callable[[Soak, Client], None]] = {
    "missing_sync": lose_power,
    "stale_cache": put_use_and_delete,
    "resurrected_key": put_use_and_delete,
    "job_done_twice": wait_for_jobs,
}


@pytest.mark.skipif(sys.platform != "linux", reason="open files have paths in /proc on Linux only")
@pytest.mark.gate
@pytest.mark.parametrize("fault", SCRIPTS)
def test_a_fault_is_found(tmp_path: Path, fault: str) -> None:
    with closing(Soak(tmp_path, 1, fault)) as soak:
        soak.begin()
        with pytest.raises(Wrong):
            repeat(SCRIPTS[fault], soak)


@pytest.mark.skipif(sys.platform != "linux", reason="open files have paths in /proc on Linux only")
@pytest.mark.nightly
def test_a_leak_is_found(tmp_path: Path) -> None:
    """It shows in memory only."""
    with closing(Soak(tmp_path, 1, "leak")) as soak:
        soak.begin()
        with pytest.raises(Wrong, match="bytes in memory"):
            soak.measure_growth(2000)
