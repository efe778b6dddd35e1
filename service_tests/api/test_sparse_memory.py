"""What makes sparse rows dense says so before it takes the memory: a few entries name millions of coordinates."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from service_tests.checks import NO_WAIT, RESPOND_ASYNC, assert_problem, finished, post, put

DIM = 1 << 22
ROWS = [{"indices": [i, i + 5, DIM - 1], "values": [1.0, -2.0, i + 0.5]} for i in range(30)]
WIDE = {"input_dim": DIM, "kernel": {"kind": "gaussian", "length_scale": 5}, "sampler": {"kind": "monte_carlo"}, "s": 1}
HASHES = {"input_dim": 1 << 31, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 8}


@pytest.fixture(scope="module")
def wide(http: httpx.Client) -> Iterator[str]:
    assert put(http, "wide", WIDE).status_code == 201
    yield "wide"
    http.delete("/v1/maps/wide")


@pytest.mark.parametrize(
    ("kind", "body"),
    [("gram", {"vectors": ROWS}), ("variance", {"x": ROWS, "y": ROWS, "repeats": 2})],
)
def test_dense_rows_of_more_memory_than_a_request_may_take_are_a_job_s(
    http: httpx.Client, wide: str, kind: str, body: dict[str, Any]
) -> None:
    answer = http.post(f"/v1/maps/{wide}/diagnostics/{kind}", json=body, headers=NO_WAIT)
    assert answer.status_code == 202, answer.text
    assert answer.json()["step"] is None, "nothing was done in the request"
    assert http.delete(answer.headers["Location"]).status_code == 202


def test_second_moments_of_so_many_coordinates_are_no_job_s(http: httpx.Client, wide: str) -> None:
    answer = post(http, f"{wide}/diagnostics/gram", {"vectors": ROWS, "estimators": ["cv2"]})
    document = assert_problem(http, answer, 413, "too-large")
    assert document["setting"] == "BOCHNER_MAX_JOB_BYTES"
    assert int(document["detail"].split()[3]) >= 16 * DIM**2


def test_a_box_of_so_many_columns_is_refused(http: httpx.Client, wide: str) -> None:
    answer = post(http, f"{wide}/diagnostics/box-discrepancy", {"vectors": ROWS})
    assert "65536" in assert_problem(http, answer, 422, "invalid-input")["detail"]


def test_hashes_of_sparse_rows_are_recommended_without_their_dense_form(http: httpx.Client) -> None:
    body = {"vectors": ROWS, "input_dim": 1 << 31, "kernel": {"kind": "gmm"}, "budget": 8, "seeds": 2}
    job = finished(http, http.post("/v1/recommendations", json=body, headers=RESPOND_ASYNC))
    assert job["state"] == "succeeded"
    assert http.get(job["result"]).json()["best"]["sampler"] == {"kind": "gcws"}


@pytest.mark.parametrize(
    "kernel",
    [
        {"kind": "gaussian", "length_scale": "median"},
        {"kind": "gaussian", "length_scale": 2},
        {"kind": "correlation_rbf", "gamma": 1},
        {"kind": "gmm", "center": [0.5]},
    ],
)
def test_kernels_of_dense_rows_are_refused_for_sparse_rows_of_so_many(
    http: httpx.Client, kernel: dict[str, Any]
) -> None:
    body = {"vectors": ROWS, "input_dim": 1 << 31, "kernel": kernel, "budget": 8}
    document = assert_problem(http, http.post("/v1/recommendations", json=body), 413, "too-large")
    assert document["setting"] == "BOCHNER_MAX_RESULT_BYTES"


def test_no_map_is_recommended_that_could_not_be_kept(http: httpx.Client) -> None:
    rows = {"vectors": ROWS[:2], "input_dim": DIM, "kernel": {"kind": "gaussian", "length_scale": 2}}
    document = assert_problem(http, http.post("/v1/recommendations", json={**rows, "budget": 1024}), 413, "too-large")
    assert document["setting"] == "BOCHNER_MAX_MAP_BYTES"
    taken = http.post("/v1/recommendations", json={**rows, "target_error": 0.1}, headers=NO_WAIT)
    assert taken.status_code in (200, 202), taken.text
    if taken.status_code == 202:
        http.delete(taken.headers["Location"])


def test_many_pairs_are_a_job_s_however_small(http: httpx.Client, name: str) -> None:
    assert put(http, name, {**WIDE, "input_dim": 1}).status_code == 201
    pairs = [[1]] * 180_000
    body = {"x": pairs, "y": pairs, "repeats": 2}
    answer = http.post(f"/v1/maps/{name}/diagnostics/variance", json=body, headers=NO_WAIT)
    assert answer.status_code == 202, answer.text
    assert answer.json()["step"] is None, "nothing was done in the request"
    assert http.delete(answer.headers["Location"]).status_code == 202


def test_pairs_of_a_kernel_with_a_centre_are_counted_dense(http: httpx.Client, name: str) -> None:
    dim = 1 << 15
    assert put(http, name, {**HASHES, "input_dim": dim, "kernel": {"kind": "gmm", "center": [1] * dim}}).is_success
    body = {"correlations": [0.5] * 1000, "repeats": 2}
    document = assert_problem(http, post(http, f"{name}/diagnostics/variance", body), 413, "too-large")
    assert str(16 * 1000 * dim) in document["detail"]
