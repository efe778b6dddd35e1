"""How the body of a request reaches its format."""

import json
from typing import Any

import pytest

from app.api import bodies
from app.api.problems import Refusal
from app.core.recommendations.candidates import KernelMember


@pytest.mark.parametrize(
    "body",
    [
        {"kernel": {"kind": [1.0] * 100_000}},
        {"kernel": {"kind": "x" * 400_000}},
        {"kernel": {"kind": "gaussian", "length_scale": 1.0, "x" * 400_000: 1}},
        {"kernel": "x" * 400_000},
    ],
    ids=["list", "string", "name", "value"],
)
def test_a_refusal_repeats_little_of_what_came(body: Any) -> None:
    with pytest.raises(Refusal) as refused:
        bodies.parse(KernelMember, json.dumps(body).encode())
    assert len(json.dumps(refused.value.members)) < 2000
    assert len(str(refused.value)) < 2000
