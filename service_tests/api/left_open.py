"""Specs that leave numbers to data or to chance, and the maps that are made of them."""

from typing import Any

import httpx
import numpy as np

from service_tests.checks import put

# Of different widths, one column constant; 1e6 away from 0.
ROWS = np.column_stack([np.random.default_rng(11).normal(size=(90, 3)) * [1, 4, 0.5] + [1e6, 0, -3], np.full(90, 0.1)])
PLAIN: dict[str, Any] = {"input_dim": 4, "sampler": {"kind": "halton"}, "s": 16, "dtype": "float64"}


def spec_of(kernel: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A spec of a kernel, by default gaussian, and of other members."""
    return PLAIN | {"kernel": {"kind": "gaussian"} | kernel} | members


def created(http: httpx.Client, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """The record of a new map, which is found again by what was asked and by the numbers that came of it."""
    answer = put(http, name, spec)
    assert answer.status_code == 201, answer.text
    record: dict[str, Any] = answer.json()
    assert http.get(f"/v1/maps/{name}").json() == record
    for again in (spec, record["spec"]):
        found = put(http, name, again)
        assert (found.status_code, found.json()) == (200, record)
        assert found.headers["etag"] == answer.headers["etag"]
    return record
