"""Names that are held for what a job makes."""

import json

import pytest
import redis

from app.jobs import scripts
from app.jobs.errors import JobHasEnded
from app.jobs.jobs import Jobs
from app.jobs.queue import Message, Queue
from app.jobs.record import JobError
from app.store.errors import Gone
from app.store.map_manifest import MapManifest
from app.store.maps import MapStore
from app.store.pieces import PIECE_BYTES
from app.store.reservations import NameTaken, State
from service_tests.checks import keys_of
from service_tests.jobs.site import attempt
from service_tests.store.new_maps import new

LONG = json.dumps({"seed": 0, "frequencies": "x" * (5 * PIECE_BYTES // 2)})
ERROR = JobError(reason="invalid-input", detail='it is ünlucky: 50 %/"', pointer=None)


def reserve(client: redis.Redis, spec: str = LONG) -> MapManifest:
    """A job that builds a map, and what stands for the map."""
    jobs = Jobs(client, 10, 600)
    manifest, reservation = MapStore(client).reserve("m", spec, jobs.new_id())
    jobs.submit("build-map", {}, reservation=reservation, job_id=manifest.job or "")
    return manifest


def end(client: redis.Redis, manifest: MapManifest, state: str) -> None:
    """Have the job of a reservation run and end."""
    running = attempt(client, manifest.job or "")
    error = ERROR.model_dump_json() if state == "failed" else ""
    assert scripts.run(client, "end", running.job_id, running.message, state, 600, error, "") == 1


def pieces(client: redis.Redis) -> set[bytes]:
    return {key for key in keys_of(client, "m") if not key.endswith(b":manifest")}


def test_a_reservation_comes_and_goes_with_its_job(client: redis.Redis, maps: MapStore) -> None:
    manifest = reserve(client)
    assert maps.find("m") == manifest
    assert (manifest.state, manifest.digest, manifest.arrays) == (State.building, "", {})
    assert maps.spec(manifest) == LONG
    assert maps.page("", None, 10) == ([manifest], None)
    assert len(pieces(client)) == 3
    assert {client.ttl(key) for key in keys_of(client, "m")} == {-1}
    Jobs(client, 1, 600).cancel(manifest.job or "")
    assert maps.find("m") is None
    with pytest.raises(Gone):
        maps.spec(manifest)
    assert maps.with_spec(manifest) is None
    assert maps.page("", None, 10) == ([], None)
    assert keys_of(client, "m") == set()


def test_a_running_job_that_is_cancelled_frees_the_name_at_once(client: redis.Redis, maps: MapStore) -> None:
    manifest = reserve(client)
    running = attempt(client, manifest.job or "")
    Jobs(client, 1, 600).cancel(manifest.job or "")
    assert keys_of(client, "m") == set()
    with pytest.raises(NameTaken):
        maps.create(new(), manifest)
    assert keys_of(client, "m") == set()
    again = reserve(client)
    Queue(client, 600).take_back(Message(running.message, running.job_id), deaths=0)
    assert maps.find("m") == again, "the end of the first is nothing to the second"
    with pytest.raises(NameTaken):
        maps.create(new(), manifest)


def test_the_map_takes_the_place_of_its_reservation(client: redis.Redis, maps: MapStore) -> None:
    manifest = reserve(client)
    built = maps.create(new(), manifest)
    assert maps.find("m") == built
    assert maps.with_spec(manifest) == (built, new().spec), "who has found the reservation a moment ago"
    assert (built.state, built.job) == (State.ready, None)
    assert all(f":{built.token}:".encode() in piece for piece in pieces(client))
    assert {client.ttl(key) for key in keys_of(client, "m")} == {-1}
    before = keys_of(client, "m")
    with pytest.raises(NameTaken):
        maps.create(new(), manifest)
    running = attempt(client, manifest.job or "")
    with pytest.raises(JobHasEnded):  # but for writing it down
        Jobs(client, 1, 600).cancel(manifest.job or "")
    assert scripts.run(client, "end", running.job_id, running.message, "succeeded", 600, "", "") == 1
    assert keys_of(client, "m") == before


def test_a_job_that_fails_leaves_its_error_and_the_name_to_the_next(client: redis.Redis, maps: MapStore) -> None:
    failed = reserve(client)
    end(client, failed, "failed")
    there = maps.find("m")
    assert there is not None
    assert there == failed.model_copy(update={"state": State.failed, "error": ERROR.model_dump()})
    assert maps.spec(there) == LONG
    with pytest.raises(NameTaken):
        maps.create(new(), failed)  # of an attempt that was thought to be dead
    again = reserve(client, "{}")
    assert maps.find("m") == again
    assert len(pieces(client)) == 1, "the spec of the one that failed is gone"
    end(client, again, "failed")
    built = maps.create(new())
    assert maps.find("m") == built
    assert all(f":{built.token}:".encode() in piece for piece in pieces(client))
    assert maps.delete("m")
    assert keys_of(client, "m") == set()
