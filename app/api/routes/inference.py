"""Routes of the Open Inference Protocol, version 2: maps are models, which clients list, inspect and run."""

from collections.abc import Callable, Collection
from functools import partial
from importlib.metadata import version
from math import prod
from typing import Any, NamedTuple

import numpy as np
from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from app.api import bodies
from app.api.admission import end_if_left
from app.api.context import Admitted, Context, ContextOf, MapName
from app.api.negotiation import JSON, encoded_response, posted_type, warning_headers
from app.api.problems import Refusal
from app.api.routes.service import check_ready
from app.api.schemas import ERRORS, INFER_ANSWER, INFER_BODY, MODELS_BODY
from app.core.arrays import Array, RowBlocks, Rows, rows_of
from app.core.errors import InvalidInput
from app.core.hashing.encodings import Encoder, Encoding
from app.core.hashing.signed_codes import SIGNED
from app.core.maps import FeatureMap, Gives, family_of
from app.core.maps.terms import BaseSpec, Form
from app.core.model import Described, Frozen
from app.formats import Body, open_inference
from app.formats.json import Json
from app.formats.npy import Npy
from app.services import vectors
from app.services.limits import Limits
from app.store.named import State

router = APIRouter(prefix="/v2", tags=["inference"], responses=ERRORS)

BINARY = "application/octet-stream"
_HEADER = "Inference-Header-Content-Length"
_STATES = {State.ready: "READY", State.building: "LOADING", State.failed: "UNAVAILABLE"}
REAL, IMAG = "real", "imag"
CODES = "codes"
_HASHES = Encoder(Encoding.zero_bit)


class Server(Described):
    """Name, version and extensions of the server."""

    name: str
    """Always bochner."""
    version: str
    """Version of the service."""
    extensions: list[str]
    """Extensions of the protocol that are served."""


class ServerLive(Described):
    """Whether the server is alive."""

    live: bool
    """Always true: the process answers."""


class ServerReady(Described):
    """Whether the server is ready."""

    ready: bool
    """Whether the service does its work."""


class ModelReady(Described):
    """Whether a model is ready."""

    name: str
    """Name of the map."""
    ready: bool
    """Whether the map can be used."""


class TensorMetadata(Described):
    """Name, type and shape of a tensor of a model."""

    name: str
    """Name of the tensor."""
    datatype: str
    """Data type of its entries."""
    shape: list[int]
    """Shape of the tensor; −1 means any number of rows."""


class ModelMetadata(Described):
    """Description of a map as a model."""

    name: str
    """Name of the map."""
    versions: list[str] = Field([open_inference.VERSION])
    """List of versions, always one, because a map never changes."""
    platform: str
    """Always bochner."""
    inputs: list[TensorMetadata]
    """The tensor that a request has."""
    outputs: list[TensorMetadata]
    """Tensors that an answer may have."""


class AskedIndex(Frozen):
    """Options for the list of models."""

    ready: bool | None = None
    """Whether to list only models that are ready."""


class IndexedModel(Described):
    """A map in the list of models."""

    name: str
    """Name of the map."""
    state: str
    """READY, LOADING while a job builds the map, or UNAVAILABLE if the map could not be built."""
    reason: str
    """Reason why the map could not be built."""


@router.get("", operation_id="inference_server")
async def server() -> Server:
    """Return the name, version and extensions of the server."""
    return Server(name="bochner", version=version("bochner"), extensions=["binary_tensor_data", "model_repository"])


@router.get("/health/live", operation_id="inference_live")
async def live() -> ServerLive:
    """Report that the process is alive."""
    return ServerLive(live=True)


@router.get("/health/ready", operation_id="inference_ready")
async def ready(context: ContextOf) -> ServerReady:
    """Report whether requests would be served, as /health/ready does."""
    await check_ready(context)
    return ServerReady(ready=True)


