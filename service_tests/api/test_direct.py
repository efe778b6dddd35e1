"""The short way to transforms and codes, and requests that are answered at once or briefly while others take long."""

from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import JSON, NPY, assert_problem, post_npy, put
from service_tests.running import Running, service

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


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that computes one long request at a time, with a map on which that takes seconds."""
    with service(tmp_path_factory.mktemp("crowded") / "data", "--threads", "1") as running, running.client() as client:
        spec = {"kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "monte_carlo"}, "s": 4096}
        assert put(client, "long", {**spec, "input_dim": 64}).status_code == 201
        yield running
