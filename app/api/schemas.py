"""Schemas, headers, bodies and answers, described for the OpenAPI document."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import TypeAdapter, WithJsonSchema, with_config
from typing_extensions import TypedDict

from app.api.negotiation import WARNING
from app.api.problems import MEDIA_TYPE
from app.core.arrays import MAX_DIM
from app.core.indexes.options import MOST_TAGS, CountOptions, DeleteOptions, SearchOptions, TagChanges
from app.core.model import NAME_PATTERN, section_of
from app.formats import DATASET_FORMATS, FORMATS, RowsFormat
from app.formats.arrow import Arrow
from app.formats.json import Json
from app.formats.json.rows import DTYPES
from app.formats.npz import Npz
from app.services.aliases import AskedAlias
from app.services.index_copies import AskedCopy
from app.services.indexes import AskedIndex

REFERENCES = "#/components/schemas/{model}"
DEFINITIONS: dict[str, Any] = {}
"""Schemas of the document that the results of `schema_of` and request bodies refer to, by name."""
STRING = {"type": "string"}
BINARY = {"type": "string", "format": "binary"}


def schema_of(described: Any) -> dict[str, Any]:
    """Return a type's schema; add the schemas that it refers to to `DEFINITIONS`. ValueError: two share a name."""
    schema = TypeAdapter(described).json_schema(ref_template=REFERENCES)
    for name, one in schema.pop("$defs", {}).items():
        if DEFINITIONS.setdefault(name, one) != one:
            raise ValueError(f"two different types are called {name}; rename one")
    return schema


def list_of(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **more}


def object_of(title: str, required: list[str], **properties: Any) -> dict[str, Any]:
    """Return the schema of an object with exactly these members."""
    shape = {"type": "object", "required": required, "additionalProperties": False, "properties": properties}
    return {"title": title, **shape}


