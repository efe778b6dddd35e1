"""The OpenAPI document: what the framework knows of routes, and what they read themselves."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.api.answer_headers import add_common_headers, headers
from app.api.named_examples import add_named_examples
from app.api.problems import MEDIA_TYPE, Problem
from app.api.roles import add_roles
from app.api.schema_names import name_schemas
from app.api.schemas import DEFINITIONS, REFERENCES, STRING, body, schema_of
from app.core.spec import MapSpec
from app.formats.json import Json
from app.services.keys import AskedKey
from app.services.left_open import InputOfRows, ScaleOfRows

_PREFER: dict[str, Any] = {
    "parameters": [
        {
            "name": "Prefer",
            "in": "header",
            "required": False,
            "description": "`wait=N`: wait up to N seconds for the answer, but not longer than the limit "
            "`max_wait_seconds`. `respond-async`: have a job do it, at once or after `wait` (RFC 7240). Without "
            "either, a job goes on with what takes longer than the limit `max_request_seconds`.",
            "schema": STRING,
            "example": "wait=10",
        }
    ]
}


def preferring_body(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON body of this schema, with the header `Prefer`."""
    return body({Json.media_type: {"schema": schema}}) | _PREFER


MAP_BODY = preferring_body({"$ref": REFERENCES.format(model="AskedSpec")})
KEY_BODY = body({Json.media_type: {"schema": schema_of(AskedKey)}})


def asked_members() -> dict[str, Any]:
    """Members of a spec as it is put, in which numbers may be left open."""
    members = schema_of(MapSpec)["properties"]
    for model in (ScaleOfRows, InputOfRows):
        DEFINITIONS[model.__name__] = schema_of(model)
    scale, fit = ({"$ref": REFERENCES.format(model=model.__name__)} for model in (ScaleOfRows, InputOfRows))
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
        "content": {MEDIA_TYPE: {"schema": {"$ref": REFERENCES.format(model="Problem")}}},
        **headers("Retry-After", "WWW-Authenticate", "Allow"),
    }
}
"""What every call may be answered."""


def document(app: FastAPI, keys_required: bool) -> dict[str, Any]:
    """The OpenAPI document, with what the framework cannot know: what routes read themselves, roles, examples."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        own = {"MapSpec": schema_of(MapSpec), "AskedSpec": _asked_spec(), "Problem": schema_of(Problem)}
        schema["components"]["schemas"].update(own | DEFINITIONS)
        add_common_headers(schema)
        add_roles(schema, keys_required)
        name_schemas(schema)
        add_named_examples(schema["paths"])
        app.openapi_schema = schema
    return app.openapi_schema
