"""What earlier versions have stored opens in this one, and answers as before: see README.md."""

import hashlib
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import redis

from app.core.hashing.sign_stream import arcs
from app.store.account import Account
from app.store.keys import Key, KeyStore
from service_tests.checks import NPY, array, assert_problem, post, put
from service_tests.ledger import assert_true, entries, held
from service_tests.servers import until
from service_tests.stored.earlier import (
    Stored,
    arrays,
    assert_close,
    members,
    opened,
)


def test_records_of_maps_are_the_same(at_rest: Stored) -> None:
    for name, told in at_rest.expected["maps"].items():
        answer = at_rest.http.get(f"/v1/maps/{name}")
        assert members(answer.json(), told["record"]) == told["record"]
        assert answer.headers["etag"] == f'"{told["record"]["digest"]}"'


def promised(store: redis.Redis, names: Iterable[str]) -> int:
    """Bytes that maps have room for which jobs still build, and have not taken. 0.1.0 promised nothing."""
    rooms = {
        key: room
        for key, (room, _, _) in entries(store).items()
        if key.startswith(tuple(f"bochner:{{map:{name}}}:" for name in names))
    }
    return sum(room - sum(store.strlen(key) for key in store.scan_iter(f"{of}*")) for of, room in rooms.items())


def test_everything_is_counted(at_rest: Stored) -> None:
    with closing(redis.Redis.from_url(at_rest.socket)) as store:
        unfinished = at_rest.expected["unfinished"]
        until(lambda: Account(store).usage().nbytes == held(store).nbytes + promised(store, unfinished))
        assert Account(store).usage().names == held(store).names > len(at_rest.expected["maps"])
        if not promised(store, unfinished):
            assert_true(store)


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


def test_maps_that_were_stored_before_there_were_signed_codes_have_them(at_rest: Stored) -> None:
    """Against the cosine itself, of frequencies as they were stored."""
    checked = 0
    for name, told in at_rest.expected["maps"].items():
        frozen = arrays(at_rest.http, name)
        spec = told["record"]["spec"]
        if "frequencies" not in frozen or "input" in spec or spec["kernel"]["kind"] == "correlation_rbf":
            continue
        rows = np.array(at_rest.expected["rows"][str(spec["input_dim"])])
        answer = post(at_rest.http, f"{name}/codes", {"vectors": rows.tolist()})
        if np.ptp(frozen["weights"]) > 0:
            assert_problem(at_rest.http, answer, 422, "invalid-input")
            continue
        of = arcs(spec["seed"], len(frozen["weights"]))
        phases = rows @ frozen["frequencies"].astype(np.float64).T + 2 * np.pi * of.offsets
        sums = np.cos(phases) - np.cos(2 * np.pi * of.half_widths)
        packed = np.array(answer.json()["codes"], np.uint8)
        bits = np.unpackbits(packed, axis=1, count=sums.shape[1], bitorder="little")
        clear = np.abs(sums) > 1e-4
        np.testing.assert_array_equal(bits[clear], (sums > 0)[clear], err_msg=name)
        checked += clear.sum()
    assert checked > 1000


def test_a_spec_sent_again_finds_its_map(at_rest: Stored) -> None:
    for name, told in at_rest.expected["maps"].items():
        answer = put(at_rest.http, name, told["spec"])
        assert answer.status_code == 200, answer.text
        assert answer.json()["digest"] == told["record"]["digest"]
        other = put(at_rest.http, name, {**told["spec"], "seed": (told["spec"].get("seed") or 0) ^ 1})
        assert_problem(at_rest.http, other, 409, "map-exists")


def test_new_maps_are_the_same_as_the_stored(at_rest: Stored) -> None:
    """Only what a draw and a rounding make, which hangs on no processor."""
    for name in ("sampler-monte_carlo", "sampler-halton", "sampler-uploaded", "kernel-gmm", "kernel-gmm-power"):
        told = at_rest.expected["maps"][name]
        answer = put(at_rest.http, f"{name}-anew", told["spec"])
        assert answer.status_code == 201, answer.text
        assert answer.json()["digest"] == told["record"]["digest"]
        assert at_rest.http.delete(f"/v1/maps/{name}-anew").status_code == 204


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


def test_unfinished_jobs_are_told_of(at_rest: Stored) -> None:
    listed = {job["id"] for job in at_rest.http.get("/v1/jobs").json()["jobs"]}
    for told in at_rest.expected["jobs"].values():
        kept = {name: told["record"][name] for name in ("id", "kind", "subject", "created_at", "ended_at")}
        found = at_rest.http.get(f"/v1/jobs/{kept['id']}").json()
        assert members(found, kept) == kept
        assert found["state"] in ("queued", told["record"]["state"])
        assert kept["id"] in listed


@pytest.mark.nightly
def test_everything_can_be_deleted(archive: Path, tmp_path: Path) -> None:
    with opened(archive, tmp_path, workers=0) as (http, expected, _):
        for told in expected["jobs"].values():
            if told["record"]["kind"] != "build-map":
                answer = http.delete(f"/v1/jobs/{told['record']['id']}")
                assert (answer.status_code, answer.json()["state"]) == (202, "cancelled")
        maps = [*expected["maps"], *expected["failed"], *expected["unfinished"]]
        for link in [f"/v1/maps/{name}" for name in maps] + [f"/v1/datasets/{name}" for name in expected["datasets"]]:
            answer = http.delete(link)
            assert answer.status_code == 204 or "year" in link, answer.text
            assert http.get(link).status_code == 404
        assert http.get("/v1/maps").json()["maps"] == []
        assert http.get("/v1/datasets").json()["datasets"] == []
        for name in expected["unfinished"]:
            job = http.get(f"/v1/jobs/{expected['jobs'][name]['record']['id']}").json()
            assert job["state"] == "cancelled", job