async def _check_version(request: Request) -> None:
    """Refuse a model version in the address that does not exist."""
    version = request.path_params.get("version", open_inference.VERSION)
    if version != open_inference.VERSION:
        raise Refusal("not-found", f"expected version {open_inference.VERSION!r} of a model, got {version[:80]!r}")


models = APIRouter(dependencies=[Depends(_check_version)])


@models.get("", operation_id="inference_model")
async def model(name: MapName, context: ContextOf) -> ModelMetadata:
    """Describe a map as a model: its input and output tensors."""
    spec, n_frequencies, n_output = await context.admission.ask(lambda: context.maps.shape(name))
    taken = TensorMetadata(
        name=open_inference.INPUT, datatype=open_inference.datatype(spec.numpy_dtype), shape=[-1, spec.input_dim]
    )
    given = [
        TensorMetadata(name=one.name, datatype=open_inference.datatype(one.dtype), shape=[-1, one.columns])
        for one in _outputs(spec, n_frequencies, n_output)
    ]
    return ModelMetadata(name=name, platform="bochner", inputs=[taken], outputs=given)


@models.get("/ready", operation_id="inference_model_ready")
async def model_ready(name: MapName, context: ContextOf) -> ModelReady:
    """Report that a map is ready; if it is not, the problem says why."""
    await context.admission.ask(lambda: context.maps.shape(name))
    return ModelReady(name=name, ready=True)


@router.post("/repository/index", operation_id="inference_index", openapi_extra=MODELS_BODY)
async def index(request: Request, context: ContextOf) -> list[IndexedModel]:
    """List all maps as models, in order of their names; `{"ready": true}` restricts the list to ready maps."""
    _check_type(request, JSON)
    body = await bodies.read_options(request, context)
    asked = await context.admission.ask(lambda: bodies.parse(AskedIndex, body or b"{}"))
    found: list[IndexedModel] = []
    after, more = None, True
    while more:  # calls of others come between
        page, after = await context.admission.ask(partial(context.maps.states, after))
        more = after is not None
        found += [
            IndexedModel(name=name, state=_STATES[state], reason=why)
            for name, state, why in page
            if state is State.ready or not asked.ready
        ]
    return found


@models.post(
    "/infer",
    operation_id="infer",
    response_class=Response,
    openapi_extra=INFER_BODY,
    responses=INFER_ANSWER,
)
async def infer(name: MapName, request: Request, context: Admitted) -> Response:
    """Compute features or codes of the rows in the tensor `vectors`.

    A map of form complex has two outputs, `real` and `imag`; a map of hashes has `codes`, zero-bit; every other map has
    `features`. Fourier maps also have the output `codes`, signed and packed, which is sent only if the request names
    it. The header Inference-Header-Content-Length gives the number of bytes of JSON, after which binary tensors begin.
    """
    header_bytes = _header_bytes(request)
    body = Body(await bodies.read(request, context), {}, context.limits.check_options)
    return await context.admission.compute(lambda: _infer(name, body, header_bytes, context))


router.include_router(models, prefix="/models/{name}")
# Not in the document: the same calls for clients that put the version into the address.
router.include_router(models, prefix="/models/{name}/versions/{version}", include_in_schema=False)


def _check_type(request: Request, *allowed: str) -> None:
    """Refuse a body of another type. Clients of the protocol may leave the type out; pages of other sites may not.

    A browser makes such pages ask before they send a body of one of these types, but lets them send a body without a
    type.
    """
    posted_type(request, allowed, absent="" if "origin" in request.headers else allowed[0])


def _header_bytes(request: Request) -> int | None:
    """Return how many bytes of the body are JSON, None if all are; raise Refusal for a body of another type."""
    _check_type(request, BINARY, JSON)
    came = request.headers.get(_HEADER)
    if came is not None and not (came.isdecimal() and came.isascii() and len(came) < 16):
        raise InvalidInput(f"expected a number of bytes, got {_HEADER} {came[:80]!r}")
    return None if came is None else int(came)


