"""Maps as models of the Open Inference Protocol; api/test_inference_clients.py has published clients of it."""

# ruff: noqa: E501 - a request is a line

import asyncio
import json
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.requests import ClientDisconnect

from app.api.routes.inference import _compute_outputs
from app.core.maps import make_map
from app.core.spec import MapSpec
from app.formats.open_inference import DTYPES, VERSION
from app.request_context import REQUEST, RequestContext
from service_tests.api.operations import DOCUMENT
from service_tests.cases import each
from service_tests.checks import JSON, array, post_npy
from service_tests.services.conftest import LIMITS

ROWS = np.random.default_rng(3).standard_normal((7, 3)).astype(np.float32)
LENGTH = "Inference-Header-Content-Length"
FORMS = {"cos_sin": "FP32", "phase": "FP32", "float64": "FP64", "normalized": "FP32"}


def tensor(rows: Any = ROWS, datatype: str = "FP32", **members: Any) -> dict[str, Any]:
    rows = np.asarray(rows)
    return {"name": "vectors", "shape": [*rows.shape], "datatype": datatype, "data": rows.tolist(), **members}


def infer(
    http: httpx.Client, name: str, request: Any, binary: bytes | None = None, headers: dict[str, str] | None = None
) -> httpx.Response:
    head = request if isinstance(request, bytes) else json.dumps(request).encode()
    if binary is not None:
        headers = {LENGTH: str(len(head))}
    return http.post(f"/v2/models/{name}/infer", content=head + (binary or b""), headers=headers)


def outputs(answer: httpx.Response) -> dict[str, Any]:
    """The outputs of an answer, whichever way they come."""
    assert answer.status_code == 200, answer.text
    length = int(answer.headers.get(LENGTH, len(answer.content)))
    document, rest = json.loads(answer.content[:length]), answer.content[length:]
    assert answer.headers["content-type"] == (JSON if length == len(answer.content) else "application/octet-stream")
    found = {}
    for one in document["outputs"]:
        dtype = {"FP32": "<f4", "FP64": "<f8", "INT64": "<i8", "UINT8": "u1"}[one["datatype"]]
        if "data" in one:
            numbers = np.array(one["data"], dtype)
        else:
            size = one["parameters"]["binary_data_size"]
            numbers, rest = np.frombuffer(rest[:size], dtype), rest[size:]
        found[one["name"]] = numbers.reshape(one["shape"])
    assert not rest
    return found


