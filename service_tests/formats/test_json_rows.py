"""Rows of bodies so long that they are read in parts are those of short ones."""

import json
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.errors import InvalidInput, TooLarge
from app.formats import FORMATS, Body
from app.formats.json_lists import PART_BYTES

JSON = FORMATS["application/json"]
N = PART_BYTES // 4


def read(rows: Any, width: int, **others: Any) -> Any:
    return JSON.decode(Body(json.dumps({"vectors": rows, **others}).encode()), width, "vectors")["vectors"]


def test_dense_rows_in_parts_are_the_same_matrix() -> None:
    rows = np.random.default_rng(1).normal(size=(N, 3))
    wanted = rows.tolist()
    wanted[N - 2][1] = None
    rows[N - 2, 1] = np.nan
    np.testing.assert_array_equal(read(wanted, 3), rows)


def test_sparse_rows_in_parts_are_the_same_matrix() -> None:
    rows = sparse.csr_array(sparse.random_array((N, 50), density=0.1, rng=np.random.default_rng(2)))
    rows.sort_indices()
    parts = np.split(rows.indices, rows.indptr[1:-1]), np.split(rows.data, rows.indptr[1:-1])
    posted = [{"indices": i.tolist(), "values": v.tolist()} for i, v in zip(*parts, strict=True)]
    found = read(posted, 50)
    assert isinstance(found, sparse.csr_array)
    assert found.shape == rows.shape
    np.testing.assert_array_equal(found.toarray(), rows.toarray())


@pytest.mark.nightly
def test_one_row_of_millions_of_entries_is_read() -> None:
    width = 1_000_000
    row = np.arange(width) / 7
    np.testing.assert_array_equal(read([row.tolist(), [0] * width], width), [row, np.zeros(width)])
    found = read([{"indices": [*range(width)], "values": row.tolist()}], 1 << 31)
    np.testing.assert_array_equal(found.data, row)
    np.testing.assert_array_equal(found.indices, np.arange(width))


@pytest.mark.parametrize(
    ("row", "pointer"),
    [
        ([1, 2], ""),
        ([1, 2, 3, 4], ""),
        ([], ""),
        (3, ""),
        ({}, ""),
        ([1, "2", 3], "/1"),
        ([1, 2, [3]], "/2"),
        ([True, 2, 3], "/0"),
        ([0] * 700_000, ""),
        ("a" * 3 * PART_BYTES, ""),
    ],
)
def test_what_is_wrong_far_behind_is_named_at_its_place(row: Any, pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read([[1, 2, 3]] * N + [row] + [[1, 2, 3]] * N, 3)
    assert refused.value.pointer == f"/vectors/{N}{pointer}"


@pytest.mark.parametrize(
    ("row", "pointer"),
    [
        ({"indices": [1], "values": [1, 2]}, ""),
        ({"indices": [2, 1], "values": [1, 2]}, "/indices"),
        ({"indices": [3], "values": [1]}, "/indices"),
        ({"indices": [1 << 70], "values": [1]}, "/indices"),
        ({"indices": [1], "values": ["a"]}, "/values/0"),
        ({"indices": [1], "values": 3}, "/values"),
        ({"indices": [1]}, ""),
        ([1, 2, 3], ""),
        ({"indices": [*range(300_000)], "values": [0] * 300_000}, "/indices"),
        ({"indices": [1], "values": ["a"] * 300_000}, "/values/0"),
    ],
)
def test_what_is_wrong_in_sparse_rows_far_behind_is_named_at_its_place(row: Any, pointer: str) -> None:
    right = [{"indices": [0, 2], "values": [1, 2]}] * N
    with pytest.raises(InvalidInput) as refused:
        read([*right, row, *right], 3)
    assert refused.value.pointer == f"/vectors/{N}{pointer}"


def test_all_that_is_no_rows_is_counted_and_lists_of_rows_are_not() -> None:
    def check(nbytes: int, _: int) -> None:
        counted.append(nbytes)
        if nbytes > 1000:
            raise TooLarge("", limit="max_spec_bytes", allowed=1000, value=nbytes)

    rows = [[1.0, 2.0]] * N
    for others, most in (({}, 20), ({"seed": 3}, 1000), ({"dataset": "a" * 2000}, None), ({"rows": [3] * 2000}, None)):
        counted: list[int] = []
        body = Body(json.dumps({"vectors": rows, **others}).encode(), {}, check)
        if most is None:
            with pytest.raises(TooLarge):
                JSON.decode(body, 2, "vectors")
        else:
            with pytest.raises(InvalidInput) if others else nullcontext():
                JSON.decode(body, 2, "vectors")
            assert max(counted) <= most
