from pathlib import Path

import pytest
import redis

from app.store.account import UNCOMMITTED_TTL
from app.store.connection import connect
from app.store.errors import StoreUnavailable
from app.store.maps import MapManifest, MapStore, digest
from app.store.named import COMMIT, NameTaken, State
from service_tests.checks import keys, keys_of
from service_tests.races import at_once
from service_tests.servers import EVERY_WRITE, valkey, wire
from service_tests.store.new_maps import new

INDEX = "bochner:maps"


def test_what_is_created_is_found_and_read_bit_for_bit(maps: MapStore) -> None:
    given = new(megabytes=2.5)
    manifest = maps.create(given)
    assert maps.find("m") == manifest
    assert maps.spec(manifest) == given.spec
    assert maps.find("n") is None
    for name, array in given.built.arrays.items():
        found = maps.read(manifest, name)
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes()


def test_until_the_commit_pieces_expire_and_no_map_is_there(client: redis.Redis, maps: MapStore) -> None:
    """A commit that the server refuses stands for a creator that dies before it."""
    client.config_set("maxmemory", 1)
    try:
        with pytest.raises(StoreUnavailable):
            maps.create(new(name="refused"))
    finally:
        client.config_set("maxmemory", 0)
    # No manifest has a key like these.
    reached = ["bochner:{map:m}:*:*", "bochner:account*", "bochner:store"]
    client.acl_setuser("half", enabled=True, nopass=True, categories=["+@all"], keys=reached)
    with connect(_as("half", client), 5) as half, pytest.raises(StoreUnavailable):
        MapStore(half).create(new(megabytes=1.5))
    left = keys(client)
    assert len(left) == 4
    assert all(0 < client.ttl(key) <= UNCOMMITTED_TTL for key in left)
    assert maps.find("m") is None
    assert maps.page("", None, 10) == ([], None)
    maps.create(new(megabytes=1.5))


def _as(user: str, client: redis.Redis) -> str:
    return f"unix://{user}@{client.get_connection_kwargs()['path']}"


@pytest.mark.usefixtures("maps")
def test_pieces_that_expired_are_not_committed(client: redis.Redis) -> None:
    commit = client.register_script(COMMIT)
    client.set("piece", b"")
    assert commit(keys=["manifest", INDEX, "piece", "gone"], args=["text", "m", "", "", "t"]) is None
    assert client.exists("manifest", INDEX) == 0


@pytest.mark.parametrize("same", [True, False], ids=["the same map", "different maps"])
def test_of_twenty_creators_at_once_exactly_one_wins(client: redis.Redis, maps: MapStore, same: bool) -> None:
    given = [new(seed=0 if same else i, megabytes=1.5) for i in range(20)]

    def create(i: int) -> MapManifest | None:
        try:
            return maps.create(given[i])
        except NameTaken:
            return None

    winners = [manifest for manifest in at_once(20, create) if manifest is not None]
    assert len(winners) == 1
    assert maps.find("m") == winners[0]
    assert len(keys(client)) == 6
    maps.read(winners[0], "frequencies")


def test_deleting_leaves_no_key(client: redis.Redis, maps: MapStore) -> None:
    maps.create(new("other"))
    before = keys(client)
    maps.create(new(megabytes=3.5))
    assert len(keys_of(client, "m")) == 7
    assert maps.delete("m")
    assert keys(client) == before
    assert maps.page("", None, 10)[0][0].name == "other"
    assert not maps.delete("m")


def test_the_list_is_ordered_and_goes_on_after_a_name(maps: MapStore) -> None:
    for name in ("b", "a.2", "a.1", "B", "a.10"):
        maps.create(new(name))

    def names(prefix: str, after: str | None, limit: int) -> tuple[list[str], str | None]:
        found, following = maps.page(prefix, after, limit)
        return [manifest.name for manifest in found], following

    assert names("", None, 10) == (["B", "a.1", "a.10", "a.2", "b"], None)
    assert names("", None, 2) == (["B", "a.1"], "a.1")
    assert names("", "a.1", 2) == (["a.10", "a.2"], "a.2")
    assert names("", "a.2", 2) == (["b"], None)
    assert names("a.", None, 2) == (["a.1", "a.10"], "a.10")
    assert names("a.", "a.10", 2) == (["a.2"], None)
    assert names("a.", "B", 1) == (["a.1"], "a.1")
    assert names("a.", "b", 1) == ([], None)
    assert names("a.1", None, 5) == (["a.1", "a.10"], None)


def test_a_create_whose_reply_is_lost_is_still_reported_as_created(tmp_path: Path) -> None:
    """Also of the first, when the server does not know its script yet."""
    with valkey(tmp_path, *EVERY_WRITE) as url, wire(url) as cut, connect(cut.url, 5) as client:
        maps = MapStore(client)
        for lost, name in enumerate("mn"):
            cut.lose_reply_to(b"schema_version")  # which only the script that commits a manifest is given
            manifest = maps.create(new(name))
            assert cut.lost == lost + 1
            assert maps.find(name) == manifest
            assert {client.ttl(key) for key in keys(client)} == {-1}
            with pytest.raises(NameTaken):
                maps.create(new(name))


def test_maps_of_the_time_before_datasets_are_read() -> None:
    """A manifest as the code of that time wrote it."""
    stored = (
        '{"schema_version":1,"token":"0000000000000000","name":"m","spec":"{\\"seed\\": 1, \\"s\\": 2}","arrays":'
        '{"frequencies":{"dtype":"float64","shape":[3,2],"sha256":'
        '"84a6e8b7afdd286a48ab0aab2c72227fff91a935b0489e633018914bd01693cd"}},'
        '"digest":"sha256:87fec1095758238a92c39aa0ab76ac76e4e21c10b4057aa95e2cdff5c4d9f141","n_frequencies":3,'
        '"n_output":6,"created_at":"2026-11-21T11:45:57Z","generator":{"bochner":"0.1.0"},"parameter_stream":null,'
        '"warnings":["w"]}'
    )
    manifest, spec = MapManifest.parse(stored.encode()), '{"seed": 1, "s": 2}'
    assert manifest.digest == digest(spec, manifest.arrays, None)
    assert (manifest.spec, manifest.state) == (spec, State.ready)
    assert digest(spec, {}, 1) == "sha256:46a2e30fce17a55d54b1293bb599cd995919229ab728bd402eaac334d1a6406d"


def test_figures_that_are_not_finite_are_left_out_of_a_report(maps: MapStore) -> None:
    report = {"objective": 1.5, "gram_error": float("nan"), "start": float("inf")}
    asked = new()
    made = maps.create(asked._replace(built=asked.built._replace(report=report)))
    assert made.report == {"objective": 1.5}
    assert maps.find("m") == made
    written_before = made.stored.replace(b'"objective":1.5', b'"objective":1.5,"gram_error":null')
    assert MapManifest.parse(written_before) == made