def refused(answer: httpx.Response, status: int, said: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == JSON
    document: dict[str, Any] = answer.json()
    assert document["error"] == document["detail"]
    assert said in document["error"]
    return document


@each(
    ("form", "given"),
    [
        ("phase", [["features", "FP32"]]),
        ("complex64", [["real", "FP64"], ["imag", "FP64"]]),
        ("gmm", [["codes", "INT64"]]),
    ],
)
def test_a_model_tells_the_tensors_that_it_takes_and_gives(
    http: httpx.Client, standing: dict[str, str], form: str, given: list[list[str]]
) -> None:
    name = standing[form]
    told = http.get(f"/v2/models/{name}").json()
    columns = http.get(f"/v1/maps/{name}").json()["n_output"]
    assert told["name"] == name
    dtype = "FP64" if form == "complex64" else "FP32"
    assert told["inputs"] == [{"name": "vectors", "datatype": dtype, "shape": [-1, 3]}]
    outputs = [{"name": name, "datatype": kind, "shape": [-1, columns]} for name, kind in given]
    if form != "gmm":  # signed, of 16 frequencies
        outputs.append({"name": "codes", "datatype": "UINT8", "shape": [-1, 2]})
    assert told["outputs"] == outputs
    assert http.get(f"/v2/models/{name}/ready").json() == {"name": name, "ready": True}


@each("form", FORMS)
def test_features_are_those_of_transform(http: httpx.Client, standing: dict[str, str], form: str) -> None:
    name = standing[form]
    expected = array(post_npy(http, f"{name}/transform", ROWS))
    for binary in (True, False):
        wants = {"parameters": {"binary_data_output": binary}}
        flat = tensor(ROWS, data=ROWS.ravel().tolist())
        asked = [infer(http, name, {"inputs": [one], **wants}) for one in (tensor(), flat, tensor(ROWS, "FP64"))]
        for dtype, kind in (("<f4", "FP32"), ("<f8", "FP64")):
            sent = ROWS.astype(dtype).tobytes()
            one = {"name": "vectors", "shape": [7, 3], "datatype": kind, "parameters": {"binary_data_size": len(sent)}}
            asked.append(infer(http, name, {"inputs": [one], **wants}, sent))
        for answer in asked:
            found = outputs(answer)
            assert [*found] == ["features"]
            assert found["features"].dtype == expected.dtype
            np.testing.assert_array_equal(found["features"], expected)
            assert (LENGTH in answer.headers) == binary


def test_codes_and_complex_features_are_those_of_their_calls(http: httpx.Client, standing: dict[str, str]) -> None:
    name = standing["complex"]
    codes, features = (array(post_npy(http, f"{name}/{call}", ROWS)) for call in ("codes", "transform"))
    wanted = [{"name": "imag", "parameters": {"binary_data": True}}, {"name": "codes"}, {"name": "real"}]
    found = outputs(infer(http, name, {"inputs": [tensor()], "outputs": wanted}))
    assert [*found] == ["imag", "codes", "real"]
    np.testing.assert_array_equal(found["real"] + 1j * found["imag"], features)
    assert found["codes"].dtype == np.uint8
    np.testing.assert_array_equal(found["codes"], codes)
    found = outputs(infer(http, standing["gmm"], {"inputs": [tensor()]}))
    np.testing.assert_array_equal(found["codes"], array(post_npy(http, f"{standing['gmm']}/codes", ROWS)))


SIZE = {"binary_data_size": 84}
BINARY = {"name": "vectors", "shape": [7, 3], "datatype": "FP32", "parameters": SIZE}


@each(
    ("request_", "binary", "said"),
    [
        (b"", None, "is not JSON"),
        ({"inputs": []}, None, "inputs has 0 items; 1 is wanted"),
        ({"inputs": [tensor(datatype="BYTES")]}, None, "got 'BYTES'"),
        ({"inputs": [tensor(shape=[7, -3])]}, None, "got shape [7, -3]"),
        ({"inputs": [tensor(data=[1.0] * 20)]}, None, "data has 20 numbers; shape is [7, 3]"),
        ({"inputs": [tensor(ROWS[:, :2])]}, None, "rows have 2 entries; this map takes 3"),
        ({"inputs": [tensor(data=[1e300] * 21)]}, None, "row 0, column 0 is not finite"),
        ({"inputs": [tensor(datatype="INT64", data=[2**53 + 1] * 21)]}, None, "not read exactly from JSON"),
        ({"inputs": [tensor()], "outputs": [{"name": "logits"}]}, None, "there is no output 'logits'; there is features and codes"),
        ({"inputs": [tensor()], "parameters": {"priority": 1}}, None, "'priority' is not served"),
        ({"inputs": [BINARY]}, bytes(80), "expected 80 for binary_data_size, the bytes after the JSON, got 84"),
        ({"inputs": [{**BINARY, "datatype": "FP64"}]}, bytes(84), "expected 168 bytes for shape [7, 3], got 84"),
        ({"inputs": [tensor()]}, bytes(84), "84 bytes after the JSON belong to no input"),
    ],
)  # fmt: skip
def test_what_is_not_served_is_refused_in_words_that_clients_show(
    http: httpx.Client, standing: dict[str, str], request_: Any, binary: bytes | None, said: str
) -> None:
    document = refused(infer(http, standing["phase"], request_, binary), 422, said)
    assert document["type"] == "/problems/invalid-input"


def test_maps_are_listed_as_models(http: httpx.Client, standing: dict[str, str]) -> None:
    for body in (b"", b'{"ready": true}'):
        listed = http.post("/v2/repository/index", content=body).json()
        assert {"name": standing["phase"], "state": "READY", "reason": ""} in listed
        assert [one["name"] for one in listed] == sorted(one["name"] for one in listed)
    refused(http.post("/v2/repository/index", content=b'{"all": true}'), 422, "/all")


def test_optional_members_may_be_null(http: httpx.Client, standing: dict[str, str]) -> None:
    expected = array(post_npy(http, f"{standing['phase']}/transform", ROWS))
    of_all = dict.fromkeys(("id", "outputs", "model_name", "model_version", "parameters"))
    wanted = [{"name": "features", "parameters": {"binary_data": None}}]
    for request, binary in (
        ({"inputs": [tensor(parameters=None)], **of_all}, None),
        ({"inputs": [tensor(parameters={"binary_data_size": None})], "outputs": wanted, "model_version": "1"}, None),
        ({"inputs": [{**BINARY, "data": None}], "parameters": {"binary_data_output": None}}, ROWS.tobytes()),
    ):
        np.testing.assert_array_equal(outputs(infer(http, standing["phase"], request, binary))["features"], expected)
    assert http.post("/v2/repository/index", content=b'{"ready": null}').status_code == 200


def test_a_model_has_the_one_version_that_it_tells(http: httpx.Client, standing: dict[str, str]) -> None:
    name = standing["phase"]
    told = http.get(f"/v2/models/{name}").json()
    at = f"{name}/versions/{told['versions'][0]}"
    assert http.get(f"/v2/models/{at}").json() == told
    assert http.get(f"/v2/models/{at}/ready").json()["ready"] is True
    assert "features" in outputs(infer(http, at, {"inputs": [tensor()]}))
    for answer in (http.get(f"/v2/models/{name}/versions/2"), infer(http, f"{name}/versions/2", {})):
        refused(answer, 404, "expected version '1' of a model, got '2'")
    refused(infer(http, name, {"inputs": [tensor()], "model_version": "2"}), 422, "expected model_version '1', got '2'")


def test_the_document_names_the_datatypes_that_are_read() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert schemas["InputTensor"]["properties"]["datatype"]["enum"] == [*DTYPES]
    assert schemas["InferenceRequestModelVersion"]["enum"] == ["", VERSION]


@each("outputs", [["features"], ["codes"]])
def test_nothing_is_computed_once_the_client_has_left(outputs: list[str]) -> None:
    async def ask() -> None:
        left = asyncio.get_running_loop().create_future()
        left.set_result(None)
        REQUEST.set(RequestContext("", left=left))
        spec = {
            "input_dim": 3,
            "kernel": {"kind": "laplacian", "length_scale": 1.0},
            "sampler": {"kind": "monte_carlo"},
        }
        feature_map = make_map(MapSpec.model_validate(spec | {"s": 64}))
        limits = LIMITS._replace(max_operations=1 << 30, max_result_bytes=1 << 20)
        with pytest.raises(ClientDisconnect):
            _compute_outputs(feature_map, np.tile(ROWS, (40, 1)), outputs, limits, 1)

    asyncio.run(ask())
