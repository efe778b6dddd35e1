"""The answers that the OpenAPI document shows are those that a new service gives."""

import json
from typing import Any

import httpx
import pytest

from docs.answers import FOLDER, answer_file, sent
from service_tests.api.operations import OPERATIONS
from service_tests.generated.conftest import Target
from service_tests.keyed import bearer

pytestmark = pytest.mark.gate
# Members whose names are of the machine, of the moment, or of what else is there.
_OPEN = {"versions", "limits", "usage", "generator"}


def test_every_call_is_answered_as_recorded(target: Target) -> None:
    assert {call.operation for call in target.calls} == set(OPERATIONS)
    files: dict[str, str] = {}
    with httpx.Client(base_url=target.url, headers=bearer(target.key), timeout=300) as http:
        for call in target.calls:
            files |= answer_file(call, sent(http, call))
    assert set(files) == {file.name for file in FOLDER.iterdir()}, "run python -m docs.answers"
    for name, text in files.items():
        if name.endswith(".json"):
            recorded = json.loads((FOLDER / name).read_text())
            assert shape(json.loads(text)) == shape(recorded), f"{name}: run python -m docs.answers"


def shape(answer: Any) -> Any:
    """The names in an answer, and the kinds of its values; of a list those of its first part."""
    if isinstance(answer, dict):
        return {name: None if name in _OPEN else shape(one) for name, one in answer.items()}
    if isinstance(answer, list):
        return [shape(answer[0])] if answer else []
    # A number may be there or be null: a moment, or a rate that is not known yet.
    return "value" if answer is None or isinstance(answer, int | float | str) else type(answer).__name__
