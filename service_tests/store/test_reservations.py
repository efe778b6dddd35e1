"""Names that are held for what a job makes, and how long maps live that were put for a time."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import redis

from app.jobs import scripts
from app.jobs.jobs import Jobs
from app.jobs.record import JobError, JobHasEnded
from app.store.errors import Gone
from app.store.indexes import IndexState, IndexStore
from app.store.maps import MapManifest, MapStore
from app.store.named import NameTaken, State
from app.store.pieces import PIECE_BYTES
from service_tests.checks import keys, keys_of
from service_tests.jobs.site import attempt
from service_tests.ledger import assert_true, entries, pass_time
from service_tests.servers import until
from service_tests.store.new_indexes import entry, new_index
from service_tests.store.new_maps import new

LONG = json.dumps({"seed": 0, "frequencies": "x" * (5 * PIECE_BYTES // 2)})
ERROR = JobError(reason="invalid-input", detail='it is ünlucky: 50 %/"', pointer=None)


def reserve(client: redis.Redis, spec: str = LONG, ttl: int | None = None) -> MapManifest:
    """A job that builds a map, and what stands for the map."""
    jobs = Jobs(client, 10, 600)
    manifest, reservation = MapStore(client).reserve("m", spec, jobs.new_id(), ttl=ttl)
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


def lives(client: redis.Redis, seconds: int | None) -> bool:
    """Whether all keys of the map end together in so many seconds from now, None for never; and its entry with them."""
    left = {client.ttl(key) for key in keys_of(client, "m")}
    entry = client.zscore("bochner:account:ends", next(one for one in entries(client) if "{map:m}" in one))
    if seconds is None:
        return left == {-1} and entry is None
    return all(seconds - 5 <= one <= seconds for one in left) and entry is not None


def age(client: redis.Redis, maps: MapStore, seconds: int) -> MapManifest:
    """Have a map look as if it had not been used for so long; gives its manifest."""
    there = maps.find("m")
    assert there is not None
    assert there.expires_at is not None
    assert there.ttl is not None
    older = there.model_copy(update={"expires_at": there.expires_at - timedelta(seconds=seconds)})
    for key in keys_of(client, "m"):
        client.expire(key, there.ttl - seconds)
    client.set("bochner:{map:m}:manifest", older.stored, keepttl=True)
    return older


def test_all_of_a_map_ends_together_and_its_name_is_free(client: redis.Redis, maps: MapStore) -> None:
    manifest = maps.create(new(megabytes=1.5)._replace(ttl=2))
    assert (manifest.ttl, manifest.expires_at) == (2, manifest.created_at + timedelta(seconds=2))
    ends = [client.pexpiretime(key.decode()) for key in keys_of(client, "m")]
    assert len(ends) == 5
    assert max(ends) - min(ends) < 50
    until(lambda: maps.find("m") is None)
    assert maps.page("", None, 10) == ([], None)
    until(lambda: keys(client) == set())
    maps.create(new(seed=1))
    pass_time(client)
    assert_true(client)
    assert lives(client, None)


def test_a_use_moves_the_end_on_once_a_sixteenth_of_the_time_has_passed(client: redis.Redis, maps: MapStore) -> None:
    maps.create(new()._replace(ttl=1600))
    assert not age(client, maps, 90).is_due
    aged = age(client, maps, 20)
    assert aged.is_due
    maps.note_use(aged)
    found = maps.find("m")
    assert found is not None
    assert found.expires_at is not None
    assert abs((found.expires_at - datetime.now(UTC)).total_seconds() - 1600) < 5
    assert lives(client, 1600)
    assert not found.is_due
    assert (found.token, found.digest) == (aged.token, aged.digest)


def test_an_index_begins_empty_where_its_name_was_held(client: redis.Redis) -> None:
    jobs, indexes = Jobs(client, 10, 600), IndexStore(client)
    held = new_index().model_copy(update={"state": State.building, "job": jobs.new_id()})
    jobs.submit("put-index", {}, reservation=indexes.reserve(held), job_id=held.job or "")
    indexes.reserve(new_index("never"))  # by a process that dies before it has a job
    pass_time(client)
    assert indexes.look("i") == (held, IndexState(0, 0, 0))
    assert assert_true(client).names == 2, "the index and the job"
    assert indexes.renew(held, 1000) == held.model_copy(update={"ttl": 1000})
    indexes.complete(held, 4, 2, True)
    made, _ = indexes.look("i") or (held, None)
    assert (made.state, made.job, made.bands, made.token) == (State.ready, None, 4, held.token)
    indexes.upsert(made, [entry(1)])
    with pytest.raises(NameTaken):
        indexes.complete(held, 3, 2, True)  # of an attempt that was thought to be dead
    pass_time(client)
    assert assert_true(client).names == 1


@pytest.mark.parametrize("ttl", [1000, None])
def test_a_map_that_a_job_builds_begins_to_live_when_it_is_built(
    client: redis.Redis, maps: MapStore, ttl: int | None
) -> None:
    reserved = reserve(client, ttl=ttl)
    assert (reserved.ttl, reserved.expires_at) == (ttl, None)
    assert lives(client, None)
    running = attempt(client, reserved.job or "")
    manifest = maps.create(new(), reserved, running.announce)
    assert manifest.ttl == ttl
    assert scripts.run(client, "end", running.job_id, running.message, "succeeded", 600, "", "") == 1
    maps.read_all(manifest)
    assert lives(client, ttl)
    assert_true(client)
