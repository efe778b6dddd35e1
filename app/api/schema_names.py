"""Names for the schemas of the OpenAPI document, so that generators of clients make types with names to read.

A generator names a type after its schema, or else after the place where it found it, and its number there
(`diagnose_x_type_1_item`). So what becomes a type of its own stands among the components under one name: bodies and
answers, objects, and enumerations within a choice. What some generators cannot read is said in another way here too.
"""

from typing import Any

Schema = dict[str, Any]
_REFERENCE = "#/components/schemas/{}"
_CHOICES = ("anyOf", "oneOf", "allOf")


def name_schemas(document: dict[str, Any]) -> None:
    """Give every schema that becomes a type a name among the components.

    An object is called what its `title` says, or after the place where it stands; one name has one schema.

    Raises:
        ValueError: two schemas would have one name; give one a `title` of its own.
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
            bodies = [("Body", operation["requestBody"])] if "requestBody" in operation else []
            for suffix, body in [*bodies, *(("Answer", answer) for answer in operation["responses"].values())]:
                for content in body.get("content", {}).values():
                    if "schema" in content:
                        content["schema"] = naming.whole(content["schema"], called + suffix)
    document["components"]["schemas"] = dict(sorted(components.items()))


class _Naming:
    """Moves schemas among the components."""

    def __init__(self, components: dict[str, Schema]) -> None:
        self._components = components

    def whole(self, schema: Schema, name: str) -> Schema:
        """A whole body or answer: objects, lists and choices get a name."""
        if schema.get("type") in ("object", "array") or any(key in schema for key in _CHOICES):
            return self._moved(schema, _called(schema, name))
        return schema

    def inside(self, schema: Schema, name: str) -> Schema:
        """A schema whose parts have names, which stays where it is."""
        schema = _readable(schema)
        if "properties" in schema:
            members = {key: self._member(one, name + _camel(key)) for key, one in schema["properties"].items()}
            schema = {**schema, "properties": members}
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                schema = {**schema, key: self._part(schema[key], name + ("Item" if key == "items" else "Value"))}
        for key in _CHOICES:
            if key in schema:
                schema = {**schema, key: [self._part(one, name) for one in schema[key]]}
        return schema

    def _member(self, schema: Schema, name: str) -> Schema:
        """A member of an object: an object in its place gets a name, an enumeration has that of the member."""
        return self._part(schema, name) if "properties" in schema else self.inside(schema, name)

    def _part(self, schema: Schema, name: str) -> Schema:
        """One of several, or of many: an object or an enumeration gets a name."""
        if "properties" in schema:
            return self._moved(schema, _called(schema, name))
        if "enum" in schema or schema.get("additionalProperties"):
            return self._moved(schema, name)
        return self.inside(schema, name)

    def _moved(self, schema: Schema, name: str) -> Schema:
        schema = self.inside(schema, name)
        if self._components.setdefault(name, schema) != schema:
            raise ValueError(f"two different schemas are called {name}; give one a title of its own")
        return {"$ref": _REFERENCE.format(name)}


def _readable(schema: Schema) -> Schema:
    """The same in words that generators know: no tuples, no objects as defaults."""
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


def _called(schema: Schema, name: str) -> str:
    """The title of a schema, or else the name; titles of several words are a framework's, of the place."""
    title = schema.get("title", "")
    return title if title.isidentifier() else name


def _camel(name: str) -> str:
    """`max-wait_seconds` as `MaxWaitSeconds`."""
    return "".join(word[:1].upper() + word[1:] for word in name.replace("-", "_").split("_"))
