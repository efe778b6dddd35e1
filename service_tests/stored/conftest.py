"""The archives of earlier versions, opened."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service_tests.stored.earlier import Stored, opened


@pytest.fixture(
    scope="module",
    params=sorted(Path(__file__).parent.glob("version_*.tar.xz")),
    ids=lambda archive: archive.name.removesuffix(".tar.xz"),
)
def archive(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture(scope="module")
def at_rest(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """Without workers, so that unfinished jobs stay unfinished. Tests change nothing there."""
    with opened(archive, tmp_path_factory.mktemp("rest"), workers=0) as stored:
        yield stored


@pytest.fixture(scope="module")
def at_work(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """With a worker, which goes on with unfinished jobs."""
    with opened(archive, tmp_path_factory.mktemp("work"), workers=1) as stored:
        yield stored
