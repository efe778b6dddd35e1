"""The OpenAPI document shows every example body at its operation, by its name. That each is valid: test_examples.py."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.api.named_examples import add_named_examples

OPENAPI = Path(__file__).parents[2] / "openapi"
EXAMPLES = sorted((OPENAPI / "examples").iterdir())


@pytest.fixture(scope="module")
def shown() -> dict[str, dict[str, Any]]:
    """Examples of the committed document by operation and name; those of JSON bodies, as there are no others."""
    paths = json.loads((OPENAPI / "openapi.json").read_text())["paths"]
    operations = [one for path in paths.values() for one in path.values() if "requestBody" in one]
    return {one["operationId"]: one["requestBody"]["content"]["application/json"]["examples"] for one in operations}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_a_file_is_shown_as_it_is(shown: dict[str, dict[str, Any]], file: Path) -> None:
    operation, title, *query, _ = file.name.split(".")
    example = shown[operation][title]
    assert example["value"] == json.loads(file.read_text())
    assert example["summary"].startswith(title.replace("_", " "))
    assert ("?" in example["summary"]) == bool(query)
    assert ".".join(query) in example["summary"]


def test_no_name_hides_another_and_none_is_made_up(shown: dict[str, dict[str, Any]]) -> None:
    assert sum(len(examples) for examples in shown.values()) == len(EXAMPLES)


def test_an_example_of_no_operation_is_found_out() -> None:
    with pytest.raises(KeyError, match="codes"):
        add_named_examples({})
