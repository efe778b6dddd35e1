"""The quota of a store whose places have accounts of their own."""

import threading
from contextlib import suppress

import pytest

from app.store.account import Account, Quota
from app.store.clients import Client
from app.store.connection import connect
from app.store.errors import QuotaExceeded
from app.store.places import MANY
from service_tests.ledger import assert_true, held, pass_time
from service_tests.store.charged import put_dataset

BYTES = 32 * 10  # of a dataset of ten rows


@pytest.fixture
def many(client: Client) -> Client:
    client.places = MANY
    return client


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
