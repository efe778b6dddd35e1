"""What the OpenAPI document says of bodies and answers that the framework does not see."""

from collections.abc import Collection
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from app.api.answer_headers import add_request_ids, headers
from app.api.array_answers import WARNING
from app.api.named_examples import add_named_examples
from app.api.problems import MEDIA_TYPE, Problem
from app.api.roles import add_roles
from app.api.schema_names import name_schemas
from app.core.arrays import MAX_DIM
from app.core.model import NAME_PATTERN
from app.core.spec import MapSpec
from app.formats import DATASET_FORMATS, FORMATS, RowsFormat
from app.formats.json import Json
from app.formats.json_base64 import DTYPES
from app.formats.npz import Npz
from app.services.keys import AskedKey
from app.services.left_open import InputOfRows, ScaleOfRows

_REFERENCES = "#/components/schemas/{model}"
_DEFINITIONS: dict[str, Any] = {}
"""The schemas of `schema_of` and those that they refer to, by name."""
_JSON = Json.media_type
_OTHER_FORMATS = [form for form in FORMATS.values() if form.media_type != _JSON]
_STRING = {"type": "string"}
_BINARY = {"type": "string", "format": "binary"}


# Here because openapi-python-client 0.29 makes modules that cannot be imported of operations that take several media
# types and have no parameter that may be left out.
_REQUEST_ID = {
    "name": "X-Request-ID",
    "in": "header",
    "required": False,
    "description": "An id for the log, for problems and for this header of the answer. One is made if none comes.",
    "schema": _STRING,
}


def schema_of(described: Any) -> dict[str, Any]:
    """The schema of a type. What it refers to is added to the document; one name must not have two schemas."""
    schema = TypeAdapter(described).json_schema(ref_template=_REFERENCES)
    for name, one in schema.pop("$defs", {}).items():
        if _DEFINITIONS.setdefault(name, one) != one:
            raise ValueError(f"two different types are called {name}; rename one")
    return schema


