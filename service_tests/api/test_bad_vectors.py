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
    "invalid UTF-8": (b'{"vectors": "\xff"}', ""),
    "deep nesting": (b"[" * 100_000, ""),
    "NaN": (b'{"vectors": [[NaN, 0, 0]]}', ""),
    "infinity": (b'{"vectors": [[Infinity, 0, 0]]}', ""),
    "1e400": (b'{"vectors": [[1e400, 0, 0]]}', ""),
}
MEMBERS: dict[str, tuple[Any, str]] = {
    "typo": ({"vector": [[1, 2, 3]]}, "/vector"),
    "nothing": ({}, "/vectors"),
    "extra member": ({"vectors": [], "rows": 3}, "/rows"),
    "long extra member": ({"vectors": [], "x" * 1000: 3}, "/" + "x" * 80),
}
ROWS: dict[str, tuple[Any, str]] = {
    "null": (None, ""),
    "one bare vector": ([1, 2, 3], "/0"),
    "ragged": ([[1, 2, 3], [1, 2]], "/1"),
    "empty row": ([[]], "/0"),
    "string": ([[1, "2", 3]], "/0/1"),
    "true": ([[True, 2, 3]], "/0/0"),
    "object entry": ([[1, 2, 3], [{}, 2, 3]], "/1/0"),
    "over float32": ([[1, 2, 3], [1, 1e39, 3]], "/1/1"),
    "duplicate index": ([sparse([1, 1], [1, 2])], "/0/indices"),
    "unsorted indices": ([sparse([2, 1], [1, 2])], "/0/indices"),
    "index out of range": ([sparse([0], [1]), sparse([3], [1])], "/1/indices"),
    "huge index": ([sparse([1 << 70], [1])], "/0/indices"),
    "true as index": ([sparse([True], [1])], "/0/indices"),
    "different lengths": ([sparse([0, 1], [1])], "/0"),
    "string value": ([sparse([0], ["1"])], "/0/values/0"),
    "values no list": ([sparse([0], 1)], "/0/values"),
    "extra key": ([sparse([0], [1]) | {"shape": 3}], "/0"),
    "sparse after dense": ([[1, 2, 3], sparse([0], [1])], "/1"),
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


@pytest.mark.parametrize("query", ["", "?encoding=pairs"])
def test_a_zero_row_has_no_codes_unless_it_may_be_marked(http: httpx.Client, query: str) -> None:
    body = {"vectors": [[1, 2, 3], [0, 0, 0], [0, 0, 0]]}
    document = assert_problem(
        http, post(http, f"standing-gmm/codes{query}", body), 422, "invalid-input", pointer="/vectors/1"
    )
    assert "row 1, 2" in document["detail"]


def test_a_map_without_features_refuses_them_with_advice(http: httpx.Client) -> None:
    answer = post(http, "standing-gmm/transform", {"vectors": [[1, 2, 3]]})
    assert "/codes" in assert_problem(http, answer, 422, "invalid-input")["detail"]
