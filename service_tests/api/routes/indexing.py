"""Indexes of the shared service, for tests of them, and what NumPy finds in their place."""

from typing import Any, NamedTuple

import httpx
import numpy as np
from numpy.typing import NDArray

from service_tests.checks import put

GMM: dict[str, Any] = {"input_dim": 5, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "dtype": "float64"}
Rows = NDArray[np.float64]


def made(http: httpx.Client, name: str, s: int = 64, ttl: int | None = None, **asked: Any) -> str:
    """Put a map and an index over it, both of this name; the address of the index."""
    assert put(http, name, {**GMM, "s": s}).status_code in (200, 201)
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


class Held(NamedTuple):
    """A vector that an index should hold."""

    row: Rows
    tag: str | None


def counts(http: httpx.Client, name: str, rows: Rows, others: Rows, banding: tuple[int, int] | None) -> Any:
    """In how many codes each row agrees with each of the others, and whether they share a band."""
    x, y = (
        np.array(
            http.post(
                f"/v1/maps/{name}/codes?encoding=b_bit&bits=8&bits_of=pair", json={"vectors": some.tolist()}
            ).json()["codes"]
        )
        for some in (rows, others)
    )
    equal = x[:, None, :] == y[None, :, :]
    if banding is None:
        return equal.sum(axis=2), np.ones(equal.shape[:2], bool)
    bands, per_band = banding
    in_bands = equal[:, :, : bands * per_band].reshape(*equal.shape[:2], bands, per_band)
    return equal.sum(axis=2), in_bands.all(axis=3).any(axis=2)
