"""Bodies of rows, and answers that are arrays made of rows, described for the OpenAPI document."""

from collections.abc import Collection
from typing import Any

from app.api.answer_headers import headers
from app.api.array_answers import WARNING
from app.api.schemas import BINARY, NUMBERS, NUMBERS_OR_NULL, STRING, body, list_of, object_of, with_warnings
from app.core.arrays import MAX_DIM
from app.core.model import NAME_PATTERN
from app.formats import DATASET_FORMATS, FORMATS, RowsFormat
from app.formats.json import Json
from app.formats.json.rows import DTYPES
from app.formats.npz import Npz

_JSON = Json.media_type
_OTHER_FORMATS = [form for form in FORMATS.values() if form.media_type != _JSON]
# Here because openapi-python-client 0.29 makes modules that cannot be imported of operations that take several media
# types and have no parameter that may be left out.
_REQUEST_ID = {
    "name": "X-Request-ID",
    "in": "header",
    "required": False,
    "description": "An id for the log, for problems and for this header of the answer. One is made if none comes.",
    "schema": STRING,
}


def _rows_body(
    schema: dict[str, Any], said: str = "", formats: Collection[RowsFormat] = _OTHER_FORMATS
) -> dict[str, Any]:
    """A body of rows, in JSON of this schema or in another format; `said` is added to the description of the latter."""
    content = {_JSON: {"schema": schema}}
    parameters = [_REQUEST_ID]
    for form in formats:
        described = form.rows_described + ("" if form.has_members else said)
        content[form.media_type] = {"schema": {**BINARY, "description": described}}
        for name, text in form.request_headers.items():
            parameters.append({"name": name, "in": "header", "required": False, "description": text, "schema": STRING})
    return body(content) | {"parameters": parameters}


def answer_of(description: str, schema: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """The answer 200 of a call that gives arrays made of rows, in all formats; the schema is that of JSON."""
    content = {_JSON: {"schema": schema}}
    for form in _OTHER_FORMATS:
        content[form.media_type] = {"schema": {**BINARY, "description": form.answers_described}}
    return {200: {"description": description, "content": content, **headers("Vary", WARNING)}}


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
PAIRS_BODY = body({_JSON: _PAIRS, Npz.media_type: {"schema": {**BINARY, "description": Npz.rows_described}}})
_MATRIX = list_of(NUMBERS)
_COMPLEX = object_of("ComplexMatrix", ["real", "imag"], real=_MATRIX, imag=_MATRIX)
_REAL_OR_COMPLEX = {
    "anyOf": [_MATRIX, _COMPLEX],
    "description": "A row for each vector; of the form complex in two parts.",
}


def array_answer(array: str, axes: int) -> dict[int | str, dict[str, Any]]:
    """The answer 200 of a call that gives one array, which has so many axes."""
    numbers = NUMBERS
    for _ in range(axes - 1):
        numbers = list_of(numbers)
    title = "".join(word.capitalize() for word in array.split("_")) + "Answer"
    shape = {"title": title, "type": "object", "required": [array], "properties": {array: numbers}}
    return answer_of("The array.", with_warnings(shape))


FEATURES_ANSWER = answer_of(
    "The features, one row for each vector.",
    with_warnings(
        {
            "title": "FeaturesAnswer",
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
