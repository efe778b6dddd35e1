"""The OpenAPI document: as committed, and true."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.api.problem_kinds import KINDS
from app.formats import DATASET_FORMATS, FORMATS

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


def test_every_operation_of_the_contract_is_there(document: dict[str, Any]) -> None:
    assert {title for title, _ in operations(document)} == {
        "PUT /v1/maps/{name}",
        "GET /v1/maps",
        "GET /v1/maps/{name}",
        "DELETE /v1/maps/{name}",
        "GET /v1/maps/{name}/frequencies",
        "GET /v1/maps/{name}/weights",
        "GET /v1/maps/{name}/signs",
        "GET /v1/maps/{name}/radii",
        "GET /v1/maps/{name}/offsets",
        "GET /v1/maps/{name}/signature",
        "GET /v1/maps/{name}/landmarks",
        "GET /v1/maps/{name}/landmark_values",
        "GET /v1/maps/{name}/landmark_columns",
        "GET /v1/maps/{name}/landmark_ends",
        "GET /v1/maps/{name}/root",
        "GET /v1/maps/{name}/export",
        "POST /v1/maps/{name}/transform",
        "POST /v1/maps/{name}/kernel",
        "POST /v1/maps/{name}/codes",
        "POST /v1/maps/{name}/similarity",
        "PUT /v1/datasets/{name}",
        "GET /v1/datasets",
        "GET /v1/datasets/{name}",
        "DELETE /v1/datasets/{name}",
        "PUT /v1/indexes/{name}",
        "GET /v1/indexes",
        "GET /v1/indexes/{name}",
        "DELETE /v1/indexes/{name}",
        "POST /v1/indexes/{name}/vectors",
        "DELETE /v1/indexes/{name}/vectors/{id}",
        "POST /v1/indexes/{name}/search",
        "GET /v1/jobs",
        "GET /v1/jobs/{id}",
        "DELETE /v1/jobs/{id}",
        "GET /v1/jobs/{id}/result",
        "GET /v1/jobs/{id}/events",
        "GET /v1/keys",
        "POST /v1/keys",
        "DELETE /v1/keys/{id}",
        "GET /v1/info",
        "GET /v1/catalog",
        "GET /health/live",
        "POST /v1/maps/{name}/diagnostics/{kind}",
        "POST /v1/recommendations",
        "POST /v1/indexes/advice",
        "POST /v1/indexes/{name}/duplicates",
        "GET /health/ready",
        "GET /problems/{slug}",
        "GET /metrics",
        "GET /v2",
        "GET /v2/health/live",
        "GET /v2/health/ready",
        "GET /v2/models/{name}",
        "GET /v2/models/{name}/ready",
        "POST /v2/models/{name}/infer",
        "POST /v2/repository/index",
    }


def test_every_operation_has_a_name_of_its_own_and_says_what_it_does(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(set(names)) == len(names)
    for title, operation in operations(document):
        assert operation["description"], title
        assert operation["operationId"].islower(), title
        assert "application/problem+json" in operation["responses"]["default"]["content"], title


def test_every_problem_is_listed(document: dict[str, Any]) -> None:
    described = document["components"]["schemas"]["Problem"]["properties"]["type"]
    assert described["enum"] == [f"/problems/{slug}" for slug in KINDS]


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            for key, value in node.items():
                if key == "$ref":
                    yield value
                else:
                    yield from references(value)
        elif isinstance(node, list):
            for one in node:
                yield from references(one)

    found = set(references(document))
    assert len(found) > 10
    for reference in found:
        at = document
        for step in reference.removeprefix("#/").split("/"):
            at = at[step]
        assert at


def test_every_schema_is_used(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    for name in document["components"]["schemas"]:
        assert f'"#/components/schemas/{name}"' in text, name


def test_bodies_name_their_media_types(document: dict[str, Any]) -> None:
    taken = {
        operation["operationId"]: set(operation["requestBody"]["content"])
        for _, operation in operations(document)
        if "requestBody" in operation
    }
    assert {"application/json", "application/x-npy"} <= set(FORMATS)
    every = set(FORMATS)
    assert taken == {
        "put_map": {"application/json"},
        "put_dataset": {*DATASET_FORMATS},
        "transform": every,
        "kernel": every,
        "codes": every,
        "similarity": {"application/json", "application/x-npz"},
        "put_index": {"application/json"},
        "upsert_vectors": every - {"application/x-npy"},
        "search_index": {"application/json"},
        "diagnose": {"application/json"},
        "recommend": {"application/json"},
        "advise": {"application/json"},
        "find_duplicates": {"application/json"},
        "create_key": {"application/json"},
        "infer": {"application/json", "application/octet-stream"},
        "inference_index": {"application/json"},
    }


def test_no_type_has_a_member_of_its_own_name(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        members = [member for member in schema.get("properties", ()) if _camel(member) == name]
        assert not members, f"generated code has one variable for both, as {members} of {name}"


def _camel(member: str) -> str:
    return "".join(word.capitalize() for word in member.split("_"))


def test_the_answer_with_an_array_names_it(document: dict[str, Any]) -> None:
    seen = 0
    for title, operation in operations(document):
        array = title.removeprefix("GET /v1/maps/{name}/")
        if array in (title, "export"):
            continue
        answer = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        schema = document["components"]["schemas"][answer.rpartition("/")[2]]
        assert schema["required"] == [array]
        assert schema["properties"][array]["type"] == "array"
        seen += 1
    assert seen > 10


def test_every_parameter_is_described(document: dict[str, Any]) -> None:
    for title, operation in operations(document):
        for parameter in operation.get("parameters", ()):
            assert parameter.get("description"), (title, parameter["name"])
