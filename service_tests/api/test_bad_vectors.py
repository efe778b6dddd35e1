"""Vectors in JSON that are refused, each at the place of the mistake."""

from typing import Any

import httpx
import pytest

from service_tests.cases import each
from service_tests.checks import assert_problem, post

pytestmark = pytest.mark.usefixtures("nothing_stored")


def sparse(indices: Any, values: Any) -> dict[str, Any]:
    return {"indices": indices, "values": values}


BODIES = {
    "empty body": (b"", ""),
    "malformed": (b'{"vectors": [[1, 2, 3]', ""),
    "invalid UTF-8": (b'{"vectors": "\xff"}', ""),
    "deep nesting": (b"[" * 100_000, ""),
    "NaN": (b'{"vectors": [[NaN, 0, 0]]}', ""),
    "infinity": (b'{"vectors": [[Infinity, 0, 0]]}', ""),
    "1e400": (b'{"vectors": [[1e400, 0, 0]]}', ""),
    "an array": (b"[[1, 2, 3]]", ""),
    "null": (b"null", ""),
}
MEMBERS: dict[str, tuple[Any, str]] = {
    "typo": ({"vector": [[1, 2, 3]]}, "/vector"),
    "nothing": ({}, "/vectors"),
    "extra member": ({"vectors": [], "rows": 3}, "/rows"),
    "long extra member": ({"vectors": [], "x" * 1000: 3}, "/" + "x" * 80),
}
ROWS: dict[str, tuple[Any, str]] = {
    "no list": ({}, ""),
    "null": (None, ""),
    "a string": ("123", ""),
    "one bare vector": ([1, 2, 3], "/0"),
    "ragged": ([[1, 2, 3], [1, 2]], "/1"),
    "too wide": ([[1, 2, 3, 4]], "/0"),
    "empty row": ([[]], "/0"),
    "string": ([[1, "2", 3]], "/0/1"),
    "null entry": ([[1, 2, None]], "/0/2"),
    "true": ([[True, 2, 3]], "/0/0"),
    "nested list": ([[1, 2, [3]]], "/0/2"),
    "object entry": ([[1, 2, 3], [{}, 2, 3]], "/1/0"),
    "null row": ([[1, 2, 3], None], "/1"),
    "over float32": ([[1, 2, 3], [1, 1e39, 3]], "/1/1"),
    "duplicate index": ([sparse([1, 1], [1, 2])], "/0/indices"),
    "unsorted indices": ([sparse([2, 1], [1, 2])], "/0/indices"),
    "negative index": ([sparse([-1], [1])], "/0/indices"),
    "index out of range": ([sparse([0], [1]), sparse([3], [1])], "/1/indices"),
    "huge index": ([sparse([1 << 70], [1])], "/0/indices"),
    "float index": ([sparse([1.0], [1])], "/0/indices"),
    "true as index": ([sparse([True], [1])], "/0/indices"),
    "null indices": ([sparse(None, [1])], "/0/indices"),
    "different lengths": ([sparse([0, 1], [1])], "/0"),
    "string value": ([sparse([0], ["1"])], "/0/values/0"),
    "values no list": ([sparse([0], 1)], "/0/values"),
    "no values": ([{"indices": [0]}], "/0"),
    "extra key": ([sparse([0], [1]) | {"shape": 3}], "/0"),
    "sparse after dense": ([[1, 2, 3], sparse([0], [1])], "/1"),
    "dense after sparse": ([sparse([0], [1]), [1, 2, 3]], "/1"),
}


@each(("body", "pointer"), BODIES.values())
@each("address", ["cos_sin/transform", "cos_sin/kernel", "gmm/codes", "gmm/similarity"])
def test_what_is_no_json_object_is_refused_everywhere(
    http: httpx.Client, address: str, body: bytes, pointer: str
) -> None:
    assert_problem(http, post(http, f"standing-{address}", body), 422, "invalid-input", pointer)


