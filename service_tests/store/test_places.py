"""Where things lie in a store of several places, and the quota of all together."""

import random
import threading
from contextlib import suppress

import pytest
from redis.crc import key_slot

from app.jobs.jobs import Jobs
from app.store.account import Account, Quota
from app.store.connection import MANY, Client, connect
from app.store.errors import QuotaExceeded
from app.store.maps import MapStore
from service_tests.ledger import assert_true, held, pass_time
from service_tests.store.charged import put_dataset
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


BYTES = 32 * 10  # of a dataset of ten rows


def test_the_limit_of_a_store_is_that_of_all_its_places_together(many: Client) -> None:
    quota = Quota(None, 20)
    for i in range(20):
        assert put_dataset(many, f"d{i}", quota=quota)
    with pytest.raises(QuotaExceeded, match=r"^1 names more were to be kept beside 20; max_store_names is 20$"):
        put_dataset(many, "one-more", quota=quota)
    with pytest.raises(QuotaExceeded, match=r"^1 names more were to be kept beside 20; max_store_names is 20$"):
        Account(many, quota).check(0)
    assert assert_true(many).names == held(many).names == 20
    full = Quota(20 * BYTES)
    with pytest.raises(
        QuotaExceeded, match=f"^{BYTES} bytes more were to be kept beside {20 * BYTES}; max_store_bytes"
    ):
        put_dataset(many, "one-more", quota=full)
    Account(many, Quota(21 * BYTES, 21)).check(BYTES)
    assert put_dataset(many, "one-more", quota=Quota(21 * BYTES, 21))


def test_those_that_come_at_once_never_pass_the_limit(many: Client, url: str) -> None:
    quota, most = Quota(None, 10), list[int]()

    def put(thread: int) -> None:
        with connect(url, 5) as client:
            client.places = MANY
            for i in range(10):
                with suppress(QuotaExceeded):
                    put_dataset(client, f"d{thread}-{i}", 1, quota=quota)
                most.append(held(client).names)

    threads = [threading.Thread(target=put, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 7 <= max(most) <= 10  # some may be refused together, where there was room for one
    pass_time(many)
    assert assert_true(many).names == max(most)
