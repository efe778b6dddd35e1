"""The service and the store that the tests share: real ones, started here."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import httpx
import pytest
import redis

from service_tests.running import Running, service

_numbers = count()


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service on its embedded store, shared by all tests that do not kill it."""
    with service(tmp_path_factory.mktemp("service") / "data", "--max-body-bytes", "2000000") as shared:
        yield shared


@pytest.fixture(scope="session")
def http(running: Running) -> Iterator[httpx.Client]:
    """A client of the shared service."""
    with httpx.Client(base_url=running.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def store(running: Running) -> Iterator[redis.Redis]:
    """A client of the shared service's store."""
    client = redis.Redis.from_url(running.socket)
    yield client
    client.close()


@pytest.fixture
def name() -> str:
    """A map name that no other test uses."""
    return f"map-{next(_numbers)}"


@pytest.fixture
def gaussian() -> dict[str, Any]:
    """A small valid spec."""
    return {
        "input_dim": 3,
        "kernel": {"kind": "gaussian", "length_scale": 1.5},
        "sampler": {"kind": "sobol"},
        "s": 16,
        "seed": 7,
    }


@pytest.fixture
def gmm() -> dict[str, Any]:
    """A small valid spec of a hashing map."""
    return {"input_dim": 3, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 16, "seed": 7}
