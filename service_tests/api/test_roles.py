"""Each call needs a role: the table says which of every operation that the service has."""

from typing import Any

import pytest
from fastapi.routing import APIRoute, iter_route_contexts

from app.api.access import METRICS, OPEN, ROLES, add_roles
from app.main import Direct, create_app
from app.settings import Settings
from app.store.keys import Role
from service_tests.api.operations import OPERATIONS
from service_tests.cases import each

CHANGES_NOTHING = {
    "advise",
    "find_duplicates",
    "measure_recall",
    "plan_bands",
    "search_index",
    "count_vectors",
    "transform",
    "kernel",
    "codes",
    "similarity",
    "diagnose",
    "recommend",
    "infer",
    "cancel_job",  # what the key has asked for; nothing of others without another role
    "inference_index",
}
"""What is posted and yet leaves everything as it is."""


@each("operation", OPERATIONS)
def test_every_operation_needs_the_role_that_its_method_calls_for(operation: str) -> None:
    assert operation in ROLES, f"say in app/api/access.py which role {operation} needs"
    method, path = OPERATIONS[operation]
    needed = ROLES[operation]
    if path.startswith("/v1/keys"):
        assert needed is Role.admin
    elif path in OPEN:
        assert needed is None
    elif path in (METRICS, "/problems/{slug}"):
        assert needed is Role.metrics
    elif method == "GET" or operation in CHANGES_NOTHING:
        assert needed is Role.read
    else:
        assert needed is Role.write


def test_the_table_has_every_route_of_the_application_and_no_other() -> None:
    app = create_app(Settings(redis_url="redis://localhost"))
    contexts = list(iter_route_contexts(app.routes))
    others = {context.name for context in contexts if not isinstance(context.original_route, APIRoute)}
    names = {context.operation_id or context.name for context in contexts if context.name not in others}
    assert names == set(ROLES)
    # The short way asks the table itself.
    assert others == {None}
    assert sum(isinstance(context.original_route, Direct) for context in contexts) == 1


@pytest.mark.parametrize("required", [False, True])
def test_the_document_says_which_role_is_needed(required: bool) -> None:
    paths: dict[str, Any] = {
        "/": {operation: {"operationId": operation} for operation in ("live", "transform", "put_map", "create_key")}
    }
    document: dict[str, Any] = {"components": {}, "paths": paths}
    add_roles(document, required)
    without: list[dict[str, Any]] = [] if required else [{}]
    assert {name: one["security"] for name, one in paths["/"].items()} == {
        "live": [],
        "transform": [{"key": ["read"]}, *without],
        "put_map": [{"key": ["write"]}, *without],
        "create_key": [{"key": ["admin"]}],
    }
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
