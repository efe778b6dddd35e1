"""What the OpenAPI document says of diagnostics and recommendations."""

from typing import Any

from pydantic import BaseModel, TypeAdapter

from app.api.documents import DEFINITIONS, GIVEN, PREFER, REFERENCES, ROWS, applied_headers, taken_headers
from app.core.diagnostics import DIAGNOSTICS
from app.core.recommendations import RecommendationOptions
from app.core.recommendations.answer import Ranking
from app.formats.json_measuring import ROW_MEMBERS, ROW_MEMBERS_TO_RECOMMEND_FOR

_MEMBERS: dict[str, dict[str, Any]] = {
    "vectors": {"oneOf": ROWS["oneOf"], "description": "Rows; instead, `dataset`."},
    "input_dim": {"type": "integer", "minimum": 1, "description": "Length of a row; must be there for sparse rows."},
    "dataset": {"type": "string", "description": "Name of a dataset to take rows from."},
    "rows": {"type": "integer", "minimum": 1, "description": "Size of a sample of the dataset; without it, all rows."},
    "x": {**GIVEN, "description": "Rows; row i goes with row i of y."},
    "y": {**GIVEN, "description": "As many rows."},
    "seed": {"type": "integer", "minimum": 0, "description": "Of the sample."},
}


def _keep(definitions: dict[str, Any]) -> None:
    """Add schemas to those of the document. One name must not have two schemas."""
    for name, schema in definitions.items():
        if DEFINITIONS.setdefault(name, schema) != schema:
            raise ValueError(f"two different types are called {name}; rename one")


def _body_schema(model: type[BaseModel], members: tuple[str, ...]) -> dict[str, Any]:
    """The schema of a body that has the options of a model, and rows in these members."""
    schema = model.model_json_schema(ref_template=REFERENCES)
    _keep(schema.pop("$defs", {}))
    options = schema["properties"]
    properties = {name: _MEMBERS[name] for name in members if name not in options} | options
    return {**schema, "properties": properties, "additionalProperties": False}


def _answer_schema(answer: type) -> dict[str, Any]:
    """The schema of the type of an answer."""
    schema = TypeAdapter(answer).json_schema(ref_template=REFERENCES)
    _keep(schema.pop("$defs", {}))
    return schema


_SVG = {"image/svg+xml": {"schema": {"type": "string"}}}
_JOB = {"$ref": REFERENCES.format(model="JobRecord")}


def _answers(schema: dict[str, Any], description: str) -> dict[int | str, dict[str, Any]]:
    return {
        200: {
            "description": description,
            "content": {"application/json": {"schema": schema}} | _SVG,
            **applied_headers(),
        },
        202: {
            "description": "It takes long: a job will have the same answer at its `result`.",
            **taken_headers("Link of the job."),
            "content": {"application/json": {"schema": _JOB}},
        },
    }


def _request(schema: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}, **PREFER}


_EVERY = DIAGNOSTICS.values()
_DRAWN = [one.kind for one in _EVERY if one.draws]
DIAGNOSTIC_BODY = _request({"anyOf": [_body_schema(one, ROW_MEMBERS[one.takes]) for one in _EVERY]})
DIAGNOSTIC_ANSWER = _answers(
    {"anyOf": [_answer_schema(one.answer) for one in _EVERY]},
    f"The figures; those of {' and '.join(_DRAWN)}, and no others, also as a picture.",
)
RECOMMENDATION_BODY = _request(_body_schema(RecommendationOptions, ROW_MEMBERS_TO_RECOMMEND_FOR))
RECOMMENDATION_ANSWER = _answers(_answer_schema(Ranking), "The ranking; also as a picture, error against columns.")
