"""Pieces of schemas, of which the OpenAPI document is made."""

from typing import Any

from pydantic import TypeAdapter

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


def body(content: dict[str, Any]) -> dict[str, Any]:
    """A body that must be there."""
    return {"requestBody": {"required": True, "content": content}}


NUMBERS = list_of({"type": "number"})
NUMBERS_OR_NULL = list_of({"type": ["number", "null"]})
_WARNINGS = {**list_of(STRING), "description": "There where something is doubtful, as in the header Bochner-Warning."}


def with_warnings(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an answer that may have warnings beside its own members."""
    return {**schema, "properties": {**schema["properties"], "warnings": _WARNINGS}}
