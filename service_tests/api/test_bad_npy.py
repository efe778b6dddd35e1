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
ROW = np.ones((1, 3), np.float32)
BYTES = ROW.tobytes()

ARRAYS: dict[str, Any] = {
    "complex64": np.ones((1, 3), np.complex64),
    "float16": np.ones((1, 3), np.float16),
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
FILES = {
    "empty body": b"",
    "garbage": b"vectors please",
    "magic only": b"\x93NUMPY",
    "JSON": b'{"vectors": [[1, 2, 3]]}',
    "truncated header": npy(ROW)[:40],
    "truncated": npy(ROW)[:-1],
    "trailing bytes": npy(ROW) + b"\0",
    "version 3.0": npy_with_header(header(), BYTES, (3, 0)),
    "version 9.9": npy_with_header(header(), BYTES, (9, 9)),
    "huge shape": npy_with_header(header(shape="(10000000000, 3)"), BYTES),
    "negative length": npy_with_header(header(shape="(-1, 3)"), b""),
    "two negative lengths": npy_with_header(header(shape="(-1, -3)"), BYTES),
    "length beyond int64": npy_with_header(header(shape="(0, 9223372036854775808)")),
    "bytes beyond int64": npy_with_header(header(shape="(0, 4611686018427387904)")),
    "100 dimensions": npy_with_header(header(shape=f"({'1,' * 100})"), b"\0" * 4),
    "true as length": npy_with_header(header(shape="(True, 3)"), BYTES),
    "number of 5000 digits": npy_with_header(header(shape=f"({'9' * 5000}, 3)"), BYTES),
    "empty strings": npy_with_header(header("'|S0'")),
    "empty voids": npy_with_header(header("'|V0'")),
    "subarrays": npy_with_header(header("('<f4', (3,))", "(1,)"), BYTES),
    "empty dtype": npy_with_header(header("()"), BYTES),
    "half a dtype": npy_with_header(header("('<f4',)"), BYTES),
    "number as dtype": npy_with_header(header("3"), BYTES),
    "no such dtype": npy_with_header(header("'<q9'"), BYTES),
    "object as dtype": npy_with_header(header("{'a': 1}"), BYTES),
    "missing key": npy_with_header("{'descr': '<f4', 'shape': (1, 3)}", BYTES),
    "open brace": npy_with_header("{'descr': '<f4', 'x", BYTES),
    "open string": npy_with_header("'''", BYTES),
    "open brackets": npy_with_header("(" * 5000, BYTES),
    "a call": npy_with_header("__import__('os').getcwd()", BYTES),
    "zero bytes": npy_with_header("\0\0", BYTES),
    "long header": npy_with_header(header() + " " * 20_000, BYTES),
}


@each("address", ADDRESSES)
@each("posted", ARRAYS.values())
def test_an_array_that_is_no_matrix_of_numbers_is_refused(http: httpx.Client, address: str, posted: Any) -> None:
    assert_problem(http, post_npy(http, address, npy(posted)), 422, "invalid-input")


@each("address", ADDRESSES)
@each("dtype", ["?", "i1", "u1", "<i2", ">u2", "<i4", ">i4", "<u4", "<i8", ">i8", ">u8"])
def test_whole_numbers_are_those_of_a_float_array(http: httpx.Client, address: str, dtype: str) -> None:
    rows = np.array([[1, 0, 1], [0, 1, 1]]) if dtype == "?" else np.array([[100, 0, 3], [4, 5, 126]])
    for order in (np.ascontiguousarray, np.asfortranarray):
        answer = post_npy(http, address, npy(order(rows.astype(dtype))))
        assert answer.status_code == 200, answer.text
        assert answer.content == post_npy(http, address, rows.astype(np.float32)).content


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


@each("address", ADDRESSES)
@each("body", FILES.values())
def test_bytes_that_are_not_what_they_say_are_refused(http: httpx.Client, address: str, body: bytes) -> None:
    assert_problem(http, post_npy(http, address, body), 422, "invalid-input", "")


def test_float64_entries_beyond_float32_are_refused_by_a_float32_map(http: httpx.Client) -> None:
    rows = np.array([[0, 0, 0], [0, 0, 1e300]])
    assert_problem(http, post_npy(http, "standing-cos_sin/transform", rows), 422, "invalid-input", "/vectors/1/2")
    document = assert_problem(http, post_npy(http, "standing-float64/transform", rows * 1e8), 422, "invalid-input")
    assert "phases" in document["detail"]


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


def test_similarity_takes_no_npy(http: httpx.Client) -> None:
    assert_problem(http, post_npy(http, "standing-gmm/similarity", ROW), 415, "unsupported-media-type")
