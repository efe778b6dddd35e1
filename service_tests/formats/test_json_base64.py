import json
from base64 import b64encode
from typing import Any

import httpx
import numpy as np
import pytest

from app.core.errors import InvalidInput, TooLarge
from app.formats import Body
from app.formats.json import Json
from app.formats.json.rows import DTYPES
from service_tests.cases import each
from service_tests.checks import post, put_dataset

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
    rows = np.random.default_rng(1).integers(0, 100, (n, 3)).astype(dtype)
    found = decoded(json.dumps({"vectors": encoded(rows, dtype)}).encode())
    assert found.dtype == np.dtype(dtype)
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, rows)


def test_slashes_may_be_escaped() -> None:
    for n in (1, 100_000):
        rows = np.random.default_rng(1).normal(size=(n, 3))
        text = json.dumps({"vectors": encoded(rows)}).replace("/", "\\/")
        np.testing.assert_array_equal(decoded(text.encode()), rows)


LONG = encoded(np.zeros((10_000, 3)))


@each(
    ("rows", "pointer", "said"),
    [
        (encoded(X, shape=[3, 3]), "/base64", "expected 72 bytes for shape [3, 3] of float64, got 48"),
        (encoded(X, dtype="float32") | {"dtype": "float64"}, "/base64", "got 24 in base64"),
        (encoded(X, base64="AAA"), "/base64", "no base64"),
        (LONG | {"base64": LONG["base64"][:-4]}, "/base64", "got 239997 in base64"),
        (encoded(X, base64=[1]), "/base64", "got a list"),
        (encoded(X, shape=[6]), "/shape", "expected [rows, entries of a row]"),
        (encoded(X, shape=[2, -3]), "/shape", "expected [rows"),
        (encoded(X, shape=[0, 1 << 40]), "/shape", "expected [rows"),
        (encoded(X, shape=list(range(30_000))), "/shape", "expected [rows"),
        (encoded(X) | {"dtype": "O"}, "/dtype", "got 'O'"),
        (encoded(X, order="C"), "", "'order' is no member"),
        ({"base64": "AAAA"}, "/shape", "shape is missing"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_place(rows: Any, pointer: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        decoded(json.dumps({"vectors": rows}).encode())
    assert refused.value.pointer == f"/vectors{pointer}"
    assert said in refused.value.detail


def test_rows_in_base64_stand_wherever_rows_do(http: httpx.Client, standing: dict[str, str], name: str) -> None:
    x, y = X.tolist(), (X + 1).tolist()
    for call, body in {
        f"{standing['phase']}/kernel?exact=true": {"x": x, "y": y},
        f"{standing['gmm']}/codes": {"vectors": x},
        f"{standing['phase']}/diagnostics/variance": {"x": x, "y": y},
    }.items():
        wanted = post(http, call, body)
        assert wanted.status_code == 200, wanted.text
        found = post(http, call, {member: encoded(rows) for member, rows in body.items()})
        assert found.json() == wanted.json(), call
    assert put_dataset(http, name, {"vectors": encoded(X)}).status_code == 201
    assert put_dataset(http, name, X).status_code == 200
