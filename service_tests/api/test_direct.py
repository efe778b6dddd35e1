"""The short way to transforms and codes, and requests that are answered at once or briefly while others take long."""

import json
from functools import partial
from operator import sub

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import JSON, NPY, assert_problem, post_npy, put
from service_tests.metered import samples, total, value

ROWS = np.random.default_rng(4).standard_normal((5, 3))


@pytest.mark.parametrize("accept", [JSON, NPY])
def test_it_answers_what_the_usual_way_does(http: httpx.Client, standing: dict[str, str], accept: str) -> None:
    short, usual = (post_npy(http, standing["gmm"] + path, ROWS, accept) for path in ("/codes", "/codes?bits_of=index"))
    assert usual.status_code == 422  # it has parameters, so that this way was the usual one
    usual = post_npy(http, standing["gmm"] + "/codes?encoding=zero_bit", ROWS, accept)
    assert short.status_code == usual.status_code == 200
    assert short.content == usual.content
    unlike = {"date", "x-request-id"}
    assert [(k, v) for k, v in short.headers.items() if k not in unlike] == [
        (k, v) for k, v in usual.headers.items() if k not in unlike
    ]
    assert short.headers["x-request-id"]


@each(
    ("path", "status", "slug"),
    [
        ("nothing-here/transform", 404, "map-not-found"),
        ("-bad/transform", 422, "invalid-input"),
        ("standing-gmm/transform", 422, "invalid-input"),
        ("standing-cos_sin/transform?rows=1", 422, "invalid-input"),
        ("standing-cos_sin/transform/", 404, "not-found"),
    ],
)
@pytest.mark.usefixtures("standing")
def test_it_refuses_what_the_usual_way_does(http: httpx.Client, path: str, status: int, slug: str) -> None:
    assert_problem(http, post_npy(http, path, ROWS), status, slug)


def test_other_methods_are_refused_by_name(http: httpx.Client, standing: dict[str, str]) -> None:
    answer = http.get(f"/v1/maps/{standing['cos_sin']}/transform")
    assert_problem(http, answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == "POST"


def test_a_long_body_of_brief_work_runs_apart_from_what_may_take_long(http: httpx.Client) -> None:
    """A dataset may have any number of rows, and `structured_orthogonal` makes long rows of short sparse ones."""
    spec = {"kernel": {"kind": "gaussian", "length_scale": 1.0}, "s": 8}
    monte_carlo, structured = {"kind": "monte_carlo"}, {"kind": "structured_orthogonal"}
    assert put(http, "short-rows", {**spec, "input_dim": 3, "sampler": monte_carlo}).status_code == 201
    assert put(http, "long-rows", {**spec, "input_dim": 1_000_000, "sampler": structured}).status_code == 201
    assert http.put("/v1/datasets/five", json={"vectors": ROWS.tolist()}).status_code == 201
    sparse = [{"indices": [i], "values": [1.0]} for i in range(len(ROWS))]
    for name, vectors, wanted in (
        ("short-rows", ROWS.tolist(), {"brief": 1}),
        ("short-rows", {"dataset": "five"}, {"brief": 1, "compute": 1}),
        ("long-rows", sparse, {"brief": 1, "compute": 1}),
    ):
        body = json.dumps({"vectors": vectors}) + " " * (1 << 14)
        post = partial(http.post, f"/v1/maps/{name}/transform", content=body, headers={"Content-Type": JSON})
        assert post().status_code == 200  # it is in memory then
        before = samples(http)
        assert post().status_code == 200
        after = samples(http)
        for kind in ("brief", "compute"):
            counts = (value(found, "bochner_waited_seconds_count", waits_for=kind) for found in (after, before))
            assert sub(*counts) == wanted.get(kind, 0)
        assert sub(*(total(found, "bochner_request_rows_sum") for found in (after, before))) == len(ROWS)
