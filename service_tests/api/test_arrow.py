"""Arrow streams over HTTP, as the service itself writes and reads them: test_arrow_packages.py has others."""

import httpx
import numpy as np
import pytest

from app.core.arrays import Identified, NumberIds, PostedRows, TextIds
from app.formats.arrow import Arrow
from app.formats.base import Body
from service_tests.checks import ARROW, JSON, NPY, array, arrow, assert_problem, post, post_npy

ROWS = np.random.default_rng(3).standard_normal((7, 3)).astype(np.float32)
WORDS = ["", "é", "𝕏yz", "a" * 40, "", "b", "c"]
IDS = TextIds(np.cumsum([len(word.encode()) for word in WORDS]), np.frombuffer("".join(WORDS).encode(), np.uint8))
FORMS = ["cos_sin", "phase", "complex", "complex64", "float64", "normalized"]


def post_arrow(http: httpx.Client, path: str, body: bytes, accept: str | None = None) -> httpx.Response:
    headers = {"Content-Type": ARROW, **({"Accept": accept} if accept else {})}
    return http.post(f"/v1/maps/{path}", content=body, headers=headers)


def put_arrow(http: httpx.Client, name: str, body: bytes) -> httpx.Response:
    return http.put(f"/v1/datasets/{name}", content=body, headers={"Content-Type": ARROW})


def read(answer: httpx.Response) -> PostedRows | Identified:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == ARROW
    return Arrow().matrix(Body(answer.content))


@pytest.mark.parametrize("form", ["cos_sin", "phase", "float64", "normalized"])
def test_features_are_those_of_npy(http: httpx.Client, standing: dict[str, str], form: str) -> None:
    path = f"{standing[form]}/transform"
    expected = array(post_npy(http, path, ROWS))
    found = read(post_arrow(http, path, arrow(v=ROWS)))
    assert isinstance(found, np.ndarray)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    columns = arrow(a=ROWS[:, 0], b=ROWS[:, 1].astype(np.float64), c=ROWS[:, 2])
    np.testing.assert_array_equal(array(post_arrow(http, path, columns, NPY)), expected)
    assert post_arrow(http, path, arrow(v=ROWS), f"{ARROW}; dtype=float16").status_code == 200
    assert read(post_arrow(http, path, arrow(v=ROWS[:0]))).shape == (0, expected.shape[1])  # type: ignore[union-attr]


@pytest.mark.parametrize("ids", [IDS, NumberIds(np.arange(7) - 3)])
def test_ids_come_back_beside_features_and_codes(
    http: httpx.Client, standing: dict[str, str], ids: TextIds | NumberIds
) -> None:
    for path in (f"{standing['phase']}/transform", f"{standing['gmm']}/codes"):
        body = arrow(v=ROWS, ids=ids)
        found = read(post_arrow(http, path, body))
        assert isinstance(found, Identified)
        assert found.ids.to_list() == ids.to_list()
        expected = array(post_npy(http, path, ROWS))
        np.testing.assert_array_equal(found.rows, expected)
        told = post_arrow(http, path, body, JSON).json()
        assert told.pop("ids") == ids.to_list()
        np.testing.assert_array_equal(np.array(next(iter(told.values())), expected.dtype), expected)
        np.testing.assert_array_equal(array(post_arrow(http, path, body, NPY)), expected)
    block = read(post_arrow(http, f"{standing['phase']}/kernel", body))
    assert isinstance(block, Identified)
    assert block.rows.shape == (7, 7)


@pytest.mark.parametrize("ids", [IDS, NumberIds(np.array([1 << 63] * 7, np.uint64))])
def test_datasets_keep_ids_and_tell_so(
    http: httpx.Client, standing: dict[str, str], name: str, ids: TextIds | NumberIds
) -> None:
    put = put_arrow(http, name, arrow(v=ROWS, ids=ids))
    assert put.status_code == 201, put.text
    assert put.json()["ids"] == ids.kind
    assert http.get(f"/v1/datasets/{name}").json() == put.json()
    assert put_arrow(http, name, arrow(v=ROWS, ids=ids)).status_code == 200
    assert_problem(http, put_arrow(http, name, arrow(v=ROWS)), 409, "dataset-exists")
    path = f"{standing['phase']}/transform"
    every = post(http, path, {"dataset": name}).json()
    assert every["ids"] == ids.to_list()
    some = post(http, path, {"dataset": name, "rows": 3, "seed": 5}).json()
    places = [every["features"].index(row) for row in some["features"]]
    assert some["ids"] == [ids.to_list()[place] for place in places]
    plain = put_arrow(http, f"{name}-plain", arrow(v=ROWS)).json()
    assert plain["ids"] is None
    assert plain["digest"] != put.json()["digest"]
    assert "ids" not in post(http, path, {"dataset": f"{name}-plain"}).json()


def test_what_is_wrong_with_a_stream_is_a_problem(http: httpx.Client, standing: dict[str, str]) -> None:
    path = f"{standing['phase']}/transform"
    for body in (b"", b"no stream", arrow(v=ROWS)[:-30], arrow(a=ROWS, b=ROWS)):
        assert_problem(http, post_arrow(http, path, body), 422, "invalid-input")
    bad = ROWS.copy()
    bad[2, 1] = np.inf
    assert_problem(http, post_arrow(http, path, arrow(v=bad)), 422, "invalid-input", "/vectors/2/1")
    assert_problem(http, post_arrow(http, path, arrow(v=ROWS[:, :2])), 422, "invalid-input", "/vectors")
    assert_problem(http, post_arrow(http, path, arrow(v=ROWS.astype("i8") + (1 << 24) + 1)), 422, "invalid-input")
    complex_ = post_arrow(http, f"{standing['complex']}/transform", arrow(v=ROWS), f"{ARROW}; dtype=float16")
    assert_problem(http, complex_, 406, "not-acceptable")
