"""What the OpenAPI document says of bodies that routes read themselves, and of problem documents."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from app.api.problems import MEDIA_TYPE, Problem
from app.core.spec import MapSpec

_REFERENCES = "#/components/schemas/{model}"
_BINARY = {"type": "string", "format": "binary"}
_NUMBERS = {"type": "array", "items": {"type": "number"}}
_ROWS = {
    "oneOf": [
        {"type": "array", "items": _NUMBERS, "description": "Dense rows, each of input_dim numbers."},
        {
            "type": "array",
            "description": "Sparse rows; indices increase.",
            "items": {
                "type": "object",
                "required": ["indices", "values"],
                "additionalProperties": False,
                "properties": {"indices": {"type": "array", "items": {"type": "integer"}}, "values": _NUMBERS},
            },
        },
    ]
}
_CODES = {"type": "array", "description": "Codes as /codes answers them.", "items": {"type": "array", "items": {}}}


def _body(content: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": content}}


def _members(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


def json_body(model: type[BaseModel]) -> dict[str, Any]:
    """A JSON body of a model."""
    return _body({"application/json": {"schema": {"$ref": _REFERENCES.format(model=model.__name__)}}})


VECTORS_BODY = _body(
    {
        "application/json": {"schema": _members(["vectors"], vectors=_ROWS)},
        "application/x-npy": {"schema": {**_BINARY, "description": "A 2-D .npy of float32 or float64."}},
    }
)
GRAM_BODY = _body(
    {
        "application/json": {"schema": _members(["x"], x=_ROWS, y=_ROWS)},
        "application/x-npy": {"schema": {**_BINARY, "description": "x as a 2-D .npy; y is x."}},
    }
)
PAIRS_BODY = _body(
    {"application/json": {"schema": _members(["x", "y"], x={"anyOf": [_ROWS, _CODES]}, y={"anyOf": [_ROWS, _CODES]})}}
)
ARRAY_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The array, or an object of arrays; several arrays are stacked in .npy.",
        "content": {"application/json": {"schema": {"type": "object"}}, "application/x-npy": {"schema": _BINARY}},
    }
}


def install(app: FastAPI) -> None:
    """Complete the OpenAPI document with the models that no route's signature names."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
            known = schema["components"]["schemas"]
            for model in (MapSpec, Problem):
                described = model.model_json_schema(ref_template=_REFERENCES)
                known.update(described.pop("$defs", {}))
                known[model.__name__] = described
            refused = {"$ref": _REFERENCES.format(model="Problem")}
            for path in schema["paths"].values():
                for operation in path.values():
                    operation["responses"].pop("422", None)
                    operation["responses"]["default"] = {
                        "description": "A problem document.",
                        "content": {MEDIA_TYPE: {"schema": refused}},
                    }
            for unused in ("HTTPValidationError", "ValidationError"):
                known.pop(unused, None)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]
