"""Which role each call needs."""

from collections.abc import Mapping
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute

from app.api.problems import Refusal
from app.store.keys import Key, Role

ROLES: dict[str, Role | None] = {
    # Nobody needs a key to ask how the service is.
    **dict.fromkeys(("live", "ready", "inference_live", "inference_ready")),
    **dict.fromkeys(("page", "page_file")),  # which show nothing until they are given a key
    **dict.fromkeys(
        (
            *("list_maps", "get_map", "get_frequencies", "get_weights", "get_offsets", "get_signature", "get_signs"),
            *("get_radii", "get_landmarks", "get_landmark_values", "get_landmark_columns", "get_landmark_ends"),
            *("get_root", "export_map", "transform", "kernel", "codes", "similarity", "diagnose", "recommend"),
            *("list_indexes", "get_index", "search_index", "find_duplicates", "advise"),
            *("list_datasets", "get_dataset", "list_jobs", "get_job", "get_job_result", "watch_job"),
            *("inference_server", "inference_model", "inference_model_ready", "inference_index", "infer"),
            *("info", "catalog", "problem", "docs_page", "docs_file", "openapi_document", "metrics"),
        ),
        Role.read,
    ),
    **dict.fromkeys(("put_map", "delete_map", "put_dataset", "delete_dataset", "cancel_job"), Role.write),
    **dict.fromkeys(("put_index", "delete_index", "upsert_vectors", "delete_vector"), Role.write),
    **dict.fromkeys(("create_key", "list_keys", "revoke_key"), Role.admin),
}
"""The role that each operation needs, None for those that are open to everybody."""

WITHOUT_KEY = Role.write
"""The role of those who send no key where none is needed. Keys are made and revoked with a key, or by command."""


def permit(operation: str, state: Mapping[str, Any]) -> None:
    """Refuse an operation that the role of a request, in its state, does not include.

    An operation that is not in the table is for administrators.
    """
    needed = ROLES.get(operation, Role.admin)
    role: Role | None = state["role"]
    if needed is None or (role is not None and role.includes(needed)):
        return
    key: Key | None = state["key"]
    if key is None:
        raise unauthorized(f"no key came; one with role {needed} is wanted")
    raise Refusal("forbidden", f"key {key.name!r} has role {key.role}; {needed} is wanted")


async def permitted(request: Request) -> None:
    """Refuse a request whose role does not include what its route does. Nothing of its body has been read yet."""
    route = request.scope["route"]
    if isinstance(route, APIRoute):
        permit(route.operation_id or route.name, request.scope["state"])


def unauthorized(detail: str, error: str | None = None) -> Refusal:
    """The refusal of a request without a key that would do; `error` is that of RFC 6750, where something came."""
    challenge = 'Bearer realm="bochner"' + (f', error="{error}"' if error else "")
    return Refusal("unauthorized", detail, headers={"WWW-Authenticate": challenge})


_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key. The service needs one by default exactly where it does not listen on a loopback address. "
    "Its role is `read`, `write` or `admin`; each includes those before it.",
}


def add_roles(document: dict[str, Any], required: bool) -> None:
    """Say in the OpenAPI document which role each operation needs, and which need no key unless all do."""
    document["components"]["securitySchemes"] = {"key": _SCHEME}
    for path in document["paths"].values():
        for operation in path.values():
            role = ROLES[operation["operationId"]]
            optional = role is not None and not required and WITHOUT_KEY.includes(role)
            operation["security"] = [] if role is None else [{"key": [role]}] + [{}] * optional
