"""A service with what the calls of `docs/calls.py` meet, and the key of an administrator."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from app.services.keys import AskedKey
from app.store.keys import Role
from docs.calls import Call, calls, prepared
from service_tests.keyed import bearer, made
from service_tests.running import service


class Target(NamedTuple):
    """What a generated client is tried on."""

    url: str
    key: str
    calls: list[Call]


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    """A service of its own: the calls delete what they meet."""
    with service(tmp_path / "data", "--job-workers", "1") as running:
        key = made(running.socket, AskedKey(name="ops", role=Role.admin)).key
        with running.client(**bearer(key)) as http:
            yield Target(running.url, key, [*calls(prepared(http))])
