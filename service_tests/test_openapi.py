"""The OpenAPI document: as committed, and true."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

COMMITTED = Path(__file__).parent.parent / "openapi" / "openapi.json"
RENEW = "python -m app openapi > openapi/openapi.json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(COMMITTED.read_text())
    return loaded


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def test_the_committed_document_is_fresh() -> None:
    command = [sys.executable, "-m", "app", "openapi"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=COMMITTED.parent.parent).stdout
    assert printed == COMMITTED.read_text(), f"openapi/openapi.json is stale; renew it with `{RENEW}`"


def test_the_service_serves_it(http: httpx.Client, document: dict[str, Any]) -> None:
    assert http.get("/openapi.json").json() == document


def test_every_operation_has_a_name_of_its_own_and_says_what_it_does(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(set(names)) == len(names)
    for title, operation in operations(document):
        assert operation["description"], title
        assert operation["operationId"].islower(), title
        assert "application/problem+json" in operation["responses"]["default"]["content"], title
