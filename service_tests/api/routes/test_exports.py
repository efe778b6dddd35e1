import io
from typing import Any

import httpx
import numpy as np
import pytest

import bochner
from service_tests.api.conftest import HASHES, SPEC
from service_tests.checks import array, assert_problem, post_npy, put
from service_tests.core.combinations import rows
from service_tests.running import service

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
    for known, status in ((answer.headers["etag"], 304), ("*", 304), ('"other"', 200)):
        again = export(http, fourier, file_format, **{"If-None-Match": known})
        assert again.status_code == status
        assert again.headers["etag"] == answer.headers["etag"]
        assert again.content == (b"" if status == 304 else answer.content)


def test_what_is_taken_away_computes_the_bits_of_the_service(http: httpx.Client, fourier: str) -> None:
    x = rows(50, 1, 3)
    loaded = bochner.load(io.BytesIO(export(http, fourier, "npz").content))
    assert (loaded.transform(x) == array(post_npy(http, f"{fourier}/transform", x))).all()
    assert loaded.spec == http.get(f"/v1/maps/{fourier}").json()["spec"]


def test_codes_too(http: httpx.Client, hashes: str) -> None:
    x = rows(50, 1, 3)
    loaded = bochner.load(io.BytesIO(export(http, hashes, "npz").content))
    assert (loaded.codes(x, "pairs") == array(post_npy(http, f"{hashes}/codes?encoding=pairs", x))).all()


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_large_map_comes_in_pieces(http: httpx.Client, name: str, file_format: str) -> None:
    large: dict[str, Any] = SPEC | {"input_dim": 300, "s": 1 << 13, "dtype": "float32"}  # 9.8 MB
    assert put(http, name, large).status_code == 201
    frequencies = array(http.get(f"/v1/maps/{name}/frequencies", headers={"Accept": "application/x-npy"}))
    answer = export(http, name, file_format)
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert frequencies.tobytes() in answer.content


def test_what_cannot_be_taken_away_is_refused_by_name(http: httpx.Client, hashes: str, name: str) -> None:
    refused = assert_problem(http, export(http, hashes, "onnx"), 422, "invalid-input")
    assert refused["errors"][0]["parameter"] == "format"
    assert "npz and safetensors hold every map" in refused["detail"]
    assert_problem(http, export(http, f"{name}-none", "npz"), 404, "map-not-found")
    for query in ("", "?format=pickle", "?format=npz&format=onnx", "?format=npz&other=1"):
        wrong = http.get(f"/v1/maps/{hashes}/export{query}")
        assert_problem(http, wrong, 422, "invalid-input")


@pytest.mark.nightly
def test_arrays_past_the_limit_come_in_blocks_and_tables_are_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("limited") / "data"
    with service(data, "--max-result-bytes", "40000") as running, running.client() as http:
        large: dict[str, Any] = SPEC | {"input_dim": 300, "s": 2000, "dtype": "float32"}
        assert put(http, "large", large).status_code == 201
        with np.load(io.BytesIO(export(http, "large", "npz").content)) as members:
            assert members["frequencies"].shape == (2000, 300)
        assert put(http, "hashes", HASHES | {"s": 1000}).status_code == 201
        refused = assert_problem(http, export(http, "hashes", "npz"), 413, "too-large")
        assert refused["limit"] == "max_result_bytes"