def _infer(name: str, body: Body, header_bytes: int | None, context: Context) -> Response:
    asked = open_inference.read(body, header_bytes)
    feature_map = context.maps.ready(name)
    outputs = _outputs(feature_map.spec, feature_map.n_frequencies, feature_map.n_output)
    wanted = asked.select_outputs({one.name: not one.by_name_only for one in outputs})
    given = context.datasets.read_rows({open_inference.DATA: asked.rows}, feature_map.spec.gate)
    rows = given.rows[open_inference.DATA]
    form = Npy() if all(output.is_binary for output in wanted) else Json()
    names = [output.name for output in wanted]
    made = _compute_outputs(feature_map, rows, names, context.limits, form.operations_per_number)
    sent = [(output, made[output.name]) for output in wanted]
    listed = [tensor for output, tensor in sent if not output.is_binary]
    if len(listed) < len(sent):  # built in memory, as its length is sent before binary tensors
        context.limits.check_result(sum(prod(tensor.shape) for tensor in listed) * open_inference.MOST_OF_NUMBER)
    encoded, json_bytes = open_inference.encode(asked.request_id, name, sent)
    headers = warning_headers(feature_map.warnings(rows))
    if json_bytes is not None:
        headers[_HEADER] = str(json_bytes)
    return encoded_response(
        encoded,
        {output.name: tensor for output, tensor in sent},
        JSON if json_bytes is None else BINARY,
        headers,
        context.admission,
    )


class _Output(NamedTuple):
    """An output tensor of a map."""

    name: str
    dtype: np.dtype[Any]
    columns: int
    by_name_only: bool = False
    """Whether the tensor is sent only if the request names it."""


def _outputs(spec: BaseSpec, n_frequencies: int, n_output: int) -> list[_Output]:
    """Return the output tensors of a map with this spec, number of frequencies and number of output columns."""
    results = family_of(spec.sampler).capabilities(spec)
    if Gives.features not in results:
        return [_Output(CODES, np.dtype(np.int64), n_output)]
    names = [REAL, IMAG] if spec.form is Form.complex else ["features"]
    found = [_Output(name, spec.numpy_dtype, n_output) for name in names]
    if Gives.codes in results:
        (columns,), dtype = SIGNED.row(n_frequencies, spec.input_dim)
        found.append(_Output(CODES, dtype, columns, by_name_only=True))
    return found


def _compute_outputs(
    feature_map: FeatureMap, x: Rows, wanted: Collection[str], limits: Limits, per_number: int
) -> dict[str, Array | RowBlocks]:
    """Return the wanted output tensors of rows, by name.

    Raises what `vectors.transform` raises.
    """
    if Gives.features not in feature_map.gives:
        codes = rows_of(vectors.codes(feature_map, x, _HASHES, limits, per_number, end_if_left))
        return {CODES: _convert(codes, lambda some: some.astype(np.int64), np.dtype(np.int64))}
    found: dict[str, Array | RowBlocks] = {}
    if CODES in wanted:
        found[CODES] = rows_of(vectors.codes(feature_map, x, SIGNED, limits, per_number, end_if_left))
    if {*wanted} - {CODES}:
        made = vectors.transform(feature_map, x, limits, per_number, end_if_left)
        features, part = rows_of(made), feature_map.spec.numpy_dtype
        if features.dtype.kind != "c":
            return found | {"features": features}
        found[REAL] = _convert(features, lambda some: some.real, part)
        found[IMAG] = _convert(features, lambda some: some.imag, part)
    return found


def _convert(rows: Array | RowBlocks, change: Callable[[Array], Array], dtype: np.dtype[Any]) -> Array | RowBlocks:
    if isinstance(rows, RowBlocks):
        return rows.convert(lambda _, some: change(some), dtype=dtype)
    return change(rows)
