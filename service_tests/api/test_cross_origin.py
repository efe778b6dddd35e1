from collections.abc import Iterator

import httpx
import pytest

from service_tests.cases import each
from service_tests.checks import assert_problem
from service_tests.running import Running, service

PAGE, OTHER = "https://lab.example.org", "https://other.example.org"


@pytest.fixture(scope="module")
def open_to_a_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with service(
        tmp_path_factory.mktemp("origins") / "data",
        *("--allowed-origins", f"{PAGE}, http://localhost:3000", "--require-keys", "true"),
    ) as running:
        yield running


@pytest.fixture(scope="module")
def page(open_to_a_page: Running) -> Iterator[httpx.Client]:
    with open_to_a_page.client(Origin=PAGE) as http:
        yield http


def preflight(http: httpx.Client, origin: str, method: str = "PUT", **headers: str) -> httpx.Response:
    asked = {"Method": method, "Headers": "authorization,content-type,prefer"}
    wanted = {f"Access-Control-Request-{name}": value for name, value in asked.items()}
    return http.options("/v1/maps/m", headers={"Origin": origin, **wanted, **headers})


@pytest.mark.parametrize("origin", [PAGE, "http://localhost:3000"])
def test_a_browser_is_told_what_a_page_may_do_without_a_key(page: httpx.Client, origin: str) -> None:
    answer = preflight(page, origin)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == origin
    assert "PUT" in answer.headers["access-control-allow-methods"]
    allowed = answer.headers["access-control-allow-headers"].lower()
    assert all(name in allowed for name in ("authorization", "content-type", "prefer"))
    assert answer.headers["access-control-max-age"] == "600"
    assert "access-control-allow-credentials" not in answer.headers
    assert "origin" in answer.headers["vary"].lower()
    assert answer.headers["x-request-id"]


def test_a_page_may_read_answers_and_refusals_and_what_their_heads_say(page: httpx.Client) -> None:
    for answer, status in ((page.get("/health/live"), 200), (page.get("/v1/maps"), 401)):
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == PAGE
        exposed = {name.strip() for name in answer.headers["access-control-expose-headers"].split(",")}
        assert exposed >= {"ETag", "Location", "X-Request-ID", "Bochner-Warning", "Retry-After", "Link", "Allow"}
        assert exposed >= {"Preference-Applied", "Content-Disposition", "WWW-Authenticate", "traceparent"}
        assert "Origin" in answer.headers["vary"]


@each("origin", [OTHER, "http://lab.example.org", f"{PAGE}:444", "null", f"{PAGE}.example.com", ""])
def test_other_pages_are_told_nothing(page: httpx.Client, origin: str) -> None:
    for answer in (page.get("/health/live", headers={"Origin": origin}), preflight(page, origin)):
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/plain"}])
def test_what_a_page_may_send_without_asking_is_not_computed(http: httpx.Client, headers: dict[str, str]) -> None:
    for path in ("/v2/repository/index", "/v2/models/none/infer"):
        answer = http.post(path, content=b"{}", headers={"Origin": OTHER, **headers})
        assert answer.status_code == 415, answer.text
    assert http.post("/v2/repository/index", content=b"{}").status_code == 200


@pytest.mark.parametrize("path", ["/", "/docs", "/problems/quota"])
def test_no_page_is_shown_within_another(http: httpx.Client, path: str) -> None:
    answer = http.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_no_page_is_let_in_by_default(http: httpx.Client) -> None:
    for answer in (http.get("/v1/maps", headers={"Origin": PAGE}), preflight(http, PAGE)):
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert_problem(http, answer, 405, "method-not-allowed")
