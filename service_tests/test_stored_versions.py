"""What earlier versions have stored opens in this one: see stored/README.md."""

import base64
import hashlib
import json
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest
import redis
from numpy.typing import NDArray

from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from app.core.spec import MapSpec
from app.store.account import Account
from app.store.keys import Key, KeyStore
from service_tests.checks import NPY, RESPOND_ASYNC, array, assert_problem, finished, post, put
from service_tests.ledger import assert_true, entries, held
from service_tests.running import service
from service_tests.servers import until
from service_tests.stored.specs import ARRAYS

FIRST, *LATER = sorted((Path(__file__).parent / "stored").glob("version_*.tar.xz"))
# Relative to the largest number of the answer.
ROUNDING = {"f4": 2e-6, "c8": 2e-6, "f8": 1e-12, "c16": 1e-12}
# An optimisation adds up the roundings of its steps, which hang on the processor.
LEARNED_ANEW = 1e-4
# A greedy search multiplies them: whatever the version, from some 140th frequency on it finds others on a processor
# with other instructions. So many are the same, and the set is as good as a whole.
ALIKE, AS_GOOD = 100, 1.5
TIMES = {"seconds_per_1000_rows"}


class Stored(NamedTuple):
    """A service on what an earlier version has stored, and what that version answered."""

    http: httpx.Client
    expected: dict[str, Any]
    socket: str


@contextmanager
def opened(archive: Path, directory: Path, workers: int) -> Iterator[Stored]:
    """The present service on an archive."""
    expected = json.loads(archive.with_name(archive.name.replace(".tar.xz", ".json")).read_text())
    data = directory / "data"
    data.mkdir()
    with tarfile.open(archive) as packed:
        packed.extractall(data, filter="data")
    with (
        service(data, "--job-workers", str(workers)) as running,
        running.client() as http,
    ):
        yield Stored(http, expected, running.socket)


@pytest.fixture(
    scope="module",
    # What this code itself has stored is opened in the long run: the formats have tests of their own.
    params=[FIRST, *(pytest.param(later, marks=pytest.mark.long) for later in LATER)],
    ids=lambda archive: archive.name.removesuffix(".tar.xz"),
)
def archive(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture(scope="module")
def at_rest(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """Without workers, so that unfinished jobs stay unfinished. Tests change nothing there."""
    with opened(archive, tmp_path_factory.mktemp("rest"), workers=0) as stored:
        yield stored


@pytest.fixture(scope="module")
def at_work(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """With a worker, which goes on with unfinished jobs."""
    with opened(archive, tmp_path_factory.mktemp("work"), workers=1) as stored:
        yield stored


def numbers(told: dict[str, Any]) -> NDArray[Any]:
    """An array that was written down."""
    return np.frombuffer(base64.b64decode(told["base64"]), told["dtype"]).reshape(told["shape"])


def assert_close(found: NDArray[Any], told: dict[str, Any], rounding: float | None = None) -> None:
    assert_near(found, numbers(told), rounding)


def assert_near(found: NDArray[Any], expected: NDArray[Any], rounding: float | None = None) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if rounding is None:
        rounding = ROUNDING[expected.dtype.str[1:]]
    assert np.abs(found - expected).max() <= rounding * np.abs(expected).max()


def assert_same(found: Any, expected: Any) -> None:
    """An answer of JSON, its numbers to rounding. Members may have been added since, and times are never the same."""
    if isinstance(expected, dict):
        for name in expected.keys() - TIMES:
            assert_same(found[name], expected[name])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)
    else:
        assert found == expected


def members(record: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Of a record, the members that the earlier version knew."""
    return {name: record.get(name, "missing") for name in expected}


def arrays(http: httpx.Client, name: str) -> dict[str, NDArray[Any]]:
    """The frozen arrays of a map, by name; not every map has each."""
    answers = {one: http.get(f"/v1/maps/{name}/{one}", headers={"Accept": NPY}) for one in ARRAYS}
    assert {answer.status_code for answer in answers.values()} <= {200, 404}
    return {one: array(answer) for one, answer in answers.items() if answer.status_code == 200}


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


@pytest.mark.long
def test_jobs_that_were_left_come_to_the_same_answers(at_work: Stored) -> None:
    for told in at_work.expected["jobs"].values():
        ended = finished(at_work.http, job_at(f"/v1/jobs/{told['record']['id']}"))
        assert ended["state"] == "succeeded", ended
        if "answer" in told:
            found = at_work.http.get(ended["result"]).json()
            if ended["kind"] == "recommend":
                assert_recommended_alike(found, told["answer"])
            else:
                assert_same(found, told["answer"])


def assert_recommended_alike(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """The same specs are ranked; their errors are near, not equal, as they are now of other rows and of more maps."""
    errors, before = ({str(trial["spec"]): trial["error_mean"] for trial in of["ranked"]} for of in (found, expected))
    assert errors.keys() == before.keys()
    for spec, error in before.items():
        assert errors[spec] == pytest.approx(error, rel=0.5)


def test_maps_that_were_left_unfinished_come_to_the_same(at_work: Stored) -> None:
    for name, told in at_work.expected["unfinished"].items():
        finished(at_work.http, job_at(told["before"]["job"]))
        assert_made_alike(at_work.http, name, told, points(at_work))


def test_a_map_that_failed_can_be_sent_again(at_work: Stored) -> None:
    for name, told in at_work.expected["failed"].items():
        answer = at_work.http.put(f"/v1/maps/{name}", json=told["spec"], headers=RESPOND_ASYNC)
        assert answer.status_code == 202, answer.text
        finished(at_work.http, job_at(answer.json()["job"]))
        assert_made_alike(at_work.http, name, told, points(at_work))


def points(stored: Stored) -> NDArray[Any]:
    """The rows that unfinished maps learn from."""
    return np.array(stored.expected["datasets"]["points"]["body"]["vectors"])


def job_at(link: str) -> httpx.Response:
    return httpx.Response(202, headers={"Location": link})


def assert_made_alike(http: httpx.Client, name: str, told: dict[str, Any], rows: NDArray[Any]) -> None:
    """That a map learned anew is what the earlier version has learned, but for roundings and hence its digest."""
    record, expected = http.get(f"/v1/maps/{name}").json(), {**told["record"]}
    del expected["digest"]
    # Later versions also compare a set with its start.
    for of in (record, expected):
        of["warnings"] = [one for one in of["warnings"] if "alone has the smaller Gram error" not in one]
    assert members(record, expected) == expected
    found = arrays(http, name)
    assert found.keys() == told["arrays"].keys()
    for one, a in found.items():
        earlier = numbers(told["arrays"][one])
        if told["spec"]["sampler"]["kind"] == "greedy_adaptive" and one == "frequencies":
            assert_as_good(a, earlier, told, rows)
            a, earlier = a[:ALIKE], earlier[:ALIKE]
        assert_near(a, earlier, LEARNED_ANEW)


def assert_as_good(found: NDArray[Any], earlier: NDArray[Any], told: dict[str, Any], rows: NDArray[Any]) -> None:
    """That another greedy set has about the same box discrepancy, which every second frequency alone has not."""
    of = MapSpec.model_validate_json(json.dumps(told["spec"]))
    measure = BoxDiscrepancy(of.kernel, 0.25 * np.ptp(rows, axis=0))
    ours, theirs, half = (measure.normalized(one.astype(np.float64)) for one in (found, earlier, earlier[::2]))
    assert ours < AS_GOOD * theirs < half


@pytest.mark.long
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
