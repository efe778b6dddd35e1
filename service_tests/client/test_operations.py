"""The client has a call for every operation of the service."""

import inspect
import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import httpx
import numpy as np
import pytest

from bochner_client import Client, Refused
from bochner_client.calls.maps import FrozenArray
from service_tests.cases import each

DOCUMENT = json.loads((Path(__file__).parents[2] / "openapi" / "openapi.json").read_text())
OPERATIONS = {
    operation["operationId"]: (method.upper(), path)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
    if not path.startswith("/v2")  # the Open Inference Protocol, which has clients of its own
}
ROWS = np.ones((2, 3))
JOB = "0" * 24
SPEC = {"input_dim": 3, "s": 4, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}
CALLS: dict[str, Callable[[Client], Any]] = {
    "put_map": lambda client: client.put_map("m", SPEC),
    "get_map": lambda client: client.get_map("m"),
    "list_maps": lambda client: client.list_maps(),
    "delete_map": lambda client: client.delete_map("m"),
    "export_map": lambda client: client.export_map("m", "npz"),
    "transform": lambda client: client.transform("m", ROWS),
    "kernel": lambda client: client.kernel("m", ROWS),
    "codes": lambda client: client.codes("m", ROWS),
    "similarity": lambda client: client.similarity("m", ROWS, ROWS),
    "put_dataset": lambda client: client.put_dataset("d", ROWS),
    "get_dataset": lambda client: client.get_dataset("d"),
    "list_datasets": lambda client: client.list_datasets(),
    "delete_dataset": lambda client: client.delete_dataset("d"),
    "put_index": lambda client: client.put_index("i", "m"),
    "get_index": lambda client: client.get_index("i"),
    "list_indexes": lambda client: client.list_indexes(),
    "delete_index": lambda client: client.delete_index("i"),
    "upsert_vectors": lambda client: client.upsert_vectors("i", [1, "1"], ROWS),
    "delete_vector": lambda client: client.delete_vector("i", "1"),
    "search_index": lambda client: client.search_index("i", ROWS),
    "find_duplicates": lambda client: client.find_duplicates("i", 0.9),
    "diagnose": lambda client: client.diagnose("m", "gram", ROWS),
    "recommend": lambda client: client.recommend(SPEC["kernel"], ROWS, budget=4),  # type: ignore[arg-type]
    "advise": lambda client: client.advise("m", "d"),
    "list_jobs": lambda client: client.list_jobs(),
    "get_job": lambda client: client.get_job(JOB),
    "cancel_job": lambda client: client.cancel_job(JOB),
    "get_job_result": lambda client: client.get_job_result(JOB),
    "watch_job": lambda client: list(client.watch_job(JOB)),
    "create_key": lambda client: client.create_key("k", "owner"),  # type: ignore[arg-type]
    "list_keys": lambda client: client.list_keys(),
    "revoke_key": lambda client: client.revoke_key("0" * 16),
    "live": lambda client: client.live(),
    "ready": lambda client: client.ready(),
    "info": lambda client: client.info(),
    "catalog": lambda client: client.catalog(),
    "metrics": lambda client: client.metrics(),
    "problem": lambda client: client.problem("quota"),
}
ARRAYS = get_args(FrozenArray)
CALLS |= {f"get_{array}": lambda client, array=array: client.get_array("m", array) for array in ARRAYS}  # type: ignore[misc]


@each("operation", OPERATIONS)
def test_every_operation_has_a_call(operation: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """It need not succeed: it must ask the right thing, and understand what it is told."""
    method, path = OPERATIONS[operation]
    assert operation in CALLS, (
        f"{method} {path} is new: add it to client/bochner_client/calls, to operations.py there, and to CALLS here"
    )
    sent: list[httpx.Request] = []
    monkeypatch.setattr(client._http, "event_hooks", {"request": [sent.append], "response": []})
    with suppress(Refused):
        CALLS[operation](client)
    assert sent[0].method == method
    assert re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), sent[0].url.path)


ARGUMENTS: dict[str, str | None] = {
    "Prefer": None,  # the client waits for jobs, or is asked for one by another call
    "If-Match": "if_match",
    "format": "file_format",
    "last-event-id": "after",
}
"""What parameters of the contract are called as arguments, where they are not called the same."""
CALLED: dict[tuple[str, str], str | None] = {
    ("put_map", "dry_run"): None,  # a call of its own
    ("put_map", "If-None-Match"): "only_new",
    ("put_dataset", "If-None-Match"): "only_new",
    ("delete_vector", "kind"): None,  # the id itself is of one
    ("get_map", "If-None-Match"): "if_none_match",
    ("get_dataset", "If-None-Match"): "if_none_match",
    ("export_map", "If-None-Match"): "if_none_match",
}
"""Likewise, of single operations."""
UNUSED = {"If-None-Match", "If-Range", "Range", "Content-Encoding", "Accept-Encoding", "X-Request-ID", "traceparent"}
"""Headers for caches, browsers and traces, which a client of arrays has no use for."""


@each("operation", OPERATIONS)
def test_every_parameter_of_an_operation_is_an_argument(operation: str) -> None:
    method, path = OPERATIONS[operation]
    call = getattr(Client, "get_array" if operation.removeprefix("get_") in ARRAYS else operation)
    taken = inspect.signature(call).parameters
    for parameter in DOCUMENT["paths"][path][method.lower()].get("parameters", []):
        name = parameter["name"]
        argument = CALLED.get((operation, name), ARGUMENTS.get(name, name))
        if parameter["in"] == "path" or argument is None or (argument == name and name in UNUSED):
            continue
        assert argument in taken, f"{method} {path} takes {name}: give {operation} an argument for it"
