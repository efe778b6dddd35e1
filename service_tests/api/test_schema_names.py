"""Schemas of the OpenAPI document: all that becomes a type has a name, in words that generators of clients know."""

import re
from collections.abc import Iterator
from typing import Any

from service_tests.api.operations import DOCUMENT


def parts(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each schema within a schema, with the keys that lead to it; members of objects by the word `properties` alone."""
    if isinstance(schema, dict):
        yield place, schema
        for name, member in schema.get("properties", {}).items():
            yield from parts(member, f"{place}/properties/{name}")
        for key in ("items", "additionalProperties"):
            yield from parts(schema.get(key), f"{place}/{key}")
        for key in ("anyOf", "oneOf", "allOf"):
            for one in schema.get(key, ()):
                yield from parts(one, f"{place}/{key}")


def schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of the committed document with its place."""
    for name, schema in DOCUMENT["components"]["schemas"].items():
        yield from parts(schema, name)
    for path in DOCUMENT["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", ()):
                yield from parts(parameter["schema"], operation["operationId"] + "/parameter")


def bodies() -> Iterator[tuple[str, dict[str, Any]]]:
    """The schema of every body and answer, with its operation."""
    for path in DOCUMENT["paths"].values():
        for operation in path.values():
            for body in (operation.get("requestBody", {}), *operation["responses"].values()):
                for content in body.get("content", {}).values():
                    yield operation["operationId"], content.get("schema", {})


def test_every_object_and_every_enumeration_in_a_choice_is_a_component() -> None:
    for place, schema in schemas():
        _, *inside = place.split("/")
        if "properties" in schema:
            assert not inside, place
        if "enum" in schema and inside:
            assert inside[-1] not in ("items", "anyOf", "oneOf"), place


def test_whole_bodies_and_answers_are_components() -> None:
    for operation, schema in bodies():
        assert not {"properties", "anyOf", "oneOf", "allOf", "items"} & set(schema), operation


def test_names_are_words_of_every_language() -> None:
    for name in DOCUMENT["components"]["schemas"]:
        assert re.fullmatch(r"[A-Z][A-Za-z0-9]*", name)


def test_no_schema_has_words_that_some_generators_cannot_read() -> None:
    for place, schema in schemas():
        assert "prefixItems" not in schema, place
        assert "allOf" not in schema, place
        assert not isinstance(schema.get("default"), dict), place


def test_every_choice_by_kind_says_so() -> None:
    by_kind = [schema for _, schema in schemas() if "discriminator" in schema]
    assert len(by_kind) >= 5
    for schema in by_kind:
        mapping = schema["discriminator"]["mapping"]
        assert set(mapping.values()) == {one["$ref"] for one in schema["oneOf"]}
        for kind, reference in mapping.items():
            model = DOCUMENT["components"]["schemas"][reference.rpartition("/")[2]]
            assert model["properties"]["kind"]["const"] == kind


def document(**members: Any) -> dict[str, Any]:
    """A document with one operation that is posted an object of these members."""
    body = {"type": "object", "properties": members}
    operation = {
        "operationId": "try_it",
        "requestBody": {"content": {"application/json": {"schema": body}}},
        "responses": {},
    }
    return {"components": {"schemas": {}}, "paths": {"/": {"post": operation}}}


def test_every_operation_has_a_tag_that_is_described_and_a_summary_of_its_own() -> None:
    tags = {tag["name"]: tag["description"] for tag in DOCUMENT["tags"]}
    operations = [one for path in DOCUMENT["paths"].values() for one in path.values()]
    assert {tag for one in operations for tag in one["tags"]} == tags.keys()
    for one in operations:
        assert one["description"].startswith(one["summary"])
        assert 10 < len(one["summary"]) <= 110


def test_every_property_is_described() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    alone = {
        f"{title}.{name}"
        for title, schema in schemas.items()
        for name, member in schema.get("properties", {}).items()
        if not any("description" in one for one in (member, *member.get("anyOf", member.get("oneOf", ()))))
    }
    assert alone == set()
