"""Pieces of which the OpenAPI document is made: schemas and headers."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from app.api.negotiation import WARNING

REFERENCES = "#/components/schemas/{model}"
DEFINITIONS: dict[str, Any] = {}
"""The schemas of `schema_of` and those that they refer to, by name."""
STRING = {"type": "string"}
BINARY = {"type": "string", "format": "binary"}


def schema_of(described: Any) -> dict[str, Any]:
    """The schema of a type. What it refers to is added to the document; one name must not have two schemas."""
    schema = TypeAdapter(described).json_schema(ref_template=REFERENCES)
    for name, one in schema.pop("$defs", {}).items():
        if DEFINITIONS.setdefault(name, one) != one:
            raise ValueError(f"two different types are called {name}; rename one")
    return schema


def list_of(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The schema of a list."""
    return {"type": "array", "items": items, **more}


def object_of(title: str, required: list[str], **properties: Any) -> dict[str, Any]:
    """The schema of an object that has no other members than these."""
    shape = {"type": "object", "required": required, "additionalProperties": False, "properties": properties}
    return {"title": title, **shape}


def taking(told: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """The member `parameters` of a request that may have these headers, each with what is told of it."""
    each = ({"name": name, "in": "header", "required": False, "description": text} for name, text in told.items())
    return {"parameters": [{**one, "schema": STRING, **more} for one in each]}


def body(content: dict[str, Any]) -> dict[str, Any]:
    """A body that must be there."""
    return {"requestBody": {"required": True, "content": content}}


NUMBERS = list_of({"type": "number"})
NUMBERS_OR_NULL = list_of({"type": ["number", "null"]})
_WARNINGS = {**list_of(STRING), "description": "There where something is doubtful, as in the header Bochner-Warning."}


def with_warnings(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an answer that may have warnings beside its own members."""
    return {**schema, "properties": {**schema["properties"], "warnings": _WARNINGS}}


_TEXTS = {
    "Preference-Applied": "What was made of `Prefer`: `wait` with the seconds granted, `respond-async`, or both.",
    "Vary": "Headers of the request that the answer depends on.",
    "ETag": "What tells this answer from others of the same address; of a map or dataset its digest, in quotes. For "
    "`If-None-Match`, `If-Match` and `If-Range`.",
    "Accept-Encoding": "The codings in which a body may come; of 415.",
    "Accept-Ranges": "`bytes`: a part of the answer may be asked for with `Range`.",
    "Content-Range": "Which part of the answer it is, and how long all of it is.",
    "Content-Disposition": "That it is a file, and its name.",
    "Link": 'Of the job, with `rel="monitor"`.',
    "Cache-Control": "`no-cache`: who keeps the answer asks again before using it. `no-store`: it is not to be kept.",
    "X-Accel-Buffering": "`no`: a proxy passes each event on at once.",
    WARNING: "What is doubtful about the answer, in one line: where the map's dtype is too coarse for the rows.",
    "Inference-Header-Content-Length": "Bytes of JSON that the answer begins with, where binary tensors follow.",
    "Retry-After": "Seconds after which to try again; of 429 and 503.",
    "WWW-Authenticate": "How to send a key; of 401.",
    "Allow": "The methods that the address takes; of 405.",
}
EXPOSED = (
    *sorted(set(_TEXTS) - {"Vary", "Cache-Control", "X-Accel-Buffering"}),
    "Location",
    "X-Request-ID",
    "traceparent",
)
"""Headers that pages of other origins may read, beside those that they always may."""
_REQUEST_ID = {
    "description": "The header of this name of the request, or an id that is made for it; it is in the log.",
    "schema": STRING,
}


def headers(*names: str, location: str = "") -> dict[str, Any]:
    """The member `headers` of an answer in the document; `location` says where `Location` leads, if it is there."""
    texts = ({"Location": location} if location else {}) | {name: _TEXTS[name] for name in names}
    return {"headers": {name: {"description": text, "schema": STRING} for name, text in texts.items()}}


def add_common_headers(document: dict[str, Any]) -> None:
    """Add the header that every answer has, and that of every answer that could be kept."""
    described = {"X-Request-ID": _REQUEST_ID, **headers("Cache-Control")["headers"]}
    document["components"]["headers"] = described
    references = {name: {"$ref": f"#/components/headers/{name}"} for name in described}
    of_all = {"X-Request-ID": references["X-Request-ID"]}
    for path in document["paths"].values():
        for method, operation in path.items():
            for answer in operation["responses"].values():
                answer["headers"] = {**answer.get("headers", {}), **(references if method == "get" else of_all)}
