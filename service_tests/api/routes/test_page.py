"""The page at /: for who asks for HTML by name. It brings all it needs with it."""

import re
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

import app.api
from service_tests.cases import each
from service_tests.checks import assert_problem

STATIC = Path(app.api.__file__).parent / "static"
MOST_BYTES = 300_000
LOADED = re.compile(r"""(?:src|href)="([^"]+)\"""")
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture(scope="module")
def page(http: httpx.Client) -> httpx.Response:
    return http.get("/", headers=BROWSER)


def test_a_browser_gets_the_page(page: httpx.Response) -> None:
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    assert page.headers["vary"] == "Accept"


@each("accept", ["*/*", "application/json"])
def test_all_others_find_nothing_there_as_ever(http: httpx.Client, accept: str) -> None:
    assert_problem(http, http.get("/", headers={"Accept": accept}), 404, "not-found")


def test_only_scripts_of_files_run_and_nobody_else_is_asked(page: httpx.Response) -> None:
    policy = dict(one.strip().partition(" ")[::2] for one in page.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["form-action"] == "'none'"
    assert "unsafe" not in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in page.headers
    assert not re.search(r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=", page.text)


def test_all_that_it_loads_is_there_small_and_may_be_kept(http: httpx.Client, page: httpx.Response) -> None:
    assets: dict[str, httpx.Response] = {}
    left = [urljoin("/", link) for link in LOADED.findall(page.text) if link != "docs"]
    while left:
        address = left.pop()
        answer = assets[address] = http.get(address)
        assert answer.status_code == 200, address
        assert answer.headers["content-type"].partition(";")[0] == TYPES[address.rpartition(".")[2]]
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["x-content-type-options"] == "nosniff"
        imported = re.findall(r"""from "(\./[^"]+)";""", answer.text)
        left += [one for one in (urljoin(address, name) for name in imported) if one not in assets]
    shipped = {path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.suffix[1:] in TYPES}
    assert {address.split("/", 3)[3] for address in assets} == shipped
    assert sum(len(answer.content) for answer in assets.values()) < MOST_BYTES


@each("path", ["/page/0/main.js", "/page/{}/index.html", "/page/{}/../main.js"])
def test_there_is_nothing_else(http: httpx.Client, page: httpx.Response, path: str) -> None:
    version = re.findall(r"page/(\w+)/main\.js", page.text)[0]
    assert_problem(http, http.get(path.format(version)), 404, "not-found")


TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
