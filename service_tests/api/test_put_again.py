"""Maps whose length scale, input or seed was left open, put again: the same request finds the same map."""

import json
from typing import Any

import httpx
import pytest

from service_tests.api.left_open import ROWS, created, spec_of
from service_tests.checks import RESPOND_ASYNC, assert_problem, finished, put, put_dataset
from service_tests.races import at_once
from service_tests.running import Running


def test_what_was_asked_is_found_again_when_the_dataset_is_another_or_gone(http: httpx.Client, dataset: str) -> None:
    asked = spec_of(
        {"length_scale": "median", "dataset": dataset}, seed=None, input={"fit": "robust", "dataset": dataset}
    )
    record = created(http, dataset, asked)
    assert http.delete(f"/v1/datasets/{dataset}").status_code == 204
    reordered = json.dumps({**asked, "form": "cos_sin", "normalize": False}, sort_keys=True).encode()
    for again in (asked, record["spec"], reordered):
        assert put(http, dataset, again).json() == record
    assert put_dataset(http, dataset, ROWS[:50] ** 3).status_code == 201
    assert put(http, dataset, asked).json() == record
    others = [
        asked | {"kernel": asked["kernel"] | {"length_scale": "nearest_neighbor"}},
        asked | {"kernel": asked["kernel"] | {"length_scale": {"per_column": "median"}}},
        asked | {"kernel": asked["kernel"] | {"dataset": "another"}},
        asked | {"input": asked["input"] | {"fit": "min_max"}},
        asked | {"input": asked["input"] | {"unit_norm": True}},
        asked | {"seed": record["spec"]["seed"]},
        asked | {"s": 32},
        {name: asked[name] for name in asked if name != "input"},
        record["spec"] | {"seed": None},
    ]
    for other in others:
        assert_problem(http, put(http, dataset, other), 409, "map-exists")
    assert http.get(f"/v1/maps/{dataset}").json() == record


@pytest.mark.parametrize("headers", [{}, RESPOND_ASYNC], ids=["at once", "by a job"])
def test_eight_that_ask_at_the_same_time_get_one_map(
    running: Running, http: httpx.Client, dataset: str, headers: dict[str, str]
) -> None:
    asked = spec_of({"length_scale": {"per_column": "median"}, "dataset": dataset}, seed=None)

    def ask(_: int) -> tuple[int, Any]:
        with running.client(**headers) as client:
            answer = client.put(f"/v1/maps/{dataset}", json=asked)
            return answer.status_code, answer.json()

    answers = at_once(8, ask)
    assert sum(status == 201 for status, _ in answers) == (0 if headers else 1)
    assert {status for status, _ in answers} <= {200, 201, 202}
    assert len({json.dumps(record["spec"]) for _, record in answers}) == 1
    if headers:
        jobs = {record["job"] for _, record in answers} - {None}
        assert len(jobs) == 1
        finished(http, httpx.Response(202, headers={"Location": jobs.pop()}))
    found = put(http, dataset, asked)
    assert (found.status_code, found.json()["spec"]) == (200, answers[0][1]["spec"])
