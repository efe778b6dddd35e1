"""OpenAPI document: the framework's part, plus bodies that routes read themselves, schema names and examples."""

import json
import re
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.api.access import add_roles
from app.api.problems import Problem
from app.api.schemas import DEFINITIONS, REFERENCES, TEXTS, add_common_headers, body, preferring_body, schema_of
from app.core.input import Fit
from app.core.spec import MapSpec
from app.formats.json import Json
from app.services.asked import InputOfRows, ScaleOfRows
from app.services.keys import AskedKey

MAP_BODY = preferring_body({"$ref": REFERENCES.format(model="AskedSpec")})
KEY_BODY = body({Json.media_type: {"schema": schema_of(AskedKey)}})


def asked_members() -> dict[str, Any]:
    """Return the schemas of the members of a requested spec that may be deferred: left to a dataset or to chance."""
    members = schema_of(MapSpec)["properties"]
    for model in (ScaleOfRows, InputOfRows):
        DEFINITIONS[model.__name__] = schema_of(model)
    DEFINITIONS["InputOfRows"]["required"] = ["fit"]  # the dataset may be named beside it
    scale, fit = ({"$ref": REFERENCES.format(model=model.__name__)} for model in (ScaleOfRows, InputOfRows))
    seed = {"default": 0, "description": f"{members['seed']['description']} Null: one is drawn."}
    return {
        "kernel": {"anyOf": [members["kernel"], scale]},
        "seed": seed | {"anyOf": [members["seed"], {"type": "null"}]},
        "input": members["input"] | {"anyOf": [*members["input"]["anyOf"], fit, {"enum": [*Fit]}]},
    }


def _asked_spec() -> dict[str, Any]:
    spec = schema_of(MapSpec)
    said = "A spec as it is put: length scale and input may be left to a dataset, the seed to chance."
    return spec | {"title": "AskedSpec", "description": said, "properties": spec["properties"] | asked_members()}


