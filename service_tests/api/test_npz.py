"""Bodies and answers in .npz: several arrays at once, of which none goes through JSON."""

import io
from typing import Any

import httpx
import numpy as np

from service_tests.cases import each
from service_tests.checks import JSON, NPY, array, assert_problem, post, put_dataset
from service_tests.formats.test_npz import npz

NPZ = "application/x-npz"
X = np.array([[1, 2, 3], [0, 1, 0.5]])
Y = np.array([[1, 2, 4], [3, 1, 0.25]])


def post_npz(http: httpx.Client, path: str, accept: str | None = None, **arrays: Any) -> httpx.Response:
    headers = {"Content-Type": NPZ, **({"Accept": accept} if accept else {})}
    return http.post(f"/v1/maps/{path}", content=npz(**arrays), headers=headers)


def loaded(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == NPZ
    return dict(np.load(io.BytesIO(answer.content), allow_pickle=False))


@each("title", ["cos_sin", "complex", "phase", "float64"])
@each("posted", [{"x": X}, {"x": X, "y": Y[:1]}])
def test_a_gram_block_needs_no_json(http: httpx.Client, standing: dict[str, str], title: str, posted: Any) -> None:
    path = f"{standing[title]}/kernel?exact=true"
    found = loaded(post_npz(http, path, **posted))
    assert set(found) == {"approximate", "exact"}
    assert found["approximate"].shape == (2, len(posted.get("y", X)))
    as_json = post(http, path, {name: rows.tolist() for name, rows in posted.items()}).json()
    wanted = as_json["approximate"]
    if title == "complex":
        wanted = np.array(wanted["real"]) + 1j * np.array(wanted["imag"])
    np.testing.assert_array_equal(found["approximate"], np.array(wanted).astype(found["approximate"].dtype))
    np.testing.assert_array_equal(found["exact"], np.array(as_json["exact"]).astype(found["exact"].dtype))
    binary = array(post_npz(http, path, NPY, **posted))
    np.testing.assert_array_equal(binary, np.stack([found["approximate"], found["exact"]]))
    assert post_npz(http, path, JSON, **posted).json() == as_json


def test_features_and_datasets_come_as_a_member(http: httpx.Client, standing: dict[str, str], name: str) -> None:
    wanted = post(http, f"{standing['phase']}/transform", {"vectors": X.tolist()}, NPY)
    found = loaded(post_npz(http, f"{standing['phase']}/transform", vectors=X))
    np.testing.assert_array_equal(found["features"], array(wanted))
    codes = loaded(post_npz(http, f"{standing['gmm']}/codes?encoding=pairs", vectors=X))["codes"]
    assert (
        codes.tolist() == post(http, f"{standing['gmm']}/codes?encoding=pairs", {"vectors": X.tolist()}).json()["codes"]
    )
    made = http.put(f"/v1/datasets/{name}", content=npz(vectors=X), headers={"Content-Type": NPZ})
    assert made.status_code == 201, made.text
    assert put_dataset(http, name, X).status_code == 200


@each(
    ("call", "arrays", "pointer"),
    [
        ("similarity", {"x": X}, "/y"),
        ("similarity?of=codes&encoding=zero_bit", {"x": X, "y": X}, "/x"),
        ("similarity?of=codes&encoding=zero_bit", {"x": np.zeros((1, 16), int), "y": np.full((1, 16), -1)}, "/y/0"),
        ("similarity?encoding=pairs", {"x": np.zeros((1, 16, 3), int), "y": np.zeros((1, 16, 2), int)}, "/x"),
        ("similarity", {"x": X, "y": X[:, :2]}, "/y"),
        ("similarity", {"x": X[0], "y": X[0]}, "/x"),
        ("similarity", {"x": np.full((2, 3), np.inf), "y": X}, "/x"),
    ],
)
def test_what_is_wrong_is_refused_at_its_place(
    http: httpx.Client, standing: dict[str, str], call: str, arrays: Any, pointer: str
) -> None:
    problem = assert_problem(http, post_npz(http, f"{standing['gmm']}/{call}", **arrays), 422, "invalid-input")
    assert problem["errors"][0]["pointer"].startswith(pointer)


def test_a_bomb_is_refused_by_the_name_of_its_limit(http: httpx.Client, standing: dict[str, str]) -> None:
    bomb = npz(compressed=True, x=np.zeros((1 << 20, 3)))
    assert len(bomb) < 100_000
    answer = http.post(f"/v1/maps/{standing['phase']}/kernel", content=bomb, headers={"Content-Type": NPZ})
    problem = assert_problem(http, answer, 413, "too-large")
    assert (problem["limit"], problem["setting"]) == ("max_body_bytes", "BOCHNER_MAX_BODY_BYTES")


def test_objects_are_not_read(http: httpx.Client, standing: dict[str, str]) -> None:
    problem = assert_problem(
        http, post_npz(http, f"{standing['phase']}/kernel", x=np.array([["a", {}]], dtype=object)), 422, "invalid-input"
    )
    assert "plain" in problem["detail"]
