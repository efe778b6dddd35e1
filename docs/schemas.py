"""JSON Schemas as Markdown: what a value may be, and the members of an object as a list."""

import json
import re
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def resolved(schema: Schema, definitions: Schema) -> Schema:
    """The schema that a reference leads to, with what stands beside the reference; any other as it is."""
    if "$ref" not in schema:
        return schema
    rest = {key: value for key, value in schema.items() if key != "$ref"}
    return resolved(definitions[schema["$ref"].rpartition("/")[2]] | rest, definitions)


def one_line(description: str) -> str:
    """A plain description as Markdown on one line. Its asterisks are those of formulas; code keeps its own."""
    return re.sub(r"(`[^`]*`)|\*", lambda found: found[1] or r"\*", description.replace("\n", " "))


def kind_of(schema: Schema) -> str | None:
    """The tag of a kernel or sampler; None for all other objects."""
    tag: str | None = schema.get("properties", {}).get("kind", {}).get("const")
    return tag


def type_of(schema: Schema, definitions: Schema) -> str:
    """What a value may be, in words on one line."""
    schema = resolved(schema, definitions)
    if kind_of(schema) is not None:
        return f"`{kind_of(schema)}`"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    choices = schema.get("anyOf", schema.get("oneOf"))
    if choices is not None:
        return " or ".join(dict.fromkeys(type_of(one, definitions) for one in choices))
    types = schema.get("type", "any value")
    if isinstance(types, list):
        return " or ".join(type_of({**schema, "type": one}, definitions) for one in types)
    if types == "array":
        return _list_of(schema, definitions)
    if types == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object with values: {type_of(schema['additionalProperties'], definitions)}"
    if schema.get("format") == "binary":
        return "bytes"
    return f"{types} {_bounds(schema)}".rstrip()


def members(schema: Schema, definitions: Schema, depth: int = 0) -> Iterator[str]:
    """The members of an object as the lines of a list, with the members of these below them."""
    schema = resolved(schema, definitions)
    for name, member in schema.get("properties", {}).items():
        if name == "kind" and kind_of(schema) is not None:
            continue
        told = [type_of(member, definitions)]
        if name in schema.get("required", ()):
            told.append("must be there")
        if member.get("default") is not None:
            told.append(f"default `{json.dumps(member['default'], ensure_ascii=False)}`")
        described = one_line(resolved(member, definitions).get("description", ""))
        yield f"{'    ' * depth}- `{name}` ({'; '.join(told)}){'. ' + described if described else ''}"
        yield from _below(member, definitions, depth + 1)


def _below(schema: Schema, definitions: Schema, depth: int) -> Iterator[str]:
    """The members of what a value is made of, unless it is one kind of many, which has a section of its own."""
    schema = resolved(schema, definitions)
    if "discriminator" in schema:
        return
    if "properties" in schema:
        yield from members(schema, definitions, depth)
    for inner in (schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", ())):
        if isinstance(inner, dict):
            yield from _below(inner, definitions, depth)


def _list_of(schema: Schema, definitions: Schema) -> str:
    if "prefixItems" in schema:
        return f"list of {len(schema['prefixItems'])}: {type_of(schema['prefixItems'][0], definitions)}"
    items = type_of(schema.get("items", {}), definitions)
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and least == most:
        return f"list of {least}: {items}"
    bounds = [f"at least {least}"] * bool(least) + [f"at most {most}"] * (most is not None)
    return f"list of {items}" + (f" ({', '.join(bounds)})" if bounds else "")


def _bounds(schema: Schema) -> str:
    bounds = [f"{sign} {_number(schema[key])}" for key, sign in _BOUNDS.items() if key in schema]
    return " and ".join(bounds + ([f"like `{schema['pattern']}`"] if "pattern" in schema else []))


def _number(value: float) -> str:
    """A number as text; powers of two past a million, and those less one, as such."""
    power = int(value + 1).bit_length() - 1
    if power < 20 or value not in (1 << power, (1 << power) - 1):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return f"2^{power}" if value == 1 << power else f"2^{power} − 1"
