"""Answers 202: the OpenAPI document declares those that come, and no others."""

from typing import Any

import httpx
import numpy as np

from service_tests.checks import OF_ANY, RESPOND_ASYNC, finished, put, put_dataset

KERNEL = {"kind": "gaussian", "length_scale": 1.5}
SPEC = {"input_dim": 3, "kernel": KERNEL, "sampler": {"kind": "monte_carlo"}, "s": 16}
LONG = SPEC | {"sampler": {"kind": "weighted", "box": 1.0}, "s": 1000}


def declared(http: httpx.Client) -> dict[str, dict[str, Any]]:
    """What the document says of answers 202, by the name of the operation."""
    paths = http.get("/openapi.json").json()["paths"].values()
    every = [operation for methods in paths for operation in methods.values()]
    return {one["operationId"]: one["responses"]["202"] for one in every if "202" in one["responses"]}


def test_what_is_taken_is_declared_as_it_comes(http: httpx.Client, name: str) -> None:
    rows = np.zeros((5000, 3))
    rows[:, 0] = np.arange(5000)
    assert put_dataset(http, name, rows).status_code == 201
    assert put(http, name, SPEC).status_code == 201
    recommendation = {"vectors": rows[:2000].tolist(), "kernel": KERNEL, "seeds": 20, "budget": 1 << 12}
    target = {"dataset": name, "k": 10, "recall": 0.9}
    assert http.put(f"/v1/indexes/{name}-i", json={"map": name}).status_code == 201
    duplicates = f"/v1/indexes/{name}-i/duplicates"
    came = {
        "put_map": http.put(f"/v1/maps/{name}-b", json=LONG, headers=RESPOND_ASYNC),
        "diagnose": http.post(f"/v1/maps/{name}/diagnostics/gram", json={"dataset": name}, headers=RESPOND_ASYNC),
        "recommend": http.post("/v1/recommendations", json=recommendation, headers=RESPOND_ASYNC),
        "advise": http.post("/v1/indexes/advice", json={"map": name, **target}, headers=RESPOND_ASYNC),
        "find_duplicates": http.post(duplicates, json={"min_similarity": 0.9}, headers=RESPOND_ASYNC),
        "put_index": http.put(f"/v1/indexes/{name}", json={"map": name, "target": target}, headers=RESPOND_ASYNC),
    }
    assert {operation: answer.status_code for operation, answer in came.items()} == dict.fromkeys(came, 202)
    others = ("diagnose", "recommend", "advise", "find_duplicates", "put_index")
    jobs = [came["put_map"].json()["job"], *(came[each].headers["location"] for each in others)]
    for job in reversed(jobs):  # the first may run, and the others then wait
        came["cancel_job"] = http.delete(job)
        assert came["cancel_job"].status_code == 202
    documented = declared(http)
    assert set(documented) == set(came)
    for operation, answer in came.items():
        assert answer.headers["content-type"] in documented[operation]["content"]
        told = {header.lower() for header in documented[operation].get("headers", {})}
        # A warning comes only where there is something to warn of.
        assert told - {"bochner-warning"} == set(answer.headers) - OF_ANY, operation
    finished(http, came["diagnose"])
