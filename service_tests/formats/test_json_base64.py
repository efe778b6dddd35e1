import json
import tracemalloc
from base64 import b64encode
from typing import Any

import httpx
import numpy as np
import pytest

from app.core.errors import InvalidInput, TooLarge
from app.formats import Body
from app.formats.json import Json
from app.formats.json_base64 import DTYPES
from service_tests.cases import each
from service_tests.checks import NPY, array, assert_problem, post, put_dataset

X = np.array([[1.5, -2, 3], [0, 1, 0.25]])


def encoded(rows: Any, dtype: str = "float64", **changes: Any) -> dict[str, Any]:
    numbers = np.asarray(rows).astype(np.dtype(dtype).newbyteorder("<"))
    return {"base64": b64encode(numbers.tobytes()).decode(), "shape": list(numbers.shape), "dtype": dtype, **changes}


def decoded(body: bytes, most: int = 1000) -> Any:
    def check(nbytes: int, _: int) -> None:
        if nbytes > most:
            raise TooLarge(f"{nbytes}", limit="max_spec_bytes", allowed=most, value=nbytes)

    return Json().decode(Body(bytearray(body), check_options=check), 3, "vectors")["vectors"]


@each("dtype", DTYPES)
@each("n", [0, 1, 2, 100_000])
def test_numbers_are_read_as_they_were(dtype: str, n: int) -> None:
    rows = np.random.default_rng(1).integers(0, 100, (n, 3))
    found = decoded(json.dumps({"vectors": encoded(rows, dtype)}).encode())
    assert found.dtype == np.dtype(dtype)
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, rows)


def test_slashes_may_be_escaped() -> None:
    for n in (1, 100_000):
        rows = np.random.default_rng(1).normal(size=(n, 3))
        text = json.dumps({"vectors": encoded(rows)}).replace("/", "\\/")
        np.testing.assert_array_equal(decoded(text.encode()), rows)


def test_a_long_text_takes_little_more_than_its_bytes() -> None:
    body = json.dumps({"vectors": encoded(np.zeros((500_000, 3)))}).encode()
    tracemalloc.start()
    decoded(body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * len(body)


LONG = encoded(np.zeros((10_000, 3)))


@each(
    ("rows", "pointer", "said"),
    [
        (encoded(X, shape=[3, 3]), "/base64", "48 bytes came in base64; shape [3, 3] of float64 takes 72"),
        (encoded(X, dtype="float32") | {"dtype": "float64"}, "/base64", "24 bytes came"),
        (encoded(X, base64="AAA"), "/base64", "no base64"),
        (encoded(X, base64="AA AA"), "/base64", "no base64"),
        (encoded(X, base64="AA==AAAA"), "/base64", "no base64"),
        (encoded(X, base64="é"), "/base64", "no base64"),
        (LONG | {"base64": LONG["base64"][:-8] + "AA==AAAA"}, "/base64", "no base64"),
        (LONG | {"base64": LONG["base64"] + "="}, "/base64", "no base64"),
        (LONG | {"base64": LONG["base64"][:-4]}, "/base64", "239997 bytes came"),
        (encoded(X, base64=[1]), "/base64", "a list came"),
        (encoded(X, shape=[6]), "/shape", "[rows, entries of a row] is wanted"),
        (encoded(X, shape=[2, 3, 1]), "/shape", "is wanted"),
        (encoded(X, shape=[2, -3]), "/shape", "is wanted"),
        (encoded(X, shape=[2.0, 3]), "/shape", "is wanted"),
        (encoded(X, shape=[True, 3]), "/shape", "is wanted"),
        (encoded(X, shape="23"), "/shape", "is wanted"),
        (encoded(X, shape=[0, 1 << 40]), "/shape", "is wanted"),
        (encoded(X, shape=list(range(30_000))), "/shape", "is wanted"),
        (encoded(X) | {"dtype": "complex64"}, "/dtype", "'complex64' came"),
        (encoded(X) | {"dtype": "O"}, "/dtype", "'O' came"),
        (encoded(X) | {"dtype": 3}, "/dtype", "the number 3 came"),
        (encoded(X, order="C"), "", "'order' is no member"),
        ({"base64": "AAAA"}, "/shape", "shape is missing"),
        ({"shape": [1, 3], "dtype": "float32"}, "/base64", "base64 is missing"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_place(rows: Any, pointer: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        decoded(json.dumps({"vectors": rows}).encode())
    assert refused.value.pointer == f"/vectors{pointer}"
    assert said in refused.value.detail


def test_long_strings_elsewhere_count_as_options() -> None:
    for body in ({"dataset": "a" * 100_000}, {"vectors": [[1, 2, 3]], "seed": "a" * 100_000}):
        with pytest.raises(TooLarge):
            decoded(json.dumps(body).encode())
    with pytest.raises(InvalidInput, match="a string came; the name of a dataset"):
        decoded(json.dumps({"vectors": {"dataset": "a" * 100_000}}).encode())
    with pytest.raises(InvalidInput, match="a string came; a list of rows"):
        decoded(json.dumps({"vectors": "a" * 100_000}).encode())
    with pytest.raises(InvalidInput, match="not JSON"):
        decoded(json.dumps({"a" * 100_000: 1}).encode())
    with pytest.raises(InvalidInput, match="not JSON"):
        decoded(b'{"vectors": {"base64": "' + b"A" * 100_000)


def test_rows_in_base64_stand_wherever_rows_do(http: httpx.Client, standing: dict[str, str], name: str) -> None:
    x, y = X.tolist(), (X + 1).tolist()
    for call, body in {
        f"{standing['phase']}/transform": {"vectors": x},
        f"{standing['phase']}/kernel?exact=true": {"x": x, "y": y},
        f"{standing['gmm']}/codes": {"vectors": x},
        f"{standing['gmm']}/similarity": {"x": x, "y": y},
        f"{standing['gmm']}/similarity?encoding=zero_bit": {"x": x, "y": y},
        f"{standing['phase']}/diagnostics/gram": {"vectors": x},
        f"{standing['phase']}/diagnostics/variance": {"x": x, "y": y},
    }.items():
        wanted = post(http, call, body)
        assert wanted.status_code == 200, wanted.text
        found = post(http, call, {member: encoded(rows) for member, rows in body.items()})
        assert found.json() == wanted.json(), call
    rows = np.random.default_rng(1).normal(size=(4000, 3))  # past what is parsed whole
    long = array(post(http, f"{standing['phase']}/transform", {"vectors": encoded(rows, "float32")}, NPY))
    wanted = post(http, f"{standing['phase']}/transform", {"vectors": rows.tolist()}, NPY)
    np.testing.assert_array_equal(long, array(wanted))
    assert put_dataset(http, name, {"vectors": encoded(rows)}).status_code == 201
    assert put_dataset(http, name, rows).status_code == 200


def test_the_gate_is_that_of_a_npy(http: httpx.Client, standing: dict[str, str]) -> None:
    path = f"{standing['phase']}/transform"
    for rows in ([[1.0, np.inf, 2]], [[np.nan, 1, 2]], [[1.0, 2]]):
        assert_problem(http, post(http, path, {"vectors": encoded(rows)}), 422, "invalid-input")
    problem = assert_problem(
        http, post(http, path, {"vectors": encoded([[(1 << 24) + 1, 0, 0]], "int64")}), 422, "invalid-input"
    )
    assert "16777217" in problem["detail"]
