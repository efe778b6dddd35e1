"""What the OpenAPI document says of requests and answers of inference."""

from typing import Any

from app.api.answer_headers import headers
from app.api.array_answers import WARNING
from app.api.documents import PROBLEM_ANSWER
from app.api.schemas import NUMBERS_OR_NULL, list_of, object_of
from app.formats.json import Json

_JSON = Json.media_type
_STRING, _FLAG = {"type": "string"}, {"type": "boolean"}
_BINARY_TENSORS = {
    "type": "string",
    "format": "binary",
    "description": "JSON, as long as the header Inference-Header-Content-Length says, and then binary tensors.",
}
_SIZE = {"type": "integer", "minimum": 0, "description": "Bytes of the tensor after the JSON, in the place of `data`."}
_DATA = list_of(
    {"oneOf": [{"type": ["number", "null"]}, NUMBERS_OR_NULL]},
    description="Numbers, row by row, in one list or in a list for each row.",
)


def _tensor(title: str, *datatypes: str) -> dict[str, Any]:
    return object_of(
        title,
        ["name", "shape", "datatype"],
        name=_STRING,
        shape=list_of({"type": "integer", "minimum": 0}, minItems=2, maxItems=2),
        datatype={"type": "string", "enum": [*datatypes]},
        data=_DATA,
        parameters=object_of(f"{title}Parameters", [], binary_data_size=_SIZE),
    )


_OUTPUT = object_of(
    "OutputAsked",
    ["name"],
    name={"type": "string", "enum": ["features", "real", "imag", "codes"]},
    parameters=object_of("OutputAskedParameters", [], binary_data=_FLAG),
)
_REQUEST = object_of(
    "InferenceRequest",
    ["inputs"],
    id={**_STRING, "description": "It is in the answer."},
    model_name={**_STRING, "description": "Some clients repeat the name of the model here."},
    inputs=list_of(_tensor("InputTensor", "FP32", "FP64"), minItems=1, maxItems=1, description="`vectors`."),
    outputs=list_of(_OUTPUT, description="Those that are wanted; without it, all but `codes` beside features."),
    parameters=object_of("InferenceParameters", [], binary_data_output=_FLAG),
)
_ANSWER = object_of(
    "InferenceAnswer",
    ["model_name", "outputs"],
    model_name=_STRING,
    id=_STRING,
    outputs=list_of(_tensor("OutputTensor", "FP32", "FP64", "INT64", "UINT8")),
)


_PROBLEM = PROBLEM_ANSWER["default"]
_AS_JSON = {Json.media_type: next(iter(_PROBLEM["content"].values()))}
ERRORS: dict[int | str, dict[str, Any]] = {"default": _PROBLEM | {"content": _AS_JSON | _PROBLEM["content"]}}
"""What every call of the protocol may be answered: JSON, which its clients read, or a problem by its media type."""


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {_JSON: {"schema": schema}, "application/octet-stream": {"schema": _BINARY_TENSORS}}


_LENGTH = {
    "name": "Inference-Header-Content-Length",
    "in": "header",
    "required": False,
    "description": "Bytes of JSON that the body begins with, where a binary tensor follows.",
    "schema": _STRING,
    "example": "137",
}
INFER_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": _content(_REQUEST)},
    "parameters": [_LENGTH],
}
INFER_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The tensors that are wanted.",
        "content": _content(_ANSWER),
        **headers("Inference-Header-Content-Length", WARNING),
    }
}
_INDEX = object_of("IndexRequest", [], ready={**_FLAG, "default": False, "description": "Those alone that are ready."})
INDEX_BODY: dict[str, Any] = {"requestBody": {"required": False, "content": {_JSON: {"schema": _INDEX}}}}
