import io

import httpx
import pytest

import bochner
from service_tests.checks import array, assert_problem, post_npy
from service_tests.core.combinations import rows

FORMATS = {"onnx": "application/octet-stream", "safetensors": "application/octet-stream", "npz": "application/zip"}


def export(http: httpx.Client, name: str, file_format: str, **headers: str) -> httpx.Response:
    return http.get(f"/v1/maps/{name}/export", params={"format": file_format}, headers=headers)


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_file_has_its_name_and_the_digest_of_its_map(http: httpx.Client, fourier: str, file_format: str) -> None:
    record = http.get(f"/v1/maps/{fourier}").json()
    answer = export(http, fourier, file_format)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == FORMATS[file_format]
    assert answer.headers["content-disposition"] == f'attachment; filename="{fourier}.{file_format}"'
    assert answer.headers["etag"] == f'"{record["digest"]}"'
    assert record["digest"].encode() in answer.content
    again = export(http, fourier, file_format, **{"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_what_is_taken_away_computes_the_bits_of_the_service(http: httpx.Client, fourier: str, hashes: str) -> None:
    x = rows(50, 1, 3)
    loaded, codes = (bochner.load(io.BytesIO(export(http, one, "npz").content)) for one in (fourier, hashes))
    assert (loaded.transform(x) == array(post_npy(http, f"{fourier}/transform", x))).all()
    assert (codes.codes(x, "pairs") == array(post_npy(http, f"{hashes}/codes?encoding=pairs", x))).all()


def test_what_cannot_be_taken_away_is_refused_by_name(http: httpx.Client, hashes: str, name: str) -> None:
    refused = assert_problem(http, export(http, hashes, "onnx"), 422, "invalid-input")
    assert refused["errors"][0]["parameter"] == "format"
    assert "npz holds every map" in refused["detail"]
    assert_problem(http, export(http, f"{name}-none", "npz"), 404, "map-not-found")
    assert_problem(http, export(http, hashes, "pickle"), 422, "invalid-input")
