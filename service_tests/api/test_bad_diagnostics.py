"""Requests for diagnostics that are refused by name."""

from typing import Any

import httpx

from service_tests.cases import each
from service_tests.checks import assert_problem, post

VECTORS = {"vectors": [[1, 2, 3], [3, 1, 2], [0.5, 1, 1.5]]}


@each(
    ("kind", "body", "pointer"),
    [
        ("gram", {}, "/vectors"),
        ("gram", {"vectors": [[1, 2]]}, "/vectors/0"),
        ("gram", VECTORS | {"estimators": []}, "/estimators"),
        ("gram", VECTORS | {"seeds": -1}, "/seeds"),
        ("gram", VECTORS | {"rows": 5}, "/rows"),
        ("box-discrepancy", {}, "/box"),
        ("box-discrepancy", {"box": 1, "rows": 5}, "/rows"),
        ("box-discrepancy", {"box": 0}, "/box"),
        ("max-error", {}, "/diameters"),
        ("max-error", {"diameters": [0]}, "/diameters/0"),
        ("variance", {}, "/x"),
        ("variance", {"x": [[1, 2, 3]], "y": [[1, 2, 3], [4, 5, 6]]}, "/y"),
        ("variance", {"x": [[1, 2, 3]], "y": [[1, 2, 3]], "gamma": 1}, "/gamma"),
        ("collisions", VECTORS, ""),
    ],
)
def test_bad_requests_of_fourier_maps_are_refused_by_name(
    http: httpx.Client, fourier: str, kind: str, body: dict[str, Any], pointer: str
) -> None:
    assert_problem(http, post(http, f"{fourier}/diagnostics/{kind}", body), 422, "invalid-input", pointer)


@each(
    ("kind", "body", "pointer"),
    [
        ("gram", VECTORS | {"estimators": ["cv1"]}, "/estimators"),
        ("gram", {"vectors": [[0, 0, 0], [1, 2, 3]]}, "/vectors/0"),
        ("box-discrepancy", {"box": 1}, ""),
        ("max-error", {"diameters": [1]}, ""),
        ("collisions", VECTORS | {"bits": 17}, "/bits"),
        ("collisions", VECTORS | {"bits_of": "sign"}, "/bits_of"),
        ("collisions", {"vectors": [[1, 2, 3]]}, "/vectors"),
        ("variance", {"correlations": [1.5]}, "/correlations/0"),
    ],
)
def test_bad_requests_of_hashing_maps_are_refused_by_name(
    http: httpx.Client, hashes: str, kind: str, body: dict[str, Any], pointer: str
) -> None:
    assert_problem(http, post(http, f"{hashes}/diagnostics/{kind}", body), 422, "invalid-input", pointer)