def taking(told: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """Return the member `parameters` of a request with these optional headers, described by these texts."""
    each = ({"name": name, "in": "header", "required": False, "description": text} for name, text in told.items())
    return {"parameters": [{**one, "schema": STRING, **more} for one in each]}


def body(content: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a required body."""
    return {"requestBody": {"required": True, "content": content}}


NUMBERS = list_of({"type": "number"})
NUMBERS_OR_NULL = list_of({"type": ["number", "null"]})
_WARNINGS = {**list_of(STRING), "description": "There where something is doubtful, as in the header Bochner-Warning."}


def with_warnings(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an answer with an optional member `warnings` added."""
    return {**schema, "properties": {**schema["properties"], "warnings": _WARNINGS}}


TEXTS: dict[str, Any] = json.loads(Path(__file__).with_name("texts.json").read_text(encoding="utf-8"))
"""Descriptions of parameters, bodies and, as the member `headers`, of headers."""
_NOT_EXPOSED = {"Vary", "Cache-Control", "X-Accel-Buffering"}
EXPOSED = (*sorted(set(TEXTS["headers"]) - _NOT_EXPOSED), "Location", "X-Request-ID", "traceparent")
"""Headers that pages of other origins may read, in addition to those that browsers always allow."""
_REQUEST_ID = {
    "description": "The header of this name of the request, or an id that is made for it; it is in the log.",
    "schema": STRING,
}


def headers(*names: str, location: str = "") -> dict[str, Any]:
    """Return the member `headers` of an answer; `location` describes the header `Location`, if the answer has it."""
    texts = ({"Location": location} if location else {}) | {name: TEXTS["headers"][name] for name in names}
    return {"headers": {name: {"description": text, "schema": STRING} for name, text in texts.items()}}


def add_common_headers(document: dict[str, Any]) -> None:
    """Add the header `X-Request-ID` to every answer, and `Cache-Control` to answers of GET requests."""
    described = {"X-Request-ID": _REQUEST_ID, **headers("Cache-Control")["headers"]}
    document["components"]["headers"] = described
    references = {name: {"$ref": f"#/components/headers/{name}"} for name in described}
    of_all = {"X-Request-ID": references["X-Request-ID"]}
    for path in document["paths"].values():
        for method, operation in path.items():
            for answer in operation["responses"].values():
                answer["headers"] = {**answer.get("headers", {}), **(references if method == "get" else of_all)}


def preferring_body(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a JSON body with this schema, and of the header `Prefer`."""
    return body({Json.media_type: {"schema": schema}}) | taking({"Prefer": TEXTS["prefer"]}, example="wait=10")


PROBLEM_ANSWER: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem document.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": REFERENCES.format(model="Problem")}}},
        **headers("Retry-After", "WWW-Authenticate", "Allow"),
    }
}
"""Answer that every call may return: a problem document."""


_JSON = Json.media_type
_OTHER_FORMATS = [form for form in FORMATS.values() if form.media_type != _JSON]
# This optional header is described because openapi-python-client 0.29 otherwise generates modules that cannot be
# imported, for operations that take several media types and have no optional parameter.
_REQUEST_ID_SENT = "An id for the log, for problems and for this header of the answer. One is made if none comes."


def _rows_body(
    schema: dict[str, Any], said: str = "", formats: Collection[RowsFormat] = _OTHER_FORMATS
) -> dict[str, Any]:
    """Return the description of a body of rows, as JSON of this schema or in other formats, which `said` describes."""
    content = {_JSON: {"schema": schema}}
    taken = {"X-Request-ID": _REQUEST_ID_SENT}
    for form in formats:
        described = section_of(type(form), "Rows") + ("" if form.has_members else said)
        content[form.media_type] = {"schema": {**BINARY, "description": described}}
        taken |= form.request_headers
    return body(content) | taking(taken)


def _answer_of(
    description: str, title: str, properties: dict[str, Any], *required: str
) -> dict[int | str, dict[str, Any]]:
    """Return the answer 200 of a call that computes arrays from rows, in all formats; title and members: of JSON."""
    needed = {"required": [*required]} if required else {}
    content = {_JSON: {"schema": with_warnings({"title": title, "type": "object", **needed, "properties": properties})}}
    for form in _OTHER_FORMATS:
        content[form.media_type] = {"schema": {**BINARY, "description": section_of(type(form), "Answers")}}
    return {200: {"description": description, "content": content, **headers("Vary", WARNING)}}


_WHOLE = list_of({"type": "integer"})


def _whole(description: str) -> dict[str, Any]:
    return {**_WHOLE, "description": description}


# One list of rows of two kinds, rather than two kinds of lists: many generators do not tell lists apart.
_SPARSE_ROW = {
    **object_of(
        "SparseVector",
        ["indices", "values"],
        indices=_whole("Columns."),
        values={**NUMBERS_OR_NULL, "description": "Entries of these columns."},
    ),
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
            shape=list_of({"type": "integer", "minimum": 0}, minItems=2, maxItems=2, description="Rows and columns."),
            dtype={"type": "string", "enum": list(DTYPES), "description": "Type of each number."},
        ),
    ]
}
_REFERENCE = {
    **object_of(
        "RowsOfDataset",
        ["dataset"],
        dataset={"type": "string", "pattern": NAME_PATTERN, "description": "Name of the dataset."},
        rows={"type": "integer", "minimum": 1, "description": "Size of the sample; without it, all rows."},
        seed={"type": "integer", "minimum": 0, "maximum": (1 << 64) - 1, "default": 0, "description": "Of the sample."},
    ),
    "description": "Rows of a dataset that is kept here: all of them, or a uniform sample without replacement, in the "
    "order they have there. A seed always gives the same sample: the rows with the smallest of n words of NumPy's "
    "PCG64, n the rows of the dataset.",
}
GIVEN = {"oneOf": [*ROWS["oneOf"], _REFERENCE]}
_ONE_HOT = {
    **object_of(
        "OneHotCodes",
        ["indptr", "indices", "shape"],
        indptr=_whole("Ends of the rows."),
        indices=_whole("Columns of the ones."),
        shape=_whole("Rows and columns."),
    ),
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
PAIRS_BODY = body({_JSON: _PAIRS, Npz.media_type: {"schema": {**BINARY, "description": section_of(Npz, "Rows")}}})
_MATRIX = list_of(NUMBERS)
_COMPLEX = object_of(
    "ComplexMatrix",
    ["real", "imag"],
    real={**_MATRIX, "description": "Real part."},
    imag={**_MATRIX, "description": "Imaginary part."},
)
_REAL_OR_COMPLEX = {
    "anyOf": [_MATRIX, _COMPLEX],
    "description": "A row for each vector; of the form complex in two parts.",
}


def array_answer(array: str, axes: int) -> dict[int | str, dict[str, Any]]:
    """Return the answer 200 of a call that returns one array with `axes` axes."""
    numbers = NUMBERS
    for _ in range(axes - 1):
        numbers = list_of(numbers)
    title = "".join(word.capitalize() for word in array.split("_")) + "Answer"
    return _answer_of("The array.", title, {array: {**numbers, "description": f"Array {array!r} of the map."}}, array)


_SIGNATURE = {**NUMBERS, "description": "Where a rule has weights of both signs: 1 or −1 for each frequency."}
FEATURES_ANSWER = _answer_of(
    "The features, one row for each vector.",
    "FeaturesAnswer",
    {"features": _REAL_OR_COMPLEX, "signature": _SIGNATURE},
    "features",
)
GRAM_ANSWER = _answer_of(
    "The block, and the exact one beside it where it was asked for; stacked in .npy.",
    "GramBlock",
    {"approximate": _REAL_OR_COMPLEX, "exact": {**_MATRIX, "description": "The exact kernel."}},
    "approximate",
)
CODES_ANSWER = _answer_of(
    "The codes, one row for each vector; in .npy the rows of one_hot have shape (n, s).",
    "CodesAnswer",
    {"codes": _CODES},
    "codes",
)


_Numbers = Annotated[list[float], WithJsonSchema(NUMBERS)]
_NumbersOrNull = Annotated[list[float | None], WithJsonSchema(NUMBERS_OR_NULL)]
_INTERVALS = list_of(list_of({"type": ["number", "null"]}, minItems=2, maxItems=2))
_Intervals = Annotated[list[tuple[float, float]], WithJsonSchema(_INTERVALS)]


@with_config(use_attribute_docstrings=True)
class _Similarities(TypedDict):
    estimate: _NumbersOrNull
    """Estimate of the kernel. It may be below 0 if it is corrected for chance collisions, or for signed codes of rows
    far apart. `estimate`, `standard_error` and `interval` are null (in .npy NaN) for one-bit codes of the index if all
    entries of both rows have the same sign: such codes always agree. They are absent if no collision model relates
    signed codes to the kernel; a warning says why.
    """
    standard_error: _NumbersOrNull
    """√(g(1 − g)/s), where g is the rate at which codes agree, divided by 1 − c if chance collisions at the rate c are
    corrected; for signed codes, half the distance between the estimates at g plus and g minus that error. It is 0 if
    all codes agree or none does, which does not mean certainty: see `interval`.
    """
    agreement: _Numbers
    """For Fourier maps: the share of signed codes, or fingerprints, that agree."""
    rbf_estimate: _NumbersOrNull
    """With gamma: estimate of e^(−γ(1 − ρ)) (GMM paper, theorem 4)."""
    rbf_standard_error: _NumbersOrNull
    """With gamma: standard error of rbf_estimate due to sampling alone. The bias of rbf_estimate, which more hashes do
    not reduce, is often larger; it cannot be computed from codes. For vectors it is in `rbf_bias`.
    """
    exact: _Numbers
    """For vectors: the exact kernel."""
    zero_bit: _Numbers
    """For vectors and kernel gmm: the rate at which i* alone agrees."""
    rbf_exact: _Numbers
    """For vectors, with gamma: the exact e^(−γ(1 − ρ))."""
    bias: _NumbersOrNull
    """For vectors, and for signed codes: mean of the estimate minus `exact`. For vectors it is computed from the two
    rows, and is 0 for pairs, fingerprints and bits_of=pair. For signed codes it is of order 1/s, computed from `exact`
    or, without vectors, from the estimate.
    """
    interval: _Intervals
    """Not in .npy: interval [low, high] that contains the kernel 95 times in 100 (mid-p interval of the rate). For
    codes of i* alone, whose bias is unknown, it contains instead the probability that i* are equal, which is at least
    the kernel. For vectors the bias is removed; the computed bias is off by up to .16 where fewer than some twelve
    columns carry the weight, or one row is much longer than the other in all columns.
    """
    rbf_bias: _NumbersOrNull
    """For vectors, with gamma: mean of rbf_estimate minus `rbf_exact` for any number of hashes, as the relation of
    theorem 4 is not exact.
    """
    rbf_interval: _Intervals
    """For vectors, with gamma, not in .npy: interval [low, high], corrected for `rbf_bias`, that contains e^(−γ(1 − ρ))
    95 times in 100.
    """


SIMILARITY_ANSWER = _answer_of(
    "A number for each pair of rows, or two; in .npy the members of one number are stacked in this order, those that "
    "are there.",
    "Similarities",
    {name: one | {"title": name} for name, one in schema_of(_Similarities)["properties"].items()},
)


_IDS = list_of(
    {"anyOf": [{"type": "integer"}, {"type": "string", "minLength": 1}]},
    description="One for each vector, each once: whole numbers or strings of up to 1,024 bytes, which are never the "
    "same. `.` and `..` are none, as no address may end so. Those of a dataset that has ids may be left out.",
)
_TAGS = list_of(
    {"anyOf": [STRING, {"type": "array", "items": STRING, "maxItems": MOST_TAGS}, {"type": "null"}]},
    description="One for each vector, for searches to go by: a tag, a list of tags, or null for none. Without this "
    "member, vectors that are replaced keep theirs.",
)

ALIAS_BODY = body({Json.media_type: {"schema": schema_of(AskedAlias)}})
COPY_BODY = preferring_body(schema_of(AskedCopy))
INDEX_BODY = preferring_body(schema_of(AskedIndex))
BATCH_BODY = body(
    {
        Json.media_type: {"schema": object_of("VectorsOfIndex", ["vectors"], ids=_IDS, vectors=GIVEN, tags=_TAGS)},
        Npz.media_type: {"schema": {**BINARY, "description": TEXTS["vectors_npz"]}},
        Arrow.media_type: {"schema": {**BINARY, "description": TEXTS["vectors_arrow"]}},
    }
)


def _search_body() -> dict[str, Any]:
    schema = schema_of(SearchOptions)
    rows = {
        "vectors": {"oneOf": ROWS["oneOf"], "description": "The queries; instead, `dataset`."},
        "dataset": {**STRING, "description": "Name of a dataset to take queries from."},
        "rows": {"type": "integer", "minimum": 1, "description": "Size of a sample of the dataset; else all rows."},
        "seed": {"type": "integer", "minimum": 0, "description": "Of the sample."},
    }
    return {**schema, "title": "SearchBody", "properties": rows | schema["properties"]}


DELETE_BODY, TAGS_BODY = (body({Json.media_type: {"schema": schema_of(one)}}) for one in (DeleteOptions, TagChanges))
COUNT_BODY = body({Json.media_type: {"schema": schema_of(CountOptions)}})
SEARCH_BODY = body({Json.media_type: {"schema": _search_body()}})


_INFERENCE = json.loads(Path(__file__).with_name("inference.json").read_text(encoding="utf-8"))
_PROBLEM = PROBLEM_ANSWER["default"]
_AS_JSON = {Json.media_type: next(iter(_PROBLEM["content"].values()))}
ERRORS: dict[int | str, dict[str, Any]] = {"default": _PROBLEM | {"content": _AS_JSON | _PROBLEM["content"]}}
"""Answer that every call of the protocol may return: a problem as JSON for its clients, or by its media type."""


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {_JSON: {"schema": schema}, "application/octet-stream": {"schema": _INFERENCE["binary"]}}


_LENGTH = "Bytes of JSON that the body begins with, where a binary tensor follows."
INFER_BODY = body(_content(_INFERENCE["request"])) | taking({"Inference-Header-Content-Length": _LENGTH}, example="137")
INFER_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The tensors that are wanted.",
        "content": _content(_INFERENCE["answer"]),
        **headers("Inference-Header-Content-Length", WARNING),
    }
}
MODELS_BODY: dict[str, Any] = {"requestBody": {"required": False, "content": {_JSON: {"schema": _INFERENCE["index"]}}}}
