"""What makes sparse rows dense says so before it takes the memory: a few entries name millions of coordinates."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from service_tests.checks import NO_WAIT, assert_problem, put

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
