"""The client has a call for every operation of the service, with all of its parameters."""

import inspect

from app.core.maps import FAMILIES
from bochner_client import Client
from service_tests.api.operations import DOCUMENT, OPERATIONS
from service_tests.cases import each

ARRAYS = {array for family in FAMILIES for array in family.fetched}


ARGUMENTS: dict[str, str | None] = {
    "Prefer": None,  # the client waits for jobs, or is asked for one by another call
    "If-Match": "if_match",
    "format": "file_format",
    "last-event-id": "after",
    "ids_as": None,  # Python reads whole numbers of any size
}
"""What parameters of the contract are called as arguments, where they are not called the same."""
CALLED: dict[tuple[str, str], str | None] = {
    ("put_map", "dry_run"): None,  # a call of its own
    ("put_map", "If-None-Match"): "only_new",
    ("put_dataset", "If-None-Match"): "only_new",
    ("delete_vector", "kind"): None,  # the id itself is of one
    ("get_vector", "kind"): None,
    ("get_vector", "include"): "vector",
    ("get_map", "If-None-Match"): "if_none_match",
    ("get_dataset", "If-None-Match"): "if_none_match",
    ("export_map", "If-None-Match"): "if_none_match",
}
"""Likewise, of single operations."""
UNUSED = {"If-None-Match", "Content-Encoding", "Accept-Encoding", "X-Request-ID", "traceparent"}
"""Headers for caches, browsers and traces, which a client of arrays has no use for."""


@each("operation", OPERATIONS)
def test_every_operation_has_a_call_and_every_parameter_is_an_argument_of_it(operation: str) -> None:
    method, path = OPERATIONS[operation]
    if path.startswith("/v2"):  # the Open Inference Protocol, which has clients of its own
        return
    call = getattr(Client, "get_array" if operation.removeprefix("get_") in ARRAYS else operation, None)
    assert call, f"{method} {path} is new: add it to client/bochner_client/calls, and to operations.py there"
    taken = inspect.signature(call).parameters
    for parameter in DOCUMENT["paths"][path][method.lower()].get("parameters", []):
        name = parameter["name"]
        argument = CALLED.get((operation, name), ARGUMENTS.get(name, name))
        if parameter["in"] == "path" or argument is None or (argument == name and name in UNUSED):
            continue
        assert argument in taken, f"{method} {path} takes {name}: give {operation} an argument for it"
