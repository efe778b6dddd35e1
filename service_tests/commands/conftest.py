"""The map that the commands use."""

import httpx
import pytest

from service_tests.checks import put
from service_tests.commands.runs import SPEC


@pytest.fixture
def map_name(http: httpx.Client, name: str) -> str:
    for package in ("pyarrow", "fsspec"):
        pytest.importorskip(package)
    assert put(http, name, SPEC).status_code == 201
    return name
