"""Requests for diagnostics that are refused by name."""

import json
from typing import Any

import httpx
import pytest

from service_tests.cases import each
from service_tests.checks import JSON, assert_problem, post

VECTORS = {"vectors": [[1, 2, 3], [3, 1, 2], [0.5, 1, 1.5]]}


@each(
    ("kind", "body", "pointer"),
    [
        ("gram", {}, "/vectors"),
        ("gram", VECTORS | {"dataset": "x"}, "/vectors"),
        ("gram", {"vectors": [[1, 2]]}, "/vectors/0"),
        ("gram", {"vectors": [[1, 2, 3]]}, "/vectors"),
        ("gram", VECTORS | {"estimators": []}, "/estimators"),
        ("gram", VECTORS | {"estimators": ["cv3"]}, "/estimators/0"),
        ("gram", VECTORS | {"seeds": -1}, "/seeds"),
        ("gram", VECTORS | {"rows": 5}, "/rows"),
        ("gram", VECTORS | {"box": 1}, "/box"),
        ("box-discrepancy", {}, "/box"),
        ("box-discrepancy", VECTORS | {"box": 1}, "/box"),
        ("box-discrepancy", {"box": [1, 2]}, "/box"),
        ("box-discrepancy", {"box": 1, "rows": 5}, "/rows"),
        ("box-discrepancy", {"box": 1, "seed": 1}, "/seed"),
        ("box-discrepancy", VECTORS | {"seed": 1}, "/seed"),
        ("box-discrepancy", {"box": 0}, "/box"),
        ("box-discrepancy", {"box": 1, "box_scales": []}, "/box_scales"),
        ("max-error", {}, "/diameters"),
        ("max-error", {"diameters": [0]}, "/diameters/0"),
        ("max-error", {"diameters": [1e308]}, "/diameters"),
        ("variance", {}, "/x"),
        ("variance", {"x": [[1, 2, 3]]}, "/x"),
        ("variance", {"x": [[1, 2, 3]], "y": [[1, 2, 3], [4, 5, 6]]}, "/y"),
        ("variance", {"correlations": [0.5]}, "/correlations"),
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


@pytest.mark.parametrize("prefer", ["wait=30", "respond-async"])
@pytest.mark.parametrize("n", [0, 1])
def test_too_few_rows_are_refused_before_there_is_a_job(
    http: httpx.Client, fourier: str, hashes: str, n: int, prefer: str
) -> None:
    rows = [[1, 2, 3]][:n]
    for name, kind, members, said in (
        (fourier, "gram", {"vectors": rows}, f"{n} rows came; a Gram matrix is measured on 2 to 20000"),
        (hashes, "gram", {"vectors": rows}, f"{n} rows came; a Gram matrix is measured on 2 to 20000"),
        (hashes, "collisions", {"vectors": rows}, f"{n} rows came; pairs need 2"),
        (hashes, "collisions", {"vectors": rows, "gamma": 1}, f"{n} rows came; pairs need 2"),
        (fourier, "variance", {"x": rows, "y": VECTORS["vectors"]}, f"x has {n} rows and y 3; pairs need as many"),
        (hashes, "variance", {"x": rows, "y": VECTORS["vectors"]}, f"x has {n} rows and y 3; pairs need as many"),
    ):
        path = f"/v1/maps/{name}/diagnostics/{kind}"
        refused = http.post(path, json=members, headers={"Prefer": prefer})
        pointer = "/y" if "x" in members else "/vectors"
        assert assert_problem(http, refused, 422, "invalid-input", pointer)["detail"] == said


def test_no_map_no_diagnostic(http: httpx.Client) -> None:
    assert_problem(http, post(http, "no-such/diagnostics/gram", VECTORS), 404, "map-not-found", None)
    answer = http.post("/v1/maps/no-such/diagnostics/beauty", json=VECTORS)
    assert_problem(http, answer, 422, "invalid-input", None)


@pytest.mark.parametrize("levels", [100, 230, 260, 500, 900])
def test_options_that_are_nested_deeply_are_refused(http: httpx.Client, fourier: str, levels: int) -> None:
    deep = b'{"a":' * levels + b"1" + b"}" * levels
    rows = json.dumps(VECTORS).encode()[:-1]
    diagnosed = post(http, f"{fourier}/diagnostics/gram", rows + b',"estimators":' + deep + b"}")
    assert_problem(http, diagnosed, 422, "invalid-input")
    headers = {"Content-Type": JSON}
    kernel = b'{"kind":"gaussian","length_scale":' + deep + b"}"
    for member in (b'"input":' + deep + b',"kernel":{"kind":"gaussian","length_scale":1}', b'"kernel":' + kernel):
        body = rows + b',"budget":8,' + member + b"}"
        assert_problem(http, http.post("/v1/recommendations", content=body, headers=headers), 422, "invalid-input")
