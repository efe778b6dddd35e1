"""Maps that shift, scale or fill in rows first, over HTTP: by hand and by the map it is the same."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.api.conftest import HASHES, SPEC
from service_tests.cases import each, with_nightly
from service_tests.checks import (
    JSON,
    NPY,
    RESPOND_ASYNC,
    array,
    assert_problem,
    finished,
    member,
    post,
    post_npy,
    put,
    put_dataset,
)

RNG = np.random.default_rng(13)
RAW = RNG.integers(0, 1000, (90, 3)) * [1.0, 0.01, 1e6]
CENTER, SCALE = RAW.mean(axis=0), RAW.std(axis=0)
BY_HAND = (RAW - CENTER) / SCALE
INPUT = {"center": CENTER.tolist(), "scale": SCALE.tolist()}
LANDMARKS = {"kind": "uploaded_landmarks", "landmarks": RAW[:12].tolist()}
SPECS: dict[str, dict[str, Any]] = {
    "double": SPEC,
    "single": SPEC | {"dtype": "float32"},
    "structured": SPEC | {"input_dim": 3, "sampler": {"kind": "orthogonal"}, "s": 6},
    "directions": SPEC | {"kernel": {"kind": "correlation_rbf", "gamma": 2.0}},
    "landmarks": SPEC | {"sampler": LANDMARKS, "s": None},
    "learned": SPEC | {"sampler": {"kind": "landmarks", "dataset": "input-raw"}, "s": 20},
    "weighted": SPEC | {"sampler": {"kind": "weighted", "base": {"kind": "sobol"}, "dataset": "input-raw"}},
    "reweighted": SPEC | {"sampler": {"kind": "reweighted_grid", "dataset": "input-raw", "points_per_dim": 3}, "s": 9},
    "hashes": HASHES,
}
FEW = "single", "landmarks", "hashes"


def by_hand(spec: dict[str, Any]) -> dict[str, Any]:
    """The same map for rows that are shifted and scaled before they are posted."""
    sampler = dict(spec["sampler"])
    if "landmarks" in sampler:
        sampler["landmarks"] = BY_HAND[:12].tolist()
    if "dataset" in sampler:
        sampler["dataset"] = "input-by-hand"
    return spec | {"sampler": sampler}


@pytest.fixture(scope="module")
def both(http: httpx.Client) -> None:
    """Each map of `SPECS` as `input-…`, and as `hand-…` without an input."""
    assert put_dataset(http, "input-raw", RAW).status_code == 201
    assert put_dataset(http, "input-by-hand", BY_HAND).status_code == 201
    for title, spec in SPECS.items():
        for name, body in ((f"input-{title}", spec | {"input": INPUT}), (f"hand-{title}", by_hand(spec))):
            answer = put(http, name, body)
            assert answer.status_code == 201, answer.text
            assert ("input" in answer.json()["spec"]) == name.startswith("input")


def call(title: str) -> str:
    return "codes?encoding=pairs" if title == "hashes" else "transform"


@pytest.mark.usefixtures("both")
@pytest.mark.parametrize("title", SPECS)
def test_features_and_codes_have_the_bits_of_rows_changed_by_hand(http: httpx.Client, title: str) -> None:
    mine, theirs = f"input-{title}/{call(title)}", f"hand-{title}/{call(title)}"
    wanted = array(post_npy(http, theirs, BY_HAND))
    np.testing.assert_array_equal(array(post_npy(http, mine, RAW)), wanted)
    for body in ({"vectors": RAW.tolist()}, {"dataset": "input-raw"}):
        np.testing.assert_array_equal(array(post(http, mine, body, NPY)), wanted)
    some = array(post(http, mine, {"vectors": RAW[7:8].tolist()}, NPY))
    np.testing.assert_array_equal(some, wanted[7:8])


@pytest.mark.nightly
@pytest.mark.usefixtures("both")
@pytest.mark.parametrize("title", with_nightly(FEW, sorted(SPECS.keys() - set(FEW))))
def test_gram_blocks_and_diagnostics_see_rows_after_the_input(http: httpx.Client, title: str) -> None:
    mine, theirs = (f"{name}-{title}" for name in ("input", "hand"))
    for name in ("approximate", "exact"):
        found, wanted = (
            member(post(http, f"{one}/kernel?exact=true", {"x": rows[:5].tolist(), "y": rows[5:9].tolist()}), name)
            for one, rows in ((mine, RAW), (theirs, BY_HAND))
        )
        np.testing.assert_array_equal(found, wanted)
    body = {"vectors": RAW[:40].tolist(), "seeds": 1}
    found = post(http, f"{mine}/diagnostics/gram", body).json()
    assert found == post(http, f"{theirs}/diagnostics/gram", body | {"vectors": BY_HAND[:40].tolist()}).json()
    taken = http.post(f"/v1/maps/{mine}/diagnostics/gram", json=body, headers=RESPOND_ASYNC)
    assert http.get(finished(http, taken)["result"]).json() == found  # rows are changed once on their way to a job
    of_dataset = {"dataset": "input-raw", "rows": 40, "seeds": 1}
    taken = http.post(f"/v1/maps/{mine}/diagnostics/gram", json=of_dataset, headers=RESPOND_ASYNC)
    by_job = http.get(finished(http, taken)["result"]).json()
    assert by_job == post(http, f"{theirs}/diagnostics/gram", of_dataset | {"dataset": "input-by-hand"}).json()


@pytest.mark.usefixtures("both")
def test_similarities_see_rows_after_the_input(http: httpx.Client) -> None:
    found, wanted = (
        post(http, f"{name}-hashes/similarity?gamma=1", {"x": rows[:9].tolist(), "y": rows[9:18].tolist()}).json()
        for name, rows in (("input", RAW), ("hand", BY_HAND))
    )
    assert found == wanted


@pytest.mark.usefixtures("both")
@pytest.mark.parametrize("title", ["landmarks", "learned"])
def test_errors_around_landmarks_are_in_the_unit_of_rows_after_the_input(http: httpx.Client, title: str) -> None:
    body = {"diameters": [0.5, 3.0], "samples": 200}
    found, wanted = (post(http, f"{one}-{title}/diagnostics/max-error", body).json() for one in ("input", "hand"))
    assert found == wanted


def test_missing_entries_are_filled_in_where_a_number_stands_for_them(http: httpx.Client, name: str) -> None:
    assert put(http, name, HASHES | {"input": {"missing": -1.0, "scale": 2.0}}).status_code == 201
    assert put(http, f"{name}-plain", HASHES).status_code == 201
    rows = [[1.0, None, 3.0], [None, None, 5.0]]
    filled = np.array([[1.0, -1.0, 3.0], [-1.0, -1.0, 5.0]])
    wanted = array(post_npy(http, f"{name}-plain/codes", filled / 2))
    np.testing.assert_array_equal(array(post(http, f"{name}/codes", {"vectors": rows}, NPY)), wanted)
    np.testing.assert_array_equal(array(post_npy(http, f"{name}/codes", np.array(rows, np.float32))), wanted)
    sparse = [{"indices": [0, 1], "values": [1.0, None]}]  # what is left out is 0
    wanted = array(post_npy(http, f"{name}-plain/codes", np.array([[0.5, -0.5, 0.0]])))
    np.testing.assert_array_equal(array(post(http, f"{name}/codes", {"vectors": sparse}, NPY)), wanted)


@pytest.mark.parametrize("path", ["transform", "kernel", "diagnostics/gram"])
def test_a_missing_entry_is_refused_by_name_elsewhere(http: httpx.Client, fourier: str, path: str) -> None:
    key = "x" if path == "kernel" else "vectors"
    answer = post(http, f"{fourier}/{path}", {key: [[1, 2, 3], [1, None, 3]]})
    document = assert_problem(http, answer, 422, "invalid-input", f"/{key}/1/1")
    assert document["detail"].startswith("row 1, column 1 is missing")
    answer = post_npy(http, f"{fourier}/transform", np.array([[1, 2, np.nan]]))
    document = assert_problem(http, answer, 422, "invalid-input", "/vectors/0/2")
    assert document["detail"].startswith("row 0, column 2 is missing")


def test_a_dataset_has_no_missing_entries(http: httpx.Client, name: str) -> None:
    answer = put_dataset(http, name, [[1.0, None]])
    said = assert_problem(http, answer, 422, "invalid-input")["detail"]
    assert said.startswith("row 0, column 1 is missing; a dataset has no missing entries")


def test_a_scale_keeps_rows_sparse_and_a_center_is_refused(http: httpx.Client, name: str) -> None:
    wide = {"input_dim": 1 << 30, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 16}
    rows = [{"indices": [5, 1 << 29], "values": [3.0, -4.0]}]
    assert put(http, name, wide | {"input": {"scale": 5.0, "unit_norm": True}}).status_code == 201
    assert put(http, f"{name}-plain", wide).status_code == 201
    scaled = [{"indices": [5, 1 << 29], "values": [0.6, -0.8]}]
    wanted = post(http, f"{name}-plain/codes", {"vectors": scaled}).json()
    assert post(http, f"{name}/codes", {"vectors": rows}).json() == wanted
    assert put(http, f"{name}-centered", wide | {"input": {"center": 1.0}}).status_code == 201
    answer = post(http, f"{name}-centered/codes", {"vectors": rows})
    document = assert_problem(http, answer, 422, "invalid-input", "/vectors")
    assert "would make them dense" in document["detail"]


@each(
    ("members", "pointer"),
    [
        ({"scale": 0}, "/input/scale"),
        ({"scale": [1, 2, -3]}, "/input/scale/2"),
        ({"scale": [1, 2]}, "/input/scale"),
        ({"center": [1, 2, 3, 4]}, "/input/center"),
        ({"center": "mean"}, "/input/center"),
        ({"missing": "mean"}, "/input/missing"),
        ({"unit_norm": 1}, "/input/unit_norm"),
        ({"centre": 1}, "/input/centre"),
    ],
)
def test_other_inputs_are_refused_where_they_stand(
    http: httpx.Client, name: str, members: dict[str, Any], pointer: str
) -> None:
    assert_problem(http, put(http, name, SPEC | {"input": members}), 422, "invalid-input", pointer)


def test_the_same_input_again_is_the_same_map_and_another_is_not(http: httpx.Client, name: str) -> None:
    spec = SPEC | {"input": {"center": 1, "missing": 0}}
    made = put(http, name, spec)
    assert made.status_code == 201
    echoed = made.json()["spec"]
    assert echoed["input"] == {"center": 1.0, "scale": 1.0, "unit_norm": False, "missing": 0.0}
    for again in (spec, echoed):
        assert put(http, name, again).status_code == 200
    for other in (SPEC, SPEC | {"input": {"center": 2, "missing": 0}}):
        assert put(http, name, other).status_code == 409


def test_rows_that_leave_the_range_of_the_dtype_after_the_input_are_refused(http: httpx.Client, name: str) -> None:
    assert put(http, name, SPEC | {"dtype": "float32", "input": {"scale": 1e-30}}).status_code == 201
    answer = post(http, f"{name}/transform", {"vectors": [[0, 0, 0], [0, 1e20, 0]]}, JSON)
    document = assert_problem(http, answer, 422, "invalid-input", "/vectors/1/1")
    assert "outside the range of float32" in document["detail"]
    assert document["detail"].endswith("once it has gone through the input of the map")
