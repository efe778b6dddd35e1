"""Connections that are cut after the store has done what it was told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.jobs.jobs import Jobs
from app.services.cache import Cache
from app.services.errors import MapNotFound
from app.store.connection import connect
from app.store.maps import MapStore
from app.store.reservations import NameTaken
from service_tests.checks import keys
from service_tests.servers import EVERY_WRITE, Wire, valkey, wire
from service_tests.services.conftest import Service
from service_tests.store.new_maps import new

# Only the script that commits a manifest, or deletes one, is given it.
_COMMIT = b"schema_version"


@pytest.fixture
def cut(tmp_path: Path) -> Iterator[Wire]:
    with valkey(tmp_path, *EVERY_WRITE) as url, wire(url) as made:
        yield made


@pytest.mark.parametrize("known", [False, True], ids=["script unknown to the server", "script known"])
def test_a_create_whose_reply_is_lost_is_still_reported_as_created(cut: Wire, known: bool) -> None:
    with connect(cut.url, 5) as client:
        maps = MapStore(client)
        if known:
            maps.create(new("earlier"))
        cut.lose_reply_to(_COMMIT)
        manifest = maps.create(new())
        assert cut.lost == 1
        assert maps.find("m") == manifest
        assert {client.ttl(key) for key in keys(client)} == {-1}
        with pytest.raises(NameTaken):
            maps.create(new())


def test_a_cancelled_build_whose_reply_is_lost_is_still_reported_as_deleted(cut: Wire) -> None:
    with connect(cut.url, 5) as client:
        jobs, maps = Jobs(client, 10, 60), Service(client, Cache(1))
        job = jobs.new_id()
        jobs.submit("build-map", {}, reservation=MapStore(client).reserve("m", "{}", job)[1], job_id=job)
        cut.lose_reply_to(b"EVALSHA")
        maps.delete("m")
        assert cut.lost == 1
        assert jobs.get(job).state == "cancelled"
        with pytest.raises(MapNotFound):
            maps.delete("m")
