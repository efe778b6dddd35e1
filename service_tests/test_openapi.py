"""The OpenAPI document: as committed, and as served."""

import json
import subprocess
import sys
from pathlib import Path

import httpx

COMMITTED = Path(__file__).parent.parent / "openapi" / "openapi.json"
RENEW = "python -m app openapi > openapi/openapi.json"


def test_the_committed_document_is_fresh_and_served(http: httpx.Client) -> None:
    command = [sys.executable, "-m", "app", "openapi"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=COMMITTED.parent.parent).stdout
    assert printed == COMMITTED.read_text(), f"openapi/openapi.json is stale; renew it with `{RENEW}`"
    assert http.get("/openapi.json").json() == json.loads(printed)


def test_every_operation_has_a_name_of_its_own_and_says_what_it_does() -> None:
    paths = json.loads(COMMITTED.read_text())["paths"]
    operations = [operation for methods in paths.values() for operation in methods.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        assert operation["description"], operation["operationId"]
        assert operation["operationId"].islower()
        assert "application/problem+json" in operation["responses"]["default"]["content"], operation["operationId"]
