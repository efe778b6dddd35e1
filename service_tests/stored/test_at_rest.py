"""What earlier versions have stored opens in this one, and answers as before: see README.md."""

import hashlib
from contextlib import closing
from datetime import UTC, datetime

import redis

from app.store.keys import Key, KeyStore
from service_tests.checks import NPY, array, assert_problem, post, put
from service_tests.ledger import assert_true, entries
from service_tests.stored.earlier import Stored, arrays, assert_close, members


def test_records_of_maps_are_the_same(at_rest: Stored) -> None:
    for name, told in at_rest.expected["maps"].items():
        answer = at_rest.http.get(f"/v1/maps/{name}")
        of_input = told["record"]["spec"].get("input", {"missing": "refuse"})
        if of_input["missing"] != "refuse":  # the record says that it is filled in as it was then
            of_input["fill"] = "before"
        assert members(answer.json(), told["record"]) == told["record"]
        assert answer.headers["etag"] == f'"{told["record"]["digest"]}"'


def test_everything_is_counted(at_rest: Stored) -> None:
    """Maps that jobs still build have room for what they have not written yet."""
    with closing(redis.Redis.from_url(at_rest.socket)) as store:
        of_jobs = tuple(f"bochner:{{map:{name}}}:" for name in at_rest.expected["unfinished"])
        rooms = {key: room for key, (room, *_) in entries(store).items() if key.startswith(of_jobs)}
        written = sum(store.strlen(key) for of in rooms for key in store.scan_iter(f"{of}*"))
        assert assert_true(store, sum(rooms.values()) - written).names > len(at_rest.expected["maps"])


def test_keys_open_as_before(at_rest: Stored) -> None:
    with closing(redis.Redis.from_url(at_rest.socket)) as store:
        found = {key.name: key for key in KeyStore(store, most=1).all()}
    told_of = at_rest.expected.get("keys", {})  # 0.1.0 had none
    assert found == {name: Key.model_validate(told["record"]) for name, told in told_of.items()}
    for name, told in told_of.items():
        assert found[name].opens_with(told["text"].encode())
        assert not found[name].opens_with(told["text"].upper().encode())


def test_frozen_arrays_are_the_same_bit_for_bit(at_rest: Stored) -> None:
    for name, told in at_rest.expected["maps"].items():
        found = {
            one: {"dtype": a.dtype.str, "shape": list(a.shape), "sha256": hashlib.sha256(a.tobytes()).hexdigest()}
            for one, a in arrays(at_rest.http, name).items()
        }
        assert found == told["arrays"], name


def test_features_are_the_same_to_rounding(at_rest: Stored) -> None:
    told_of = {name: told for name, told in at_rest.expected["maps"].items() if "features" in told}
    assert told_of
    for name, told in told_of.items():
        rows = at_rest.expected["rows"][str(told["spec"]["input_dim"])]
        assert_close(array(post(at_rest.http, f"{name}/transform", {"vectors": rows}, NPY)), told["features"])


def test_codes_are_the_same(at_rest: Stored) -> None:
    told_of = {name: told for name, told in at_rest.expected["maps"].items() if "codes" in told}
    assert told_of
    for name, told in told_of.items():
        rows = at_rest.expected["rows"][str(told["spec"]["input_dim"])]
        assert post(at_rest.http, f"{name}/codes?encoding=pairs", {"vectors": rows}).json()["codes"] == told["codes"]


def test_a_spec_sent_again_finds_its_map(at_rest: Stored) -> None:
    for name, told in at_rest.expected["maps"].items():
        answer = put(at_rest.http, name, told["spec"])
        assert answer.status_code == 200, answer.text
        assert answer.json()["digest"] == told["record"]["digest"]
        other = put(at_rest.http, name, {**told["spec"], "seed": (told["spec"].get("seed") or 0) ^ 1})
        assert_problem(at_rest.http, other, 409, "map-exists")


def test_datasets_hold_the_same_rows(at_rest: Stored) -> None:
    for name, told in at_rest.expected["datasets"].items():
        record, expires = at_rest.http.get(f"/v1/datasets/{name}"), told["record"]["expires_at"]
        if expires is not None and datetime.fromisoformat(expires) < datetime.now(UTC):
            assert record.status_code == 404
            continue
        assert members(record.json(), told["record"]) == told["record"]
        body = {"vectors": {"dataset": name}}
        assert_close(array(post(at_rest.http, f"{told['map']}/transform", body, NPY)), told["features"])
        if expires is None:
            assert at_rest.http.put(f"/v1/datasets/{name}", json=told["body"]).status_code == 200


def test_maps_that_failed_or_wait_are_told_of_as_before(at_rest: Stored) -> None:
    for name, told in {**at_rest.expected["failed"], **at_rest.expected["unfinished"]}.items():
        assert members(at_rest.http.get(f"/v1/maps/{name}").json(), told["before"]) == told["before"]
    for name, told in at_rest.expected["unfinished"].items():
        answer = put(at_rest.http, name, told["spec"])
        assert (answer.status_code, answer.json()["job"]) == (202, told["before"]["job"])
        features = post(at_rest.http, f"{name}/transform", {"vectors": at_rest.expected["rows"]["4"]})
        assert_problem(at_rest.http, features, 409, "map-not-ready")
        assert_problem(at_rest.http, put(at_rest.http, name, {**told["spec"], "seed": 1}), 409, "map-exists")
