"""A service with a worker, a browser, and a page that must not have done anything amiss when its test ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.checks import put, put_dataset
from service_tests.running import Running, service

LETTERS = Path(__file__).parents[2] / "examples" / "letters.npy"
GAUSSIAN = {"kind": "gaussian", "length_scale": 5.0}
MAPS: dict[str, dict[str, Any]] = {
    "letters": {"sampler": {"kind": "halton"}, "s": 256},
    "letters-sobol": {"sampler": {"kind": "sobol"}, "s": 300},
    "letters-gmm": {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 256},
    "letters-weighted": {"sampler": {"kind": "weighted", "box": 4.0}, "s": 64},
}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with some maps and a dataset."""
    with service(tmp_path_factory.mktemp("page") / "data", "--job-workers", "1") as running:
        with running.client(Prefer="wait=30") as http:
            fill(http)
        yield running


def fill(http: httpx.Client) -> None:
    """Put the maps and the dataset."""
    for name, spec in MAPS.items():
        assert put(http, name, {"input_dim": 16, "kernel": GAUSSIAN, "seed": 7} | spec).status_code == 201
    assert put_dataset(http, "letters", np.load(LETTERS)[:500]).status_code == 201


@pytest.fixture(scope="package")  # no longer: while it is there, no other event loop can run in its thread
def chromium() -> Iterator[Any]:
    """A browser that is started once."""
    pytest.importorskip("playwright.sync_api", reason="the extra clients has it")
    from service_tests.browser import browsing

    if browsing.CHROMIUM is None:
        pytest.skip("there is no chromium: Debian has it")
    with browsing.browser() as started:
        yield started


@pytest.fixture
def page(site: Running, chromium: Any) -> Iterator[Any]:
    """The page in an empty window."""
    from service_tests.browser.browsing import host, watched

    with watched(chromium, site.url) as seen:
        seen.page.goto("/")
        yield seen.page
        seen.check(host(site.url))
