"""Maps that several files of tests ask the same things of."""

from typing import Any

import httpx
import pytest

from service_tests.api.left_open import ROWS
from service_tests.checks import put, put_dataset

SPEC: dict[str, Any] = {
    "input_dim": 3,
    "kernel": {"kind": "gaussian", "length_scale": 1.5},
    "sampler": {"kind": "monte_carlo"},
    "s": 64,
    "seed": 7,
    "dtype": "float64",
}
HASHES: dict[str, Any] = {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 64, "seed": 7}


@pytest.fixture
def fourier(http: httpx.Client, name: str) -> str:
    assert put(http, name, SPEC).status_code == 201
    return name


@pytest.fixture
def dataset(http: httpx.Client, name: str) -> str:
    """The rows to take numbers from that are left open."""
    assert put_dataset(http, name, ROWS).status_code == 201
    return name


@pytest.fixture
def hashes(http: httpx.Client, name: str) -> str:
    assert put(http, f"{name}-hashes", HASHES).status_code == 201
    return f"{name}-hashes"