def list_of(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The schema of a list."""
    return {"type": "array", "items": items, **more}


def object_of(title: str, required: list[str], **properties: Any) -> dict[str, Any]:
    """The schema of an object that has no other members than these."""
    shape = {"type": "object", "required": required, "additionalProperties": False, "properties": properties}
    return {"title": title, **shape}


def _body(content: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": content}}


def _rows_body(
    schema: dict[str, Any], said: str = "", formats: Collection[RowsFormat] = _OTHER_FORMATS
) -> dict[str, Any]:
    """A body of rows, in JSON of this schema or in another format; `said` is added to the description of the latter."""
    content = {_JSON: {"schema": schema}}
    parameters = [_REQUEST_ID]
    for form in formats:
        described = form.rows_described + ("" if form.has_members else said)
        content[form.media_type] = {"schema": {**_BINARY, "description": described}}
        for name, text in form.request_headers.items():
            parameters.append({"name": name, "in": "header", "required": False, "description": text, "schema": _STRING})
    return _body(content) | {"parameters": parameters}


def answer_of(description: str, schema: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """The answer 200 of a call that gives arrays made of rows, in all formats; the schema is that of JSON."""
    content = {_JSON: {"schema": schema}}
    for form in _OTHER_FORMATS:
        content[form.media_type] = {"schema": {**_BINARY, "description": form.answers_described}}
    return {200: {"description": description, "content": content, **headers("Vary", WARNING)}}


NUMBERS = list_of({"type": "number"})
NUMBERS_OR_NULL = list_of({"type": ["number", "null"]})
_WHOLE = list_of({"type": "integer"})
# One list of rows of two kinds, where there are two kinds of lists: many generators do not tell lists apart.
_SPARSE_ROW = {
    **object_of("SparseVector", ["indices", "values"], indices=_WHOLE, values=NUMBERS_OR_NULL),
    "description": "Indices increase; what is left out is 0, not missing.",
}
ROWS = {
    "oneOf": [
        list_of(
            {"anyOf": [NUMBERS_OR_NULL, _SPARSE_ROW]},
            description="Rows, all of them dense, each of input_dim numbers, null where one is missing; or all sparse.",
        ),
        object_of(
            "EncodedRows",
            ["base64", "shape", "dtype"],
            base64={"type": "string", "description": "The numbers, little-endian, row after row; NaN is missing."},
            shape=list_of({"type": "integer", "minimum": 0}, minItems=2, maxItems=2),
            dtype={"type": "string", "enum": list(DTYPES)},
        ),
    ]
}
_REFERENCE = {
    **object_of(
        "RowsOfDataset",
        ["dataset"],
        dataset={"type": "string", "pattern": NAME_PATTERN, "description": "Name of the dataset."},
        rows={"type": "integer", "minimum": 1, "description": "Size of the sample; without it, all rows."},
        seed={"type": "integer", "minimum": 0, "maximum": (1 << 64) - 1, "default": 0},
    ),
    "description": "Rows of a dataset that is kept here: all of them, or a uniform sample without replacement, in the "
    "order they have there. A seed always gives the same sample: the rows with the smallest of n words of NumPy's "
    "PCG64, n the rows of the dataset.",
}
GIVEN = {"oneOf": [*ROWS["oneOf"], _REFERENCE]}
_ONE_HOT = {
    **object_of("OneHotCodes", ["indptr", "indices", "shape"], indptr=_WHOLE, indices=_WHOLE, shape=_WHOLE),
    "description": "Encoding one_hot: rows of the (n, s·2^bits) expansion in CSR form. Row i has its ones in the "
    "columns indices[indptr[i]] … indices[indptr[i + 1] − 1]: one for each hash, or none where the row is marked.",
}
_PAIR = {**_WHOLE, "minItems": 2, "maxItems": 2}
_CODES = {
    "anyOf": [
        list_of(
            list_of({"anyOf": [{"type": "integer"}, _PAIR]}),
            description="A list of whole numbers a row: all encodings but pairs, whose codes are pairs [i*, t*], and "
            "one_hot. Fingerprints of 64 bits go up to 2^64 − 1, past what a double holds.",
        ),
        _ONE_HOT,
    ]
}
_VECTORS_OR_CODES = {
    "anyOf": [
        list_of(
            {"anyOf": [list_of({"anyOf": [{"type": ["number", "null"]}, _PAIR]}), _SPARSE_ROW]},
            description="Vectors, or codes as /codes answers them; one_hot also as rows of s column indices.",
        ),
        *ROWS["oneOf"][1:],
        _REFERENCE,
        _ONE_HOT,
    ]
}


_PREFER: dict[str, Any] = {
    "parameters": [
        {
            "name": "Prefer",
            "in": "header",
            "required": False,
            "description": "`wait=N`: wait up to N seconds for the answer, but not longer than the limit "
            "`max_wait_seconds`. `respond-async`: have a job do it, at once or after `wait` (RFC 7240). Without "
            "either, a job goes on with what takes longer than the limit `max_request_seconds`.",
            "schema": _STRING,
            "example": "wait=10",
        }
    ]
}


def preferring_body(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON body of this schema, with the header `Prefer`."""
    return _body({_JSON: {"schema": schema}}) | _PREFER


MAP_BODY = preferring_body({"$ref": _REFERENCES.format(model="AskedSpec")})
KEY_BODY = _body({_JSON: {"schema": schema_of(AskedKey)}})
VECTORS_BODY = _rows_body(
    {"title": "VectorsBody", "oneOf": [object_of("PostedVectors", ["vectors"], vectors=GIVEN), _REFERENCE]}
)
DATASET_BODY = _rows_body(
    object_of(
        "DatasetRows",
        ["vectors"],
        vectors=ROWS,
        input_dim={
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_DIM,
            "description": "Length of a row; must be there for sparse rows.",
        },
    ),
    " Their dtype is kept.",
    [form for media_type, form in DATASET_FORMATS.items() if media_type != _JSON],
)
GRAM_BODY = _rows_body(object_of("GramRows", ["x"], x=GIVEN, y=GIVEN), " They are x; y is x.")
_PAIRS = {"schema": object_of("Pairs", ["x", "y"], x=_VECTORS_OR_CODES, y=_VECTORS_OR_CODES)}
PAIRS_BODY = _body({_JSON: _PAIRS, Npz.media_type: {"schema": {**_BINARY, "description": Npz.rows_described}}})
_WARNINGS = {**list_of(_STRING), "description": "There where something is doubtful, as in the header Bochner-Warning."}


def with_warnings(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an answer that may have warnings beside its own members."""
    return {**schema, "properties": {**schema["properties"], "warnings": _WARNINGS}}


_MATRIX = list_of(NUMBERS)
_COMPLEX = object_of("ComplexMatrix", ["real", "imag"], real=_MATRIX, imag=_MATRIX)
_REAL_OR_COMPLEX = {
    "anyOf": [_MATRIX, _COMPLEX],
    "description": "A row for each vector; of the form complex in two parts.",
}
ARRAY_ANSWER = answer_of(
    "The array, or an object of arrays; several arrays are stacked in .npy.",
    with_warnings({"title": "Arrays", "type": "object", "properties": {}}),
)
FEATURES_ANSWER = answer_of(
    "The features, one row for each vector.",
    with_warnings(
        {
            "title": "Features",
            "type": "object",
            "required": ["features"],
            "properties": {
                "features": _REAL_OR_COMPLEX,
                "signature": {
                    **NUMBERS,
                    "description": "Where a rule has weights of both signs: 1 or −1 for each frequency.",
                },
            },
        }
    ),
)
GRAM_ANSWER = answer_of(
    "The block, and the exact one beside it where it was asked for; stacked in .npy.",
    with_warnings(
        {
            "title": "GramBlock",
            "type": "object",
            "required": ["approximate"],
            "properties": {"approximate": _REAL_OR_COMPLEX, "exact": _MATRIX},
        }
    ),
)
CODES_ANSWER = answer_of(
    "The codes, one row for each vector; in .npy the rows of one_hot have shape (n, s).",
    with_warnings({"title": "CodesAnswer", "type": "object", "required": ["codes"], "properties": {"codes": _CODES}}),
)


def asked_members() -> dict[str, Any]:
    """Members of a spec as it is put, in which numbers may be left open."""
    members = schema_of(MapSpec)["properties"]
    for model in (ScaleOfRows, InputOfRows):
        _DEFINITIONS[model.__name__] = schema_of(model)
    scale, fit = ({"$ref": _REFERENCES.format(model=model.__name__)} for model in (ScaleOfRows, InputOfRows))
    seed = {"default": 0, "description": f"{members['seed']['description']} Null: one is drawn."}
    return {
        "kernel": {"anyOf": [members["kernel"], scale]},
        "seed": seed | {"anyOf": [members["seed"], {"type": "null"}]},
        "input": members["input"] | {"anyOf": [*members["input"]["anyOf"], fit]},
    }


def _asked_spec() -> dict[str, Any]:
    spec = schema_of(MapSpec)
    said = "A spec as it is put: length scale and input may be left to a dataset, the seed to chance."
    return spec | {"title": "AskedSpec", "description": said, "properties": spec["properties"] | asked_members()}


PROBLEM_ANSWER: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem document.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": _REFERENCES.format(model="Problem")}}},
        **headers("Retry-After", "WWW-Authenticate", "Allow"),
    }
}
"""What every call may be answered."""


def document(app: FastAPI, keys_required: bool) -> dict[str, Any]:
    """The OpenAPI document, with what the framework cannot know: what routes read themselves, roles, examples."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        own = {"MapSpec": schema_of(MapSpec), "AskedSpec": _asked_spec(), "Problem": schema_of(Problem)}
        schema["components"]["schemas"].update(own | _DEFINITIONS)
        add_request_ids(schema)
        add_roles(schema, keys_required)
        name_schemas(schema)
        add_named_examples(schema["paths"])
        app.openapi_schema = schema
    return app.openapi_schema
