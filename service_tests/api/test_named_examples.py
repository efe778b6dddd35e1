"""The OpenAPI document shows every example body and recorded answer at its operation, by its name, and they are valid.

That the service takes the bodies: test_examples.py; that it answers as recorded: generated/test_recorded_answers.py.
"""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from service_tests.api.operations import DOCUMENT
from service_tests.cases import each

DOCUMENTED: dict[str, dict[str, Any]] = {
    one["operationId"]: one for path in DOCUMENT["paths"].values() for one in path.values()
}
OPENAPI = Path(__file__).parents[2] / "openapi"
EXAMPLES = sorted((OPENAPI / "examples").iterdir())


@pytest.fixture(scope="module")
def shown() -> dict[str, dict[str, Any]]:
    """Examples of the committed document by operation and name; those of JSON bodies, as there are no others."""
    paths = json.loads((OPENAPI / "openapi.json").read_text())["paths"]
    operations = [one for path in paths.values() for one in path.values() if "requestBody" in one]
    return {one["operationId"]: one["requestBody"]["content"]["application/json"]["examples"] for one in operations}


@each("file", EXAMPLES)
def test_a_file_is_shown_as_it_is(shown: dict[str, dict[str, Any]], file: Path) -> None:
    operation, title, *query, _ = file.name.split(".")
    example = shown[operation][title]
    assert example["value"] == json.loads(file.read_text())
    assert example["summary"].startswith(title.replace("_", " "))
    assert ("?" in example["summary"]) == bool(query)
    assert ".".join(query) in example["summary"]


def contents() -> list[Any]:
    """Every 2xx answer with JSON or text in it: the operation, the status and what the document says."""
    return [
        (name, status, content)
        for name, operation in DOCUMENTED.items()
        for status, answer in operation["responses"].items()
        if status.startswith("2")
        for media_type, content in list(answer.get("content", {}).items())[:1]
        if media_type == "application/json" or media_type.startswith("text/")
    ]


@each(("operation", "status", "content"), contents())
def test_every_answer_has_an_example_that_is_what_its_schema_says(
    operation: str, status: str, content: dict[str, Any]
) -> None:
    assert content.get("examples"), (
        f"{operation} has no example of {status}: add a call to docs/calls.py and run python -m docs.answers"
    )
    for name, one in content["examples"].items():
        errors = problems(content.get("schema", {}), one["value"])
        assert not errors, (name, errors)


@each("operation", [name for name in DOCUMENTED if "requestBody" in DOCUMENTED[name]])
def test_every_body_has_examples_that_are_what_its_schema_says(operation: str) -> None:
    content = DOCUMENTED[operation]["requestBody"]["content"]["application/json"]
    assert content["examples"]
    for name, one in content["examples"].items():
        errors = problems(content["schema"], one["value"])
        assert not errors, (name, errors)


@each("operation", DOCUMENTED)
def test_every_parameter_has_an_example_that_is_what_its_schema_says(operation: str) -> None:
    for parameter in DOCUMENTED[operation].get("parameters", ()):
        assert "example" in parameter or "examples" in parameter, f"add {parameter['name']} to openapi/parameters.json"
        errors = problems(parameter["schema"], parameter["example"])
        assert not errors, (parameter["name"], errors)


def test_no_example_of_a_parameter_is_left_over() -> None:
    used = {
        name
        for operation, one in DOCUMENTED.items()
        for parameter in one.get("parameters", ())
        for name in (parameter["name"], f"{operation}.{parameter['name']}")
    }
    assert set(json.loads(Path("openapi/parameters.json").read_text())) <= used


def problems(schema: dict[str, Any], value: Any) -> list[str]:
    """What a value breaks of a schema of the document."""
    validator = jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]})
    return [error.message for error in validator.iter_errors(value)]
