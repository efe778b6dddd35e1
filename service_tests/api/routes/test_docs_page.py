"""The page /docs works without internet: all that it loads comes from the service."""

import re
from urllib.parse import urljoin

import httpx
import pytest

LOADED = re.compile(r"""(?:src|href)="([^"]+)"|url: '([^']+)'""")
OTHER_HOST = re.compile(r"^(?:[a-z]+:)?//")


@pytest.mark.parametrize("path", ["/docs/0.0.1/swagger-ui.css", "/docs/1/..%2f__init__.py", "/redoc", "/docs/1"])
def test_there_is_nothing_else(http: httpx.Client, path: str) -> None:
    answer = http.get(path)
    assert answer.status_code == 404
    assert answer.json()["type"] == "/problems/not-found"


def test_all_that_it_loads_comes_from_the_service_and_may_be_kept(http: httpx.Client) -> None:
    page = http.get("/docs")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert not re.search(r"https?://", "".join(re.findall(r"<script[^>]*>(.*?)</script>", page.text, re.DOTALL)))
    types = {}
    for address in (link or document for link, document in LOADED.findall(page.text)):
        assert not OTHER_HOST.match(address)
        answer = http.get(urljoin("/docs", address))
        assert answer.status_code == 200, address
        types[address.rpartition(".")[2]] = answer.headers["content-type"].partition(";")[0]
        if address != "openapi.json":
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert types == {"js": "text/javascript", "css": "text/css", "png": "image/png", "json": "application/json"}
