"""Bodies of .npy that are not what they say, or not what is wanted."""

import pickle
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.cases import each
from service_tests.checks import assert_problem, header, npy, npy_with_header, post_npy

pytestmark = pytest.mark.usefixtures("nothing_stored")

ADDRESSES = ["standing-cos_sin/transform", "standing-cos_sin/kernel", "standing-gmm/codes"]

ARRAYS: dict[str, Any] = {
    "complex64": np.ones((1, 3), np.complex64),
    "long double": np.ones((1, 3), np.longdouble),
    "strings": np.array([["1", "2", "3"]]),
    "bytes": np.array([[b"1", b"2", b"3"]]),
    "dates": np.zeros((1, 3), "M8[s]"),
    "structured": np.zeros((1, 3), [("a", "<f4")]),
    "void": np.zeros((1, 3), "V4"),
    "objects": np.array([[1.0, None, "x"]], object),
    "0-D": np.float32(1),
    "1-D": np.ones(3, np.float32),
    "3-D": np.ones((1, 1, 3), np.float32),
    "wrong width": np.ones((1, 4), np.float32),
    "no width": np.ones((5, 0), np.float32),
}
NOT_FINITE = [(dtype, value) for dtype in ("<f4", "<f8", ">f4") for value in (np.nan, np.inf, -np.inf)]


@pytest.mark.parametrize(
    ("address", "dtype", "number"),
    [
        ("standing-cos_sin/transform", "<i4", (1 << 24) + 1),
        ("standing-cos_sin/kernel", ">i8", -(1 << 24) - 1),
        ("standing-gmm/codes", "<u8", (1 << 64) - 1),
        ("standing-float64/transform", ">i8", (1 << 53) + 1),
    ],
)
def test_a_whole_number_that_would_be_rounded_is_named(
    http: httpx.Client, address: str, dtype: str, number: int
) -> None:
    rows = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    rows[1, 2] = number
    where = "/x/1/2" if address.endswith("kernel") else "/vectors/1/2"
    document = assert_problem(http, post_npy(http, address, npy(rows)), 422, "invalid-input", where)
    assert f"row 1, column 2 is {number}, which float" in document["detail"]


@each("address", ADDRESSES)
@each(("dtype", "value"), NOT_FINITE)
def test_nan_and_infinity_are_refused_where_they_stand(
    http: httpx.Client, address: str, dtype: str, value: float
) -> None:
    rows = np.ones((4, 3), dtype)
    rows[2, 1] = value
    where = "/x/2/1" if address.endswith("kernel") else "/vectors/2/1"
    assert_problem(http, post_npy(http, address, rows), 422, "invalid-input", where)


class Trap:
    """Creates a file when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_pickle_is_never_opened(http: httpx.Client, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    pickled = pickle.dumps(np.array([[Trap(sprung)] * 3], object))
    pickle.loads(pickled)
    assert sprung.exists(), "the trap does not work"
    sprung.unlink()
    bodies = [
        npy(np.array([[Trap(sprung)] * 3], object)),
        npy_with_header(header("'|O'"), pickled),
        npy_with_header(header("'<f4'"), pickled),
        npy_with_header(header("[('a', '|O')]"), pickled),
        pickled,
    ]
    for address in ADDRESSES:
        for body in bodies:
            assert_problem(http, post_npy(http, address, body), 422, "invalid-input")
    assert not sprung.exists()


@each("address", ADDRESSES)
def test_lengths_of_thousands_of_digits_are_refused(http: httpx.Client, address: str) -> None:
    """Python does not write their product, which has too many."""
    length = "1" + "0" * 4000
    body = npy_with_header(header(shape=f"({length}, {length})"))
    told = assert_problem(http, post_npy(http, address, body), 422, "invalid-input")
    assert "more bytes than there can be" in told["detail"]
