"""The page /docs works without internet: all that it loads comes from the service."""

import re
import time
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

from service_tests.costs import waits
from service_tests.running import service

LOADED = re.compile(r"""(?:src|href)="([^"]+)"|url: '([^']+)'""")
OTHER_HOST = re.compile(r"^(?:[a-z]+:)?//")


@pytest.fixture
def loaded(http: httpx.Client) -> list[str]:
    """The addresses of what the page loads: its script, styles and icon, and the OpenAPI document."""
    page = http.get("/docs")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    return [link or document for link, document in LOADED.findall(page.text)]


def test_it_loads_nothing_from_another_host(http: httpx.Client, loaded: list[str]) -> None:
    assert len(loaded) == 4
    assert not [address for address in loaded if OTHER_HOST.match(address)]
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", http.get("/docs").text, re.DOTALL)
    assert not re.search(r"https?://", "".join(scripts))


def test_the_styles_load_nothing_from_another_host(http: httpx.Client, loaded: list[str]) -> None:
    styles = http.get(urljoin("/docs", next(address for address in loaded if address.endswith(".css")))).text
    assert "@import" not in styles
    outside = [
        address for address in re.findall(r"url\(([^)]*)\)", styles) if not address.strip("\"'").startswith("data:")
    ]
    assert not outside


def test_all_that_it_loads_is_there_and_may_be_kept(http: httpx.Client, loaded: list[str]) -> None:
    types = {}
    for address in loaded:
        answer = http.get(urljoin("/docs", address))
        assert answer.status_code == 200, address
        types[address.rpartition(".")[2]] = answer.headers["content-type"].partition(";")[0]
        if address != "openapi.json":
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert re.search(r"/docs/\d[\d.]*/", answer.url.path), "its address changes with its version"
    assert types == {
        "js": "text/javascript",
        "css": "text/css",
        "png": "image/png",
        "json": "application/json",
    }


@pytest.mark.parametrize("path", ["/docs/0.0.1/swagger-ui.css", "/docs/1/..%2f__init__.py", "/redoc", "/docs/1"])
def test_there_is_nothing_else(http: httpx.Client, path: str) -> None:
    answer = http.get(path)
    assert answer.status_code == 404
    assert answer.json()["type"] == "/problems/not-found"


@pytest.mark.nightly
def test_nobody_waits_while_the_document_is_written(tmp_path: Path) -> None:
    """It is written when somebody asks for the first time."""
    with service(tmp_path / "data") as running, running.client() as client, waits(running) as longest:
        began = time.monotonic()
        client.get("/openapi.json").raise_for_status()
        took = time.monotonic() - began
    assert max(longest) < took / 2
