"""The short way to transforms and codes, and requests that are answered at once or briefly while others take long."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest

from service_tests.cases import each
from service_tests.checks import JSON, NPY, array, assert_problem, post, post_npy, put, put_dataset
from service_tests.running import Running, service
from service_tests.servers import until

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
        ("nothing-here/codes", 404, "map-not-found"),
        ("-bad/transform", 422, "invalid-input"),
        ("bad%0A/transform", 422, "invalid-input"),
        (f"{'a' * 129}/transform", 422, "invalid-input"),
        ("standing-gmm/transform", 422, "invalid-input"),
        ("standing-cos_sin/transform?rows=1", 422, "invalid-input"),
        ("standing-cos_sin/transform/", 404, "not-found"),
        ("standing-cos_sin/Transform", 404, "not-found"),
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


def cpu_seconds(running: Running) -> float:
    return float(sum(psutil.Process(running.process.pid).cpu_times()[:2]))


@pytest.mark.nightly
def test_what_is_brief_does_not_wait_for_what_takes_long(crowded: Running) -> None:
    long = np.random.default_rng(0).standard_normal((2500, 64))
    with crowded.client() as client, ThreadPoolExecutor(6) as pool:
        assert put_dataset(client, "points", long).status_code == 201
        body = {"x": {"dataset": "points"}, "y": {"dataset": "points"}}
        idle = cpu_seconds(crowded)
        waiting = [pool.submit(post, client, "long/kernel", body, NPY) for _ in range(6)]
        until(lambda: cpu_seconds(crowded) > idle + 0.1)  # one is computed
        for rows, accept in ((long[:1], NPY), (long[:1], JSON), (long[:30], NPY), (long[:100], NPY)):
            assert post_npy(client, "long/transform", rows, accept).status_code == 200
        # Had they waited, all would be done, but for an answer or so that is still read.
        assert sum(one.done() for one in waiting) < len(waiting) / 2
        assert all(one.result().status_code == 200 for one in waiting)


@pytest.mark.nightly
def test_maps_that_are_not_kept_are_read_for_each_request(tmp_path: Path, gaussian: dict[str, Any]) -> None:
    """They are read on a thread; and a map that was made anew under its name is never served from memory."""
    for options in (("--cache-bytes", "0"), ()):
        with service(tmp_path / f"data{len(options)}", *options) as running, running.client() as client:
            answers = []
            for seed in (7, 8):
                assert put(client, "m", {**gaussian, "seed": seed}).status_code == 201
                answers += [array(post_npy(client, "m/transform", ROWS)) for _ in range(3)]
                assert client.delete("/v1/maps/m").status_code == 204
                assert_problem(client, post_npy(client, "m/transform", ROWS), 404, "map-not-found")
            for same in (answers[:3], answers[3:]):
                assert all((one == same[0]).all() for one in same)
            assert (answers[0] != answers[3]).any()
