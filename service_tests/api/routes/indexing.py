"""Indexes of the shared service, for tests of them, and what NumPy finds in their place."""

import io
from typing import Any, NamedTuple

import httpx
import numpy as np
from numpy.typing import NDArray

from app.core.indexes.banding import order_of_codes
from service_tests.checks import put

GMM: dict[str, Any] = {"input_dim": 5, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "dtype": "float64"}
Rows = NDArray[np.float64]


DARTS: dict[str, Any] = {**GMM, "sampler": {"kind": "dart_minhash"}}
SIGNED: dict[str, Any] = {
    **GMM,
    "kernel": {"kind": "gaussian", "length_scale": 3.0},
    "sampler": {"kind": "monte_carlo"},
}


def made(
    http: httpx.Client, name: str, s: int = 64, ttl: int | None = None, of: dict[str, Any] = GMM, **asked: Any
) -> str:
    """Put a map and an index over it, both of this name; the address of the index."""
    assert put(http, name, {**of, "s": s}).status_code in (200, 201)
    path = f"/v1/indexes/{name}"
    answer = http.put(path, json={"map": name, **asked}, params={} if ttl is None else {"ttl": ttl})
    assert answer.status_code == 201, answer.text
    return path


def upserted(http: httpx.Client, path: str, ids: list[Any], rows: Any, tags: list[Any] | None = None) -> None:
    """Put vectors into an index."""
    body = {"ids": ids, "vectors": np.asarray(rows).tolist()} | ({} if tags is None else {"tags": tags})
    answer = http.post(f"{path}/vectors", json=body)
    assert (answer.status_code, answer.json()) == (200, {"upserted": len(ids)}), answer.text


def found(http: httpx.Client, path: str, rows: Any, **options: Any) -> list[dict[str, Any]]:
    """The results of a search."""
    answer = http.post(f"{path}/search", json={"vectors": np.asarray(rows).tolist(), **options})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    assert len(results) == len(rows)
    return results


def npz(**members: Any) -> bytes:
    """An archive of arrays."""
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    return buffer.getvalue()


class Held(NamedTuple):
    """A vector that an index should hold."""

    row: Rows
    tag: str | None


class Compared(NamedTuple):
    """What codes say of each of some rows with each of others, (n, m)."""

    share: NDArray[np.bool_]
    """Whether they share a band; of a query that shares so many that all are looked at, all."""
    estimate: Rows
    standard_error: Rows


def compared(
    http: httpx.Client, name: str, rows: Rows, others: Rows, banding: tuple[int, int] | None, signed: bool
) -> Compared:
    """What the codes of a map say, asked of it without an index."""
    x, y = (_codes(http, name, some, signed) for some in (rows, others))
    dealt = order_of_codes(http.get(f"/v1/maps/{name}").json()["spec"]["s"])
    equal = x[:, None, dealt] == y[None, :, dealt]
    share = np.ones(equal.shape[:2], np.bool_)
    if banding is not None:
        in_bands = equal[:, :, : banding[0] * banding[1]].reshape(*share.shape, *banding).all(axis=3)
        is_many = (4 * in_bands.any(axis=2).sum(axis=1) > len(others)) | (in_bands.sum(axis=(1, 2)) > len(others))
        share = in_bands.any(axis=2) | is_many[:, None]
    pairs = {"x": np.repeat(rows, len(others), axis=0).tolist(), "y": np.tile(others, (len(rows), 1)).tolist()}
    query = "encoding=packed" if signed else "encoding=b_bit&bits=8&bits_of=pair"
    answer = http.post(f"/v1/maps/{name}/similarity?{query}", json=pairs).json()
    return Compared(share, *(np.array(answer[one]).reshape(share.shape) for one in Compared._fields[1:]))


def _codes(http: httpx.Client, name: str, rows: Rows, signed: bool) -> NDArray[np.uint8]:
    query = "encoding=packed" if signed else "encoding=b_bit&bits=8&bits_of=pair"
    answer = http.post(f"/v1/maps/{name}/codes?{query}", json={"vectors": rows.tolist()})
    codes = np.array(answer.json()["codes"], np.uint8)
    return np.unpackbits(codes, axis=1, bitorder="little") if signed else codes
