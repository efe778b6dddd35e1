"""Large results made in blocks, and answers in another dtype than that of their map."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import JSON, NPY, array, assert_problem, post_npy, put
from service_tests.running import Running, service

ROWS = np.random.default_rng(3).standard_normal((50, 3))
HALF, SINGLE = f"{NPY}; dtype=float16", f"{NPY}; dtype=float32"
FORMS = ["cos_sin", "phase", "complex", "float64", "normalized"]
ENCODINGS = ["pairs", "zero_bit", "b_bit", "packed", "one_hot", "fingerprint"]


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that holds no more than 1,500 bytes of a result, so that everything comes in blocks."""
    options = ("--max-result-bytes", "1500", "--max-operations", str(10**13), "--job-workers", "1")
    with service(tmp_path_factory.mktemp("narrow") / "data", *options) as running:
        yield running


@pytest.fixture(scope="module")
def in_blocks(narrow: Running) -> Iterator[httpx.Client]:
    """A client of it, with the maps of `standing`, and one that is wider than a block."""
    kernel, sampler = {"kind": "gaussian", "length_scale": 1.5}, {"kind": "sobol"}
    fourier: dict[str, Any] = {"kernel": kernel, "sampler": sampler}
    specs: dict[str, dict[str, Any]] = {form: {**fourier, "form": form} for form in ("cos_sin", "phase", "complex")}
    specs["float64"] = {**fourier, "dtype": "float64"}
    specs["normalized"] = {**fourier, "form": "phase", "normalize": True}
    specs["gmm"] = {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}
    specs["wide"] = {**fourier, "s": 4096}
    with narrow.client() as client:
        for title, spec in specs.items():
            assert put(client, f"standing-{title}", {"input_dim": 3, "s": 16, "seed": 7, **spec}).status_code == 201
        yield client


@pytest.mark.usefixtures("standing")
@pytest.mark.parametrize("accept", [NPY, JSON])
@pytest.mark.parametrize("form", FORMS)
def test_features_in_blocks_are_those_of_the_whole(
    http: httpx.Client, in_blocks: httpx.Client, form: str, accept: str
) -> None:
    whole, some = (post_npy(one, f"standing-{form}/transform", ROWS, accept) for one in (http, in_blocks))
    assert whole.status_code == some.status_code == 200
    assert whole.content == some.content
    assert whole.headers.get("content-type") == some.headers.get("content-type")
    if accept == NPY:
        assert some.headers["content-length"] == str(len(whole.content))


@each(
    ("path", "bad", "detail"),
    [
        ("cos_sin/transform", np.nan, "row 49, column 2 is missing"),
        ("cos_sin/transform", 3e38, "phases"),
        ("gmm/codes", 0.0, "row 49 is all zero"),
    ],
)
@each("accept", [NPY, JSON])
def test_what_is_wrong_with_the_last_row_is_said_before_the_first_byte(
    in_blocks: httpx.Client, path: str, bad: float, detail: str, accept: str
) -> None:
    rows = ROWS.copy()
    rows[-1] *= 0
    rows[-1, 2] = bad
    answer = post_npy(in_blocks, f"standing-{path}", rows, accept)
    assert detail in assert_problem(in_blocks, answer, 422, "invalid-input")["detail"]


@pytest.mark.usefixtures("standing")
@pytest.mark.parametrize(
    ("form", "accept", "dtype"),
    [
        ("cos_sin", HALF, np.float16),
        ("float64", HALF, np.float16),
        ("float64", SINGLE, np.float32),
        ("cos_sin", SINGLE, np.float32),
    ],
)
def test_another_dtype_is_answered_as_asked(
    http: httpx.Client, in_blocks: httpx.Client, form: str, accept: str, dtype: type
) -> None:
    for client in (http, in_blocks):
        own = array(post_npy(client, f"standing-{form}/transform", ROWS))
        found = array(post_npy(client, f"standing-{form}/transform", ROWS, accept))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, own.astype(dtype))


def test_the_result_of_a_job_is_not_held_to_be_waited_for(in_blocks: httpx.Client) -> None:
    """The client that waits gets the record of the job, which has the result as a stream."""
    in_blocks.put("/v1/indexes/many", json={"map": "standing-gmm"}).raise_for_status()
    batch = {"ids": [*range(50)], "vectors": np.tile(ROWS[0], (50, 1)).tolist()}
    in_blocks.post("/v1/indexes/many/vectors", json=batch).raise_for_status()
    asked = in_blocks.post("/v1/indexes/many/duplicates", json={"min_similarity": 1.0}, headers={"Prefer": "wait=30"})
    assert asked.status_code == 202
    assert asked.json()["state"] == "succeeded"
    assert in_blocks.get(asked.json()["result"]).json()["clusters"] == [[*range(50)]]
