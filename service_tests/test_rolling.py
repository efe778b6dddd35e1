"""Two versions on one store at once, as while an installation is updated a process at a time.

The earlier one is this code, the later one this code with all its versions higher.
"""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

import httpx
import numpy as np
import pytest

from service_tests.checks import NPY, array, assert_problem, post, put, put_dataset
from service_tests.running import service
from service_tests.servers import EVERY_WRITE, valkey

pytestmark = pytest.mark.nightly
ROWS = {"vectors": [[1, 2, 3], [0, 1, 0.5]]}
POINTS = np.random.default_rng(1).normal(size=(40, 3)).round(2).tolist()
GAUSSIAN = {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "sobol"}, "s": 16}
GMM = {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 16}
LEARNED = {**GAUSSIAN, "sampler": {"kind": "global_adaptive", "dataset": "points", "iterations": 3}}


class Pair(NamedTuple):
    """Clients of two services on one store."""

    earlier: httpx.Client
    later: httpx.Client


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two services and a worker of each."""
    directory = tmp_path_factory.mktemp("rolling")
    with ExitStack() as stack:
        url = stack.enter_context(valkey(directory, *EVERY_WRITE))
        clients = []
        for name, program in {"earlier": "app", "later": "service_tests.next_version"}.items():
            running = stack.enter_context(service(directory / name, "--redis-url", url, program=program))
            clients.append(stack.enter_context(running.client()))
            command = [sys.executable, "-m", program, "worker", "--redis-url", url]
            worker = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            stack.callback(worker.wait, 60)
            stack.callback(worker.terminate)
        yield Pair(*clients)


def test_what_the_earlier_stores_is_the_same_in_the_later(two: Pair) -> None:
    for name, spec in {"gaussian": GAUSSIAN, "gmm": GMM}.items():
        record = put(two.earlier, name, spec).json()
        assert put(two.later, name, spec).status_code == 200
        found = two.later.get(f"/v1/maps/{name}").json()
        assert {key: found[key] for key in record} == record
    codes = [post(one, "gmm/codes", ROWS).json()["codes"] for one in two]
    assert codes[0] == codes[1]
    features = [array(post(one, "gaussian/transform", ROWS, NPY)) for one in two]
    np.testing.assert_allclose(features[0], features[1], atol=1e-6)
    assert put_dataset(two.earlier, "rows", POINTS).status_code == 201
    features = [array(post(one, "gaussian/transform", {"vectors": {"dataset": "rows"}}, NPY)) for one in two]
    np.testing.assert_allclose(features[0], features[1], atol=1e-6)


def test_what_the_later_stores_is_refused_by_the_earlier_and_stays_whole(two: Pair) -> None:
    record = put(two.later, "newer", GAUSSIAN).json()
    dataset = put_dataset(two.later, "newer-rows", POINTS).json()
    for answer in (
        two.earlier.get("/v1/maps/newer"),
        post(two.earlier, "newer/transform", ROWS),
        put(two.earlier, "newer", {**GAUSSIAN, "seed": 1}),
        two.earlier.get("/v1/datasets/newer-rows"),
    ):
        assert_problem(two.earlier, answer, 503, "newer-version")
    assert two.later.get("/v1/maps/newer").json() == record
    assert two.later.get("/v1/datasets/newer-rows").json() == dataset


def test_of_one_name_at_both_at_once_one_is_made(two: Pair) -> None:
    """Whoever comes first has it, and the other is refused or told that it cannot read it."""
    for number in range(20):
        with ThreadPoolExecutor(2) as pool:
            specs = [{**GAUSSIAN, "seed": seed} for seed in (1, 2)]
            answers = list(pool.map(lambda one, spec: put(one, f"both-{number}", spec), two, specs))  # noqa: B023
        made = [answer.status_code == 201 for answer in answers]
        assert sum(made) == 1, [answer.text for answer in answers]
        record = two.later.get(f"/v1/maps/both-{number}").json()
        assert record["spec"]["seed"] == (1 if made[0] else 2)
        assert record == {**record, **answers[made.index(True)].json()}
