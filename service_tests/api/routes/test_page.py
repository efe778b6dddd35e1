"""The page at /: for who asks for HTML by name. It is harmless without a key, and brings all it needs with it."""

import re
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

import app.api
from service_tests.cases import each
from service_tests.checks import assert_problem
from service_tests.keyed import assert_unauthorized
from service_tests.running import service

STATIC = Path(app.api.__file__).parent / "static"
MOST_BYTES = 300_000
LOADED = re.compile(r"""(?:src|href)="([^"]+)\"""")
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture(scope="module")
def page(http: httpx.Client) -> httpx.Response:
    return http.get("/", headers=BROWSER)


@pytest.fixture(scope="module")
def assets(http: httpx.Client, page: httpx.Response) -> dict[str, httpx.Response]:
    """All that the page loads, and what that loads in turn, by name."""
    found: dict[str, httpx.Response] = {}
    left = [urljoin("/", link) for link in LOADED.findall(page.text) if link != "docs"]
    while left:
        address = left.pop()
        answer = found[address] = http.get(address)
        assert answer.status_code == 200, address
        imported = re.findall(r"""from "(\./[^"]+)";""", answer.text)
        left += [one for one in (urljoin(address, name) for name in imported) if one not in found]
    return {address.split("/", 3)[3]: answer for address, answer in found.items()}


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


def test_all_that_it_loads_is_there_small_and_may_be_kept(assets: dict[str, httpx.Response]) -> None:
    shipped = {
        path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.suffix in (".js", ".css", ".svg")
    }
    assert set(assets) == shipped
    assert sum(len(answer.content) for answer in assets.values()) < MOST_BYTES
    types = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    for name, answer in assets.items():
        assert answer.headers["content-type"].partition(";")[0] == types[name.rpartition(".")[2]]
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_it_asks_no_other_host(assets: dict[str, httpx.Response]) -> None:
    for name, answer in assets.items():
        ours = re.sub(r"http://www\.w3\.org/[^\"'\s]*", "", answer.text)
        links = re.findall(r"""(?<!// )(?<!: )https?://[^"'\s)]+""", ours)
        assert [link for link in links if "numpy.org" not in link and "preactjs.com" not in link] == [], name


@each("path", ["/page/0/main.js", "/page/{}/index.html", "/page/{}/../main.js"])
def test_there_is_nothing_else(http: httpx.Client, page: httpx.Response, path: str) -> None:
    version = re.findall(r"page/(\w+)/main\.js", page.text)[0]
    assert_problem(http, http.get(path.format(version)), 404, "not-found")


@pytest.mark.nightly
def test_without_a_key_there_is_the_page_and_no_data(tmp_path: Path) -> None:
    with service(tmp_path / "data", "--require-keys", "true") as running, running.client() as stranger:
        page = stranger.get("/", headers=BROWSER)
        assert page.status_code == 200
        for address in LOADED.findall(page.text):
            if address != "docs":
                assert stranger.get(f"/{address}").status_code == 200
        for path in ("/", "/v1/maps", "/v1/info", "/docs", "/page", "/pages/x", "//"):
            assert_unauthorized(stranger.get(path))
        assert_unauthorized(stranger.post("/", headers=BROWSER))
        assert_unauthorized(stranger.put("/page/0/main.js"))