@each(("body", "pointer"), MEMBERS.values())
@each("address", ["cos_sin/transform", "gmm/codes"])
def test_a_misnamed_member_is_refused_by_name(http: httpx.Client, address: str, body: Any, pointer: str) -> None:
    assert_problem(http, post(http, f"standing-{address}", body), 422, "invalid-input", pointer)


@each(("rows", "pointer"), ROWS.values())
def test_bad_rows_are_refused_where_they_stand(http: httpx.Client, rows: Any, pointer: str) -> None:
    answer = post(http, "standing-cos_sin/transform", {"vectors": rows})
    assert_problem(http, answer, 422, "invalid-input", f"/vectors{pointer}")


@each(("rows", "pointer"), ROWS.values())
def test_bad_rows_are_refused_by_all_that_take_rows(http: httpx.Client, rows: Any, pointer: str) -> None:
    answer = post(http, "standing-gmm/codes", {"vectors": rows})
    assert_problem(http, answer, 422, "invalid-input", f"/vectors{pointer}")
    answer = post(http, "standing-phase/kernel", {"x": rows})
    assert_problem(http, answer, 422, "invalid-input", f"/x{pointer}")
    answer = post(http, "standing-phase/kernel", {"x": [[1, 2, 3]], "y": rows})
    assert_problem(http, answer, 422, "invalid-input", f"/y{pointer}")


@pytest.mark.parametrize("member", [{}, {"x": []}, {"y": []}, {"x": [], "y": [], "z": []}])
def test_similarity_wants_x_and_y_and_no_more(http: httpx.Client, member: Any) -> None:
    assert_problem(http, post(http, "standing-gmm/similarity", member), 422, "invalid-input")


def test_entries_whose_phases_overflow_are_refused(http: httpx.Client) -> None:
    for path, body in (("transform", {"vectors": [[3e38, 0, 0]]}), ("kernel", {"x": [[1, 2, 3]], "y": [[3e38, 0, 0]]})):
        assert_problem(http, post(http, f"standing-cos_sin/{path}", body), 422, "invalid-input")


@pytest.mark.parametrize("query", ["", "?encoding=pairs"])
def test_a_zero_row_has_no_codes_unless_it_may_be_marked(http: httpx.Client, query: str) -> None:
    body = {"vectors": [[1, 2, 3], [0, 0, 0], [0, 0, 0]]}
    document = assert_problem(
        http, post(http, f"standing-gmm/codes{query}", body), 422, "invalid-input", pointer="/vectors/1"
    )
    assert "row 1, 2" in document["detail"]


def test_a_zero_row_has_no_similarity(http: httpx.Client) -> None:
    body = {"x": [[1, 2, 3], [4, 5, 6]], "y": [[1, 2, 3], [0, 0, 0]]}
    assert_problem(http, post(http, "standing-gmm/similarity", body), 422, "invalid-input", "/y/1")
    assert_problem(http, post(http, "standing-gmm/kernel", {"x": [[0, 0, 0]]}), 422, "invalid-input", "/x/0")


def test_pairs_and_plain_codes_are_not_mixed(http: httpx.Client) -> None:
    body = {"x": [[[0, 0]] * 16], "y": [[0] * 16]}
    assert_problem(http, post(http, "standing-gmm/similarity", body), 422, "invalid-input", "/y")
    pair_of_truth = {"x": [[[0, True]] + [[0, 0]] * 15], "y": [[[0, 0]] * 16]}
    assert_problem(http, post(http, "standing-gmm/similarity", pair_of_truth), 422, "invalid-input", "/x")


def test_x_and_y_must_have_as_many_rows(http: httpx.Client) -> None:
    for x, y in (([[1, 2, 3]], []), ([[0] * 16] * 2, [[0] * 16])):
        answer = post(http, "standing-gmm/similarity", {"x": x, "y": y})
        assert_problem(http, answer, 422, "invalid-input", "/y")


def test_a_map_without_features_refuses_them_with_advice(http: httpx.Client) -> None:
    answer = post(http, "standing-gmm/transform", {"vectors": [[1, 2, 3]]})
    assert "/codes" in assert_problem(http, answer, 422, "invalid-input")["detail"]
