"""Connections that are cut after the store has done what it was told."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.jobs.errors import JobHasEnded
from app.jobs.jobs import Jobs
from app.services.cache import Cache
from app.services.errors import MapNotFound
from app.store.connection import connect
from app.store.maps import MapStore
from app.store.reservations import NameTaken
from service_tests.checks import keys, put
from service_tests.running import service
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


def test_a_piece_whose_reply_is_lost_is_written_again(cut: Wire) -> None:
    with connect(cut.url, 5) as client:
        cut.lose_reply_to(b"frequencies:1")
        manifest = MapStore(client).create(new(megabytes=2.5))
        assert cut.lost == 1
        MapStore(client).read(manifest, "frequencies")


def test_a_delete_whose_reply_is_lost_is_still_reported_as_done(cut: Wire) -> None:
    with connect(cut.url, 5) as client:
        maps = MapStore(client)
        maps.create(new())
        cut.lose_reply_to(b"EVALSHA")
        assert maps.delete("m")
        assert cut.lost == 1
        assert keys(client) == set()
        assert not maps.delete("m")


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


def test_a_cancel_whose_reply_is_lost_is_still_reported_as_done(cut: Wire) -> None:
    with connect(cut.url, 5) as client:
        jobs = Jobs(client, 10, 60)
        known, job = (jobs.submit("test-walk", {}).id for _ in range(2))
        jobs.cancel(known)  # the script is known to the server then
        cut.lose_reply_to(b"EVALSHA")
        assert jobs.cancel(job).state == "cancelled"
        assert cut.lost == 1
        with pytest.raises(JobHasEnded):
            jobs.cancel(job)


@pytest.mark.nightly
def test_over_http_a_lost_reply_is_not_seen(cut: Wire, tmp_path: Path, gaussian: dict[str, Any]) -> None:
    with (
        service(tmp_path / "data", "--redis-url", cut.url) as running,
        running.client() as http,
    ):
        cut.lose_reply_to(_COMMIT)
        assert put(http, "m", gaussian).status_code == 201
        assert cut.lost == 1
        assert put(http, "m", gaussian).status_code == 200
        cut.lose_reply_to(b"EVALSHA")
        assert http.delete("/v1/maps/m").status_code == 204
        assert cut.lost == 2
        assert http.get("/health/ready").status_code == 200