def document(app: FastAPI, keys_required: bool) -> dict[str, Any]:
    """Return the OpenAPI document: the framework's part, plus bodies that routes read themselves, roles, examples."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        own = {"MapSpec": schema_of(MapSpec), "AskedSpec": _asked_spec(), "Problem": schema_of(Problem)}
        schema["components"]["schemas"].update(own | DEFINITIONS)
        schema["info"]["description"] = TEXTS["introduction"]
        schema["tags"] = [{"name": tag, "description": text} for tag, text in TEXTS["tags"].items()]
        for operation in (one for path in schema["paths"].values() for one in path.values()):
            operation["summary"] = re.split(r"[.:;] |[.:]?\n|\.$", operation["description"], maxsplit=1)[0]
        add_common_headers(schema)
        add_roles(schema, keys_required)
        name_schemas(schema)
        add_named_examples(schema["paths"])
        app.openapi_schema = schema
    return app.openapi_schema


Schema = dict[str, Any]
_CHOICES = ("anyOf", "oneOf", "allOf")


def name_schemas(document: dict[str, Any]) -> None:
    """Move every schema that becomes a type to the components, under a name, for generators of clients.

    A generator names a type after its schema, or else after the place where it was found, with a number
    (`diagnose_x_type_1_item`). So every schema that becomes a type of its own is stored in the components under one
    name: bodies and answers, objects, and enumerations within a choice. Constructs that some generators cannot read are
    replaced by equivalent ones.

    An object is named by its `title`, or after its place; one name has one schema.

    Raises:
        ValueError: two schemas would have the same name; give one a `title` of its own.
    """
    components = document["components"]["schemas"]
    naming = _Naming(components)
    for name, schema in [*components.items()]:
        components[name] = naming.inside(schema, name)
    for path in document["paths"].values():
        for operation in path.values():
            called = _camel(operation["operationId"])
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = naming.inside(parameter["schema"], called + _camel(parameter["name"]))
            asked = [("Body", operation["requestBody"])] if "requestBody" in operation else []
            for suffix, sent in [*asked, *(("Answer", answer) for answer in operation["responses"].values())]:
                for content in sent.get("content", {}).values():
                    if "schema" in content:
                        content["schema"] = naming.whole(content["schema"], called + suffix)
    document["components"]["schemas"] = dict(sorted(components.items()))


class _Naming:
    """Moves schemas to the components."""

    def __init__(self, components: dict[str, Schema]) -> None:
        self._components = components

    def whole(self, schema: Schema, name: str) -> Schema:
        """Return the schema of a whole body or answer; objects, lists and choices are moved to the components."""
        if schema.get("type") in ("object", "array") or any(key in schema for key in _CHOICES):
            return self._move_to_components(schema, _title(schema, name))
        return schema

    def inside(self, schema: Schema, name: str) -> Schema:
        """Return a schema whose parts are moved to the components, while the schema itself stays in place."""
        schema = _readable(schema)
        if "properties" in schema:
            # An object that is a member gets a name of its own; an enumeration keeps the member's name.
            members = {
                key: (self._part if "properties" in one else self.inside)(one, name + _camel(key))
                for key, one in schema["properties"].items()
            }
            schema = {**schema, "properties": members}
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                schema = {**schema, key: self._part(schema[key], name + ("Item" if key == "items" else "Value"))}
        for key in _CHOICES:
            if key in schema:
                schema = {**schema, key: [self._part(one, name) for one in schema[key]]}
        return schema

    def _part(self, schema: Schema, name: str) -> Schema:
        """Return an item, value or alternative of a schema; an object or an enumeration is moved to the components."""
        if "properties" in schema:
            return self._move_to_components(schema, _title(schema, name))
        if "enum" in schema or schema.get("additionalProperties"):
            return self._move_to_components(schema, name)
        return self.inside(schema, name)

    def _move_to_components(self, schema: Schema, name: str) -> Schema:
        schema = self.inside(schema, name)
        if self._components.setdefault(name, schema) != schema:
            raise ValueError(f"two different schemas are called {name}; give one a title of its own")
        return {"$ref": REFERENCES.format(model=name)}


def _readable(schema: Schema) -> Schema:
    """Return the schema in terms that generators know: without tuples, and without objects as defaults."""
    if "prefixItems" in schema:
        first, *others = schema["prefixItems"]
        if any(other != first for other in others):
            raise ValueError(f"a list has parts of different kinds, which many generators cannot read: {schema}")
        schema = {**{key: value for key, value in schema.items() if key != "prefixItems"}, "items": first}
    if isinstance(schema.get("default"), dict):
        said = " ".join(f"{key} {value}" for key, value in schema["default"].items())
        told = f"{schema.get('description', '')} Without it: {said}.".strip()
        schema = {**{key: value for key, value in schema.items() if key != "default"}, "description": told}
    return schema


def _title(schema: Schema, name: str) -> str:
    """Return the title of a schema if it is an identifier, else `name`: a framework makes other titles from places."""
    title = schema.get("title", "")
    return title if title.isidentifier() else name


def _camel(name: str) -> str:
    """Return `max-wait_seconds` as `MaxWaitSeconds`."""
    return "".join(word[:1].upper() + word[1:] for word in name.replace("-", "_").split("_"))


# Next to this file in an installed wheel, else at the top of the source tree.
_INSTALLED, _SOURCE = Path(__file__).parent, Path(__file__).parents[2] / "openapi"
_JSON = "application/json"


def add_named_examples(paths: dict[str, Any]) -> None:
    """Add each example next to its schema, in the member `paths` of the document.

    Bodies are in `openapi/examples`, in files named `operation.title.query.json`. The title is the name of the example;
    the query, which may be left out, is the query string of its request. Answers are in `openapi/answers`, as
    `operation.status.title.json`, or `.txt` if they are not JSON; `python -m docs.answers` records them. Examples of
    parameters without a default are in `openapi/parameters.json`, by name, or by operation and name if the name is
    ambiguous.

    Raises:
        KeyError: the file name has an unknown operation, or one without such a body or answer.
    """
    operations = {one["operationId"]: one for path in paths.values() for one in path.values()}
    for file in _files("examples"):
        operation, title, *query = file.name.removesuffix(".json").split(".")
        told = title.replace("_", " ") + (f", with ?{'.'.join(query)}" if query else "")
        _add(operations[operation]["requestBody"]["content"][_JSON], title, told, json.loads(file.read_text()))
    for file in _files("answers"):
        operation, status, title, suffix = file.name.split(".")
        content = operations[operation]["responses"][status]["content"]
        answer = content[_JSON] if suffix == "json" else next(iter(content.values()))
        text = file.read_text()
        _add(answer, title, title.replace("_", " "), json.loads(text) if suffix == "json" else text)
    known = json.loads((_folder() / "parameters.json").read_text())
    for name, operation in operations.items():
        for parameter in operation.get("parameters", ()):
            of_all = known.get(parameter["name"])
            example = parameter["schema"].get("default") or known.get(f"{name}.{parameter['name']}", of_all)
            if example is not None:
                parameter.setdefault("example", example)


def _files(folder: str) -> list[Path]:
    return sorted((_folder() / folder).iterdir())


def _folder() -> Path:
    return next(top for top in (_INSTALLED, _SOURCE) if (top / "examples").is_dir())


def _add(described: dict[str, Any], title: str, summary: str, value: Any) -> None:
    described.setdefault("examples", {})[title] = {"summary": summary, "value": value}
