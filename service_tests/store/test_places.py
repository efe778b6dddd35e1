"""Where things lie in a store of several places."""

import random

import pytest
from redis.crc import key_slot

from app.jobs.jobs import Jobs
from app.store.clients import Client
from app.store.maps import MapStore
from app.store.places import MANY
from service_tests.store.new_maps import new

SLOTS = "492 1410 2518 3689 4557 5539 6647 7752 8622 9730 10624 11819 12687 13859 14753 15882"


@pytest.fixture
def many(client: Client) -> Client:
    """The client of a server that is used as if each place were on another."""
    client.places = MANY
    return client


def test_each_place_lies_in_a_sixteenth_of_the_slots_of_its_own_so_that_nodes_have_the_same_share() -> None:
    slots = [key_slot(f"{root}account".encode()) for root in MANY.roots]
    assert [slot // 1024 for slot in slots] == list(range(16))
    # What was stored is found by these: another tag, or another choice, would lose it.
    assert slots == [int(one) for one in SLOTS.split()]
    assert [MANY.roots.index(MANY.of(name)) for name in ("letters", "m", "n", "a-b_c.d")] == [11, 8, 2, 10]


def test_lists_go_through_the_names_of_all_places_in_order(many: Client) -> None:
    names = sorted(f"m{random.Random(i).randrange(10**6)}" for i in range(20))
    maps = MapStore(many)
    for name in names:
        maps.create(new(name))
    for limit in (1, 7, 20, 100):
        found, after = [], None
        while True:
            page, after = maps.page("m", after, limit)
            assert len(page) <= limit
            found += [one.name for one in page]
            if after is None:
                break
        assert found == names
    jobs = Jobs(many, 1000, 60)
    ids = [jobs.submit("walk", {}).id for _ in range(20)]
    listed: list[str] = []
    cursor = None
    while len(listed) < 20:
        some = jobs.page(None, cursor, 9)
        listed += [job.id for job in some.jobs]
        cursor = some.next
    assert cursor is None
    assert sorted(ids) == listed
    assert jobs.tally().queued == 20
