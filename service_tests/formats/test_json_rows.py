"""Rows of bodies so long that they are read in parts are those of short ones."""

import json
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.errors import InvalidInput, TooLarge
from app.formats import FORMATS, Body
from app.formats.json.lists import PART_BYTES

JSON = FORMATS["application/json"]
N = PART_BYTES // 4
DENSE: Any = [1, 2, 3]
SPARSE: Any = {"indices": [0, 2], "values": [1, 2]}


def read(rows: Any, width: int, **others: Any) -> Any:
    return JSON.decode(Body(json.dumps({"vectors": rows, **others}).encode()), width, "vectors")["vectors"]


def test_dense_rows_in_parts_are_the_same_matrix() -> None:
    rows = np.random.default_rng(1).normal(size=(N, 3))
    wanted = rows.tolist()
    wanted[N - 2][1] = None
    rows[N - 2, 1] = np.nan
    np.testing.assert_array_equal(read(wanted, 3), rows)


def test_no_memory_is_asked_for_rows_that_are_too_short() -> None:
    with pytest.raises(InvalidInput, match=f"expected {1 << 45} entries, got {PART_BYTES}"):
        read([[1] * PART_BYTES], 1 << 45)


def test_sparse_rows_in_parts_are_the_same_matrix() -> None:
    rows = sparse.csr_array(sparse.random_array((N, 50), density=0.1, rng=np.random.default_rng(2)))
    rows.sort_indices()
    parts = np.split(rows.indices, rows.indptr[1:-1]), np.split(rows.data, rows.indptr[1:-1])
    posted = [{"indices": i.tolist(), "values": v.tolist()} for i, v in zip(*parts, strict=True)]
    found = read(posted, 50)
    assert isinstance(found, sparse.csr_array)
    assert found.shape == rows.shape
    np.testing.assert_array_equal(found.toarray(), rows.toarray())


@pytest.mark.parametrize(
    ("right", "row", "pointer"),
    [
        (DENSE, [1, 2], ""),
        (DENSE, [], ""),
        (DENSE, 3, ""),
        (DENSE, [1, "2", 3], "/1"),
        (DENSE, [1, 2, [3]], "/2"),
        (DENSE, [0] * 700_000, ""),
        (DENSE, "a" * 3 * PART_BYTES, ""),
        (SPARSE, {"indices": [1], "values": [1, 2]}, ""),
        (SPARSE, {"indices": [2, 1], "values": [1, 2]}, "/indices"),
        (SPARSE, {"indices": [3], "values": [1]}, "/indices"),
        (SPARSE, {"indices": [1], "values": ["a"]}, "/values/0"),
        (SPARSE, [1, 2, 3], ""),
        (SPARSE, {"indices": [*range(300_000)], "values": [0] * 300_000}, "/indices"),
        (SPARSE, {"indices": [1], "values": ["a"] * 300_000}, "/values/0"),
    ],
)
def test_what_is_wrong_far_behind_is_named_at_its_place(right: Any, row: Any, pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read([*[right] * N, row, *[right] * N], 3)
    assert refused.value.pointer == f"/vectors/{N}{pointer}"


def test_all_that_is_no_rows_is_counted_and_lists_of_rows_are_not() -> None:
    def check(nbytes: int, _: int) -> None:
        if nbytes > 20:
            raise TooLarge("", limit="max_spec_bytes", allowed=20, value=nbytes)

    def decoded(**members: Any) -> Any:
        return JSON.decode(Body(json.dumps({"vectors": [[1.0, 2.0]] * N} | members).encode(), {}, check), 2, "vectors")

    assert decoded()["vectors"].shape == (N, 2)
    for others in ({"dataset": "a" * 2000}, {"rows": [3] * 2000}):
        with pytest.raises(TooLarge):
            decoded(**others)
