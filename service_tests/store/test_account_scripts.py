"""The account is true whichever replies of its scripts are lost."""

import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import redis

from app.jobs.jobs import Jobs
from app.jobs.record import JobHasEnded
from app.store.connection import connect
from app.store.datasets import DatasetStore
from app.store.errors import StoreUnavailable
from app.store.maps import MapManifest, MapStore
from app.store.named import NameTaken
from service_tests.cases import with_nightly
from service_tests.ledger import assert_true, held, pass_time
from service_tests.servers import EVERY_WRITE, valkey, wire
from service_tests.store.charged import building, put_dataset
from service_tests.store.new_maps import new


def free(jobs: Jobs, stored: bytes, receipt: str) -> None:
    there = MapManifest.parse(stored)
    if there.job is not None:
        with suppress(JobHasEnded):
            jobs.cancel(there.job, receipt)


def renew(client: redis.Redis, name: str, ttl: int | None) -> None:
    there = DatasetStore(client).find(name)
    if there is not None:
        DatasetStore(client).renew(there, ttl)


def chances(cut: Callable[[bytes], None], client: redis.Redis, seed: int) -> None:
    """A hundred changes of all kinds, of which some lose a reply."""
    chance = random.Random(seed)
    maps, datasets, jobs = MapStore(client), DatasetStore(client), Jobs(client, 100, 60)
    changes: list[Callable[[str, int], object]] = [
        lambda name, step: maps.create(new(name, seed=step)),
        lambda name, _: maps.delete(name, partial(free, jobs)),
        lambda name, step: put_dataset(client, name, 1 + step, ttl=chance.choice([None, 100])),
        lambda name, _: datasets.delete(name),
        lambda name, _: building(client, name),
        lambda name, _: renew(client, name, chance.choice([None, 100])),
        lambda _, step: jobs.submit("walk", {}, attachments={"x": bytes(step)}),
    ]
    for step in range(100):
        if chance.random() < 0.3:
            cut(chance.choice([b"EVALSHA", b"SET"]))
        with suppress(NameTaken, StoreUnavailable):
            chance.choice(changes)(f"n{chance.randrange(4)}", step)


@pytest.mark.parametrize("seed", with_nightly([0], [1, 2]))
def test_lost_replies_leave_the_account_true(tmp_path: Path, seed: int) -> None:
    with valkey(tmp_path, *EVERY_WRITE) as url, wire(url) as cut, connect(url, 5) as near, connect(cut.url, 5) as far:
        chances(cut.lose_reply_to, far, seed)
        assert cut.lost > 5
        assert_true(near)
        pass_time(near)
        assert assert_true(near).nbytes == held(near).nbytes > 0
