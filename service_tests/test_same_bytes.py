"""The same request to two processes, with one thread and with two, gives the same bytes."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.checks import JSON, NPY, post, put
from service_tests.expected_codes import ENCODINGS, sparse
from service_tests.running import service

pytestmark = pytest.mark.nightly
HELD, DRAWN = 40, 1 << 31
S = 512
# Enough hashes of entries for every thread there is.
ROWS = 300


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Two services of one thread and of two, each with a store of its own and the same maps."""
    home: Path = tmp_path_factory.mktemp("same")
    powered = {"kind": "gmm", "p": 2.5, "center": [0.25] * HELD}
    with (
        service(home / "one", "--threads", "1") as one,
        service(home / "two", "--threads", "2") as two,
        one.client() as alone,
        two.client() as together,
    ):
        for http, (name, dim, kernel, sampler) in product(
            (alone, together),
            (
                ("powered", HELD, powered, "gcws"),
                ("drawn", DRAWN, {"kind": "gmm"}, "gcws"),
                ("powered-darts", HELD, powered, "dart_minhash"),
            ),
        ):
            spec = {"input_dim": dim, "kernel": kernel, "sampler": {"kind": sampler}, "s": S, "seed": 11}
            assert put(http, name, spec).status_code == 201
        yield alone, together


def rows() -> Any:
    """About half of the entries are zero."""
    rng = np.random.default_rng(6)
    dense = rng.normal(size=(ROWS, HELD)) * (rng.random((ROWS, HELD)) < 0.5)
    assert np.count_nonzero(dense) * S > 2 << 20, "too few to be shared out"
    return dense


def same(processes: tuple[httpx.Client, httpx.Client], path: str, body: Any, accept: str = NPY) -> bytes:
    first, second = (post(http, path, body, accept) for http in processes)
    assert first.status_code == second.status_code == 200, first.text[:300]
    assert first.content == second.content
    return first.content


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("accept", [NPY, JSON])
def test_codes_are_the_same(processes: tuple[httpx.Client, httpx.Client], encoding: str, accept: str) -> None:
    x = rows()
    for name in ("powered", "powered-darts"):
        path = f"{name}/codes?encoding={encoding}"
        from_sparse = same(processes, path, {"vectors": sparse(x)}, accept)
        assert same(processes, path, {"vectors": x.tolist()}, accept) == from_sparse
    same(processes, f"drawn/codes?encoding={encoding}", {"vectors": sparse(x)}, accept)


@pytest.mark.parametrize("name", ["powered", "drawn", "powered-darts"])
def test_similarities_and_gram_blocks_are_the_same(processes: tuple[httpx.Client, httpx.Client], name: str) -> None:
    x = sparse(rows())
    gamma = "gamma=3&" if name == "drawn" else ""
    same(processes, f"{name}/similarity?{gamma}encoding=b_bit&bits_of=pair", {"x": x, "y": x[::-1]}, JSON)
    same(processes, f"{name}/kernel?exact=true", {"x": x, "y": x[:100]})
