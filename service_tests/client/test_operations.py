"""The client has a call for every operation of the service."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from bochner_client import Client, Refused

DOCUMENT = json.loads((Path(__file__).parents[2] / "openapi" / "openapi.json").read_text())
OPERATIONS = {
    operation["operationId"]: (method.upper(), path)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}
ROWS = np.ones((2, 3))
JOB = "0" * 24
SPEC = {"input_dim": 3, "s": 4, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}
ARRAYS = [name.removeprefix("get_") for name, (_, path) in OPERATIONS.items() if re.fullmatch(r".*\{name\}/\w+", path)]
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
    "diagnose": lambda client: client.diagnose("m", "gram", ROWS),
    "recommend": lambda client: client.recommend(SPEC["kernel"], ROWS, budget=4),  # type: ignore[arg-type]
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
for _array in ("frequencies", "weights", "offsets", "signature", "signs", "radii", "landmarks", "root"):
    CALLS[f"get_{_array}"] = lambda client, array=_array: client.get_array("m", array)  # type: ignore[misc]
for _array in ("landmark_values", "landmark_columns", "landmark_ends"):
    CALLS[f"get_{_array}"] = lambda client, array=_array: client.get_array("m", array)  # type: ignore[misc]


@pytest.mark.parametrize("operation", OPERATIONS)
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


def test_no_call_is_left_over() -> None:
    assert set(CALLS) <= set(OPERATIONS)
