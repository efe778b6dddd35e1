"""Maps that shift, scale or fill in rows first, over HTTP: by hand and by the map it is the same."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.api.conftest import HASHES, SPEC
from service_tests.cases import each
from service_tests.checks import (
    NPY,
    array,
    assert_problem,
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
SPECS: dict[str, dict[str, Any]] = {
    "double": SPEC,
    "single": SPEC | {"dtype": "float32"},
    "structured": SPEC | {"input_dim": 3, "sampler": {"kind": "orthogonal"}, "s": 6},
    "directions": SPEC | {"kernel": {"kind": "correlation_rbf", "gamma": 2.0}},
    "learned": SPEC | {"sampler": {"kind": "landmarks", "dataset": "input-raw"}, "s": 20},
    "hashes": HASHES,
}


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


def test_missing_entries_are_filled_in_where_a_number_stands_for_them(http: httpx.Client, name: str) -> None:
    assert put(http, name, HASHES | {"input": {"missing": -0.5, "scale": 2.0}}).status_code == 201
    assert put(http, f"{name}-plain", HASHES).status_code == 201
    rows = [[1.0, None, 3.0], [None, None, 5.0]]
    filled = np.array([[1.0, -1.0, 3.0], [-1.0, -1.0, 5.0]])
    wanted = array(post_npy(http, f"{name}-plain/codes", filled / 2))
    np.testing.assert_array_equal(array(post(http, f"{name}/codes", {"vectors": rows}, NPY)), wanted)
    np.testing.assert_array_equal(array(post_npy(http, f"{name}/codes", np.array(rows, np.float32))), wanted)
    sparse = [{"indices": [0, 1], "values": [1.0, None]}]  # what is left out is 0
    wanted = array(post_npy(http, f"{name}-plain/codes", np.array([[0.5, -0.5, 0.0]])))
    np.testing.assert_array_equal(array(post(http, f"{name}/codes", {"vectors": sparse}, NPY)), wanted)


def test_a_map_of_an_earlier_version_fills_in_before_centring_and_is_the_same_put_again(
    http: httpx.Client, name: str
) -> None:
    of_input = {"center": 10.0, "scale": 2.0, "missing": 0}
    earlier = SPEC | {"input": of_input | {"fill": "before"}}  # stored as it was when there was nothing else to say
    made = put(http, name, earlier)
    assert made.json()["spec"]["input"]["fill"] == "before"
    again = put(http, name, SPEC | {"input": of_input})
    assert again.status_code == 200
    assert again.json()["digest"] == made.json()["digest"]
    assert put(http, name, SPEC | {"input": of_input | {"fill": "after"}}).status_code == 409
    now = put(http, f"{name}-now", SPEC | {"input": of_input})
    assert now.status_code == 201
    assert "fill" not in now.json()["spec"]["input"]
    assert put(http, f"{name}-now", earlier).status_code == 409
    gaps = {"vectors": [[None] * SPEC["input_dim"]]}
    for of, filled in ((name, 0.0), (f"{name}-now", 10.0)):
        whole = {"vectors": [[filled] * SPEC["input_dim"]]}
        found, wanted = (array(post(http, f"{of}/transform", rows, NPY)) for rows in (gaps, whole))
        np.testing.assert_array_equal(found, wanted)


def test_a_dataset_may_miss_entries_which_only_an_input_fills_in(http: httpx.Client, name: str) -> None:
    rows: list[list[float | None]] = np.random.default_rng(3).normal(10, 1, (40, SPEC["input_dim"])).tolist()
    for row in rows[:30]:
        row[0] = None
    answer = http.put(f"/v1/datasets/{name}", json={"vectors": rows})
    assert answer.status_code == 201
    assert answer.json()["column_ranges"][0] == [min(row[0] or 99 for row in rows), max(row[0] or 0 for row in rows)]
    wanted = {"fit": "standardize", "dataset": name, "missing": "mean"}
    made = put(http, name, SPEC | {"input": wanted})
    assert made.status_code == 201
    assert made.json()["spec"]["input"]["center"][0] == pytest.approx(np.mean([row[0] for row in rows[30:]]))
    assert f"columns of dataset {name!r} are missing: column 0 in 30 of 40 rows" in made.json()["warnings"][0]
    assert array(post(http, f"{name}/transform", {"dataset": name}, NPY)).shape[0] == 40
    learned = {"sampler": {"kind": "landmarks", "dataset": name}, "s": 8}
    assert put(http, f"{name}-l", SPEC | learned | {"input": wanted}).status_code == 201
    scale = {"kernel": {"kind": "gaussian", "length_scale": "median", "dataset": name}}
    for bad in (learned, scale):
        problem = assert_problem(http, put(http, f"{name}-b", SPEC | bad), 422, "invalid-input")
        assert "row 0, column 0 is missing" in problem["detail"]
    assert put(http, f"{name}-p", SPEC).status_code == 201
    assert_problem(http, post(http, f"{name}-p/transform", {"dataset": name}, NPY), 422, "invalid-input")
    assert_problem(http, http.put(f"/v1/datasets/{name}-i", json={"vectors": [["x"]]}), 422, "invalid-input")


@pytest.mark.parametrize("path", ["transform", "kernel", "diagnostics/gram"])
def test_a_missing_entry_is_refused_by_name_elsewhere(http: httpx.Client, fourier: str, path: str) -> None:
    key = "x" if path == "kernel" else "vectors"
    answer = post(http, f"{fourier}/{path}", {key: [[1, 2, 3], [1, None, 3]]})
    document = assert_problem(http, answer, 422, "invalid-input", f"/{key}/1/1")
    assert document["detail"].startswith("row 1, column 1 is missing")
    answer = post_npy(http, f"{fourier}/transform", np.array([[1, 2, np.nan]]))
    document = assert_problem(http, answer, 422, "invalid-input", "/vectors/0/2")
    assert document["detail"].startswith("row 0, column 2 is missing")


@each(
    ("members", "pointer"),
    [
        ({"scale": 0}, "/input/scale"),
        ({"scale": [1, 2, -3]}, "/input/scale/2"),
        ({"center": [1, 2, 3, 4]}, "/input/center"),
        ({"center": "mean"}, "/input/center"),
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
