"""Routes that take vectors: features, Gram blocks, codes, similarities."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from fastapi import APIRouter, Query, Request, Response

from app.api import bodies
from app.api.admission import AT_ONCE, BRIEF, end_if_left
from app.api.context import Admitted, Context, MapName
from app.api.negotiation import JSON, Wanted, array_response, posted_format, wanted_format
from app.api.schemas import (
    CODES_ANSWER,
    FEATURES_ANSWER,
    GRAM_ANSWER,
    GRAM_BODY,
    PAIRS_BODY,
    SIMILARITY_ANSWER,
    TEXTS,
    VECTORS_BODY,
)
from app.core.arrays import Answer, Floats, Rows
from app.core.datasets import Reference
from app.core.hashing.encodings import BITS_OF, ENCODINGS, BitsOf, CodeOptions, Encoding
from app.core.maps import FeatureMap, Gives
from app.formats import FORMATS, Body, Format
from app.formats.npz import Npz
from app.formats.pairs import InputKind, ReadPairs, json_pairs, npz_pairs
from app.request_context import note_rows
from app.services import vectors
from app.services.datasets import GatedRows, at_their_datasets
from app.services.vectors import OnZero, warnings_of
from app.services.warm_up import cold


def _list_descriptions(described: Mapping[Any, str]) -> str:
    return " ".join(f"{key.value}: {text}" for key, text in described.items())


# Bytes of a body that are read without a change of thread: some 0.1 ms of JSON.
_READ_AT_ONCE = 1 << 14
# Bytes of a body that are read as brief work: some 30 ms of JSON.
_READ_BRIEFLY = 1 << 22
# Time to encode a number of an answer, in multiplications.
_STEPS_PER_NUMBER = 8
# Numbers of an answer that are encoded without a change of thread: some 0.3 ms of JSON.
_FEW_NUMBERS = 1 << 13
# Bytes of a number of the largest dtype, complex128.
_BYTES_PER_NUMBER = 16

Told = tuple[Answer, tuple[str, ...]]
"""An answer, and warnings about it."""
Work = Callable[[FeatureMap, Rows, Wanted], Answer]
Brief = Callable[[FeatureMap, Floats, Wanted, int], Awaitable[Answer]]

router = APIRouter(prefix="/v1/maps/{name}", tags=["vectors"], default_response_class=Response)


@router.post("/transform", operation_id="transform", openapi_extra=VECTORS_BODY, responses=FEATURES_ANSWER)
async def transform(name: MapName, request: Request, context: Admitted) -> Response:
    """Compute the features of the posted vectors, in their order."""

    def work(feature_map: FeatureMap, rows: Rows, wanted: Wanted) -> Answer:
        form, _ = wanted.choose(feature_map.gram_dtype)
        return vectors.transform(feature_map, rows, context.limits, form.operations_per_number, end_if_left)

    async def brief(feature_map: FeatureMap, rows: Floats, wanted: Wanted, steps: int) -> Answer:
        wanted.choose(feature_map.gram_dtype)
        context.limits.check_operations(feature_map.operations(rows), rows.shape[0])
        return vectors.answer(feature_map, await context.together.features(feature_map, rows, steps))

    return await _answer_rows(name, request, context, Gives.features, work, brief)


@router.post("/kernel", operation_id="kernel", openapi_extra=GRAM_BODY, responses=GRAM_ANSWER)
async def kernel(
    name: MapName,
    request: Request,
    context: Admitted,
    exact: Annotated[bool, Query(description="Give the exact block beside the approximate one.")] = False,
) -> Response:
    """Compute the Gram block of x against y, or of x against itself, as the map approximates it."""

    def work(form: Format, body: Body, wanted: Wanted) -> Told:
        feature_map = context.maps.ready(name)
        wanted.choose(feature_map.gram_dtype)
        given = _find_rows(context, form, body, feature_map, "x", "y")
        rows = given.rows
        with at_their_datasets(given.references):
            x, y = rows["x"], rows.get("y", rows["x"])
            blocks = vectors.kernel(feature_map, x, y, exact, context.limits, end_if_left)
        return vectors.add_ids(blocks, given.ids.get("x")), warnings_of(feature_map, rows)

    return await _answer(request, context, work)


_PAIRS: dict[str, ReadPairs] = {JSON: json_pairs, Npz.media_type: npz_pairs}
_BITS_OF = "What b_bit, packed and one_hot take their bits from, of kernel gmm. " + _list_descriptions(BITS_OF)
_ENCODING = "By default zero_bit of kernel gmm, packed of Fourier maps. " + _list_descriptions(ENCODINGS)
_Bits = Annotated[int | None, Query(description=TEXTS["bits"])]
_BitsOf = Annotated[BitsOf | None, Query(description=_BITS_OF)]
_RowsPerBand = Annotated[int | None, Query(description=TEXTS["rows_per_band"])]
_InputKind = Annotated[InputKind | None, Query(description=TEXTS["of"])]
_Gamma = Annotated[float | None, Query(gt=0, allow_inf_nan=False, description=TEXTS["gamma"])]


@router.post("/codes", operation_id="codes", openapi_extra=VECTORS_BODY, responses=CODES_ANSWER)
async def codes(
    name: MapName,
    request: Request,
    context: Admitted,
    encoding: Annotated[Encoding | None, Query(description=_ENCODING)] = None,
    bits: _Bits = None,
    bits_of: _BitsOf = None,
    rows_per_band: _RowsPerBand = None,
    on_zero: Annotated[
        OnZero, Query(description="What to do with rows that are all zero, of which kernel gmm has no sample.")
    ] = OnZero.refuse,
) -> Response:
    """Compute hash codes of the posted vectors: consistent samples for kernel gmm, signed codes for Fourier maps.

    A signed code is one bit per frequency, the sign of cos(w·x + b) + t, with random b and t (Raginsky and Lazebnik,
    2009). Maps whose frequencies have individual weights have no signed codes.
    """
    options = CodeOptions(encoding, bits, bits_of, rows_per_band, on_zero is OnZero.mark)

    def work(feature_map: FeatureMap, rows: Rows, wanted: Wanted) -> Answer:
        written = feature_map.encoder_of(options)
        form, _ = wanted.choose(written.row(feature_map.n_frequencies, feature_map.spec.input_dim)[1])
        return vectors.codes(feature_map, rows, written, context.limits, form.operations_per_number, end_if_left)

    return await _answer_rows(name, request, context, Gives.codes, work)


@router.post("/similarity", operation_id="similarity", openapi_extra=PAIRS_BODY, responses=SIMILARITY_ANSWER)
async def similarity(
    name: MapName,
    request: Request,
    context: Admitted,
    encoding: Annotated[Encoding | None, Query(description=TEXTS["compared"])] = None,
    bits: _Bits = None,
    bits_of: _BitsOf = None,
    rows_per_band: _RowsPerBand = None,
    of: _InputKind = None,
    gamma: _Gamma = None,
) -> Response:
    """Estimate the kernel of row i of x and row i of y, with standard error and a 95 % interval.

    Send x and y as JSON or in a .npz: a .npy holds only one array, so it is available for answers only. x and y
    are vectors or codes. If they are vectors, the answer also has the exact kernel, `exact`.

    For kernel gmm, codes of b bits are corrected for chance collisions. For vectors the answer has `zero_bit`, the
    estimate by i* alone, which is above the kernel if few coordinates carry the weight.

    For Fourier maps, the answer has `agreement`, the share of signed codes that agree. The kernel is estimated from it
    by a collision model, for kernels gaussian, laplacian, matern and correlation_rbf if the
    frequencies follow the kernel's distribution. For other maps the answer has `agreement` without an estimate.
    """
    options = CodeOptions(encoding, bits, bits_of, rows_per_band)

    def work(form: Format, body: Body, _: Wanted) -> Told:
        feature_map = context.maps.ready(name, Gives.codes)
        by = vectors.comparison(feature_map, options, gamma)
        by, came = _PAIRS[form.media_type](body, feature_map, by, of)
        doubts = feature_map.similarity_warnings(by)
        if isinstance(came, tuple):
            return vectors.similarity_of_codes(feature_map, *came, by, gamma, context.limits, end_if_left), doubts
        given = context.datasets.read_rows(came, feature_map.spec.gate)
        rows = given.rows
        with at_their_datasets(given.references):
            x, y = rows["x"], rows["y"]
            found = vectors.similarity_of_vectors(feature_map, x, y, by, gamma, context.limits, end_if_left)
        return found, (*doubts, *warnings_of(feature_map, rows))

    return await _answer(request, context, work, allowed=tuple(_PAIRS))


async def _answer_rows(
    name: str, request: Request, context: Context, gives: Gives, work: Work, brief: Brief | None = None
) -> Response:
    """Answer each of the posted vectors.

    Bodies that are read in little time go to `_answer_few`. Everything else runs on threads; brief work has threads of
    its own, so that it does not wait for longer work.
    """
    form = posted_format(request)
    wanted = wanted_format(request, form)
    asked = asyncio.ensure_future(context.find_map(name))  # looked up while the body arrives
    try:
        body = await bodies.read_body(form, request, context)
        kept = context.maps.find_in_memory(name, await asked, gives)
    finally:
        asked.cancel()

    def respond(feature_map: FeatureMap, given: GatedRows) -> Response:
        with at_their_datasets(given.references):
            answer = work(feature_map, given.rows["vectors"], wanted)
        return _response(feature_map, given, answer, wanted, context)

    def all_of_it() -> Response:
        feature_map = kept or context.maps.ready(name, gives)
        return respond(feature_map, _find_rows(context, form, body, feature_map, "vectors"))

    def all_if_brief(kept: FeatureMap) -> Response | None:
        found = _find_brief(context, form, body, kept)
        return None if found is None else respond(kept, found.given)

    if kept is None or cold or form.expands or len(body.content) > _READ_BRIEFLY:
        return await context.admission.compute(all_of_it)
    if len(body.content) > _READ_AT_ONCE:
        answer = await context.admission.compute(partial(all_if_brief, kept), brief=True)
        return await context.admission.compute(all_of_it) if answer is None else answer
    found = _find_brief(context, form, body, kept)
    if found is None:
        return await context.admission.compute(all_of_it)
    return await _answer_few(kept, found, wanted, context, work, brief)


class _BriefRows(NamedTuple):
    """Rows whose features are brief work."""

    given: GatedRows
    steps: int
    """Multiplications that take as long as the features, written in JSON; at most `BRIEF`."""


def _find_brief(context: Context, form: Format, body: Body, kept: FeatureMap) -> _BriefRows | None:
    """Return the rows of a short body; None if they may take longer than brief work does."""
    posted = form.decode(body, kept.spec.input_dim, "vectors")
    rows = posted["vectors"]
    # A dataset may have any number of rows, and a centre makes sparse rows dense.
    if isinstance(rows, Reference) or (kept.spec.kernel.is_centered and not isinstance(rows, np.ndarray)):
        return None
    given = context.datasets.read_rows(posted, kept.spec.gate)
    n = int(given.rows["vectors"].shape[0])
    steps = kept.operations(given.rows["vectors"]) + _STEPS_PER_NUMBER * n * kept.n_output
    if steps <= BRIEF:
        return _BriefRows(given, steps)
    note_rows(-n)  # they are read, and counted, again
    return None


async def _answer_few(
    kept: FeatureMap, found: _BriefRows, wanted: Wanted, context: Context, work: Work, brief: Brief | None
) -> Response:
    """Answer rows of brief work at once if that takes no longer than a change of thread, else on a thread.

    `brief`, if given, does what `work` does, for few rows; it receives the number of multiplications that they take.
    """
    given, steps = found
    rows = given.rows["vectors"]

    def respond() -> Response:
        return _response(kept, given, work(kept, rows, wanted), wanted, context)

    most = min(_FEW_NUMBERS, context.limits.max_result_bytes // _BYTES_PER_NUMBER)
    if isinstance(rows, np.ndarray) and rows.shape[0] * kept.n_output <= most:
        if brief is not None:
            return _response(kept, given, await brief(kept, rows, wanted, steps), wanted, context)
        if steps <= AT_ONCE:
            return respond()
    return await context.admission.compute(respond, brief=True)


async def _answer(
    request: Request,
    context: Context,
    work: Callable[[Format, Body, Wanted], Told],
    allowed: tuple[str, ...] = tuple(FORMATS),
) -> Response:
    """Read the body, run the work on a thread, and answer in the format that the client prefers."""
    posted_in = posted_format(request, allowed)
    wanted = wanted_format(request, posted_in)
    body = await bodies.read_body(posted_in, request, context)

    def respond() -> Response:
        answer, warnings = work(posted_in, body, wanted)
        return array_response(answer, wanted, context.admission, warnings)

    return await context.admission.compute(respond)


def _response(feature_map: FeatureMap, given: GatedRows, answer: Answer, wanted: Wanted, context: Context) -> Response:
    """Return a response with the answer to vectors, and with their ids if they have any."""
    found = vectors.add_ids(answer, given.ids.get("vectors"))
    return array_response(found, wanted, context.admission, feature_map.warnings(given.rows["vectors"]))


def _find_rows(
    context: Context, form: Format, body: Body, feature_map: FeatureMap, wanted: str, *optional: str
) -> GatedRows:
    """Return the rows of a body, or of datasets that it names instead, by member, checked by the map's gate."""
    posted = form.decode(body, feature_map.spec.input_dim, wanted, optional)
    return context.datasets.read_rows(posted, feature_map.spec.gate)
