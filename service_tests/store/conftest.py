"""The data directory of an embedded store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store import server
from service_tests.store.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    here = Site(tmp_path)
    yield here
    here.clean()


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE_SECONDS", 3.0)
