"""Who is let in: every way into the service asks for a key, for a role, and for a name that is its own."""

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from app.api.access import ROLES
from app.store.keys import Role
from service_tests.api.operations import OPERATIONS
from service_tests.cases import each
from service_tests.checks import JSON, assert_problem, put
from service_tests.connections.wire import first_answer
from service_tests.keyed import Keyed, assert_unauthorized, bearer, keyed, secret_of
from service_tests.running import Running, service

FILLED = {"{name}": "m", "{kind}": "variance", "{slug}": "forbidden", "{id}": "0" * 24}
ROWS = {"vectors": [[1, 2, 3]]}


def address(path: str) -> str:
    for parameter, value in FILLED.items():
        path = path.replace(parameter, value)
    return path


CALLS = {operation: (method, address(path)) for operation, (method, path) in OPERATIONS.items()}
GUARDED = {operation: call for operation, call in CALLS.items() if ROLES[operation] is not None}
OTHERS = [
    *(
        ("GET", path)
        for path in ("/", "/docs", "/docs/1/x.js", "/openapi.json", "/metrics", "/nothing", "/v2", "//", "*")
    ),
    *(
        ("GET", path)
        for path in ("/health", "/health/", "/health/live/", "/health/live/x", "/health/../v1/maps", "/Health/live")
    ),
    *((method, "/v1/maps/m") for method in ("HEAD", "OPTIONS", "PATCH", "TRACE", "POST")),
    *(("HEAD", path) for path in ("/docs", "/openapi.json", "/v1/jobs/" + "0" * 24 + "/events")),
    *(("POST", path) for path in ("/v1/maps/none/transform", "/v1/maps/none/codes?bits=3", "/v1/maps/-/transform")),
    ("PUT", "/v1/maps/not%20a%20name"),
]
SPELLINGS = [
    *("//v1/maps", "/v1//maps", "/./v1/maps", "/v1/maps%00", "/v1/maps?/health/live", "/V1/MAPS", "*", "here:80"),
    *("/health/live/../../v1/maps", "/health/live/%2e%2e/%2e%2e/v1/maps", "/health/live%2f..%2f..%2fv1%2fmaps"),
    *("/health%2f/live", "/HEALTH/LIVE", "/health/live;/v1/maps", "//here/v1/maps", "?/health/live"),
    *("http://here/v1/maps", "http://x@here/v1/keys", "http://here/health/live/../../v1/keys", "http://other/v1/maps"),
]
NAMES = [
    "GET /v1/maps/{}",
    "GET /v1/maps/{}/weights",
    "POST /v1/maps/{}/transform",
    "DELETE /v1/maps/{}",
    "PUT /v1/maps/{}",
]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, module_spec: dict[str, Any]) -> Iterator[Keyed]:
    with service(tmp_path_factory.mktemp("keyed") / "data", "--require-keys", "true") as running:
        made_here = keyed(running)
        with made_here.client(Role.write) as client:
            assert put(client, "m", module_spec).status_code == 201
        yield made_here


@pytest.fixture(scope="module")
def module_spec() -> dict[str, Any]:
    kernel, sampler = {"kind": "gaussian", "length_scale": 1.5}, {"kind": "sobol"}
    return {"input_dim": 3, "kernel": kernel, "sampler": sampler, "s": 16}


@pytest.fixture(scope="module")
def stranger(here: Keyed) -> Iterator[httpx.Client]:
    with here.running.client() as client:
        yield client


def asked(client: httpx.Client, method: str, path: str, **options: Any) -> httpx.Response:
    return client.request(method, path, content=b"{}" if method in ("PUT", "POST") else None, **options)


@pytest.mark.parametrize(("method", "path"), [*GUARDED.values(), *OTHERS], ids=lambda part: part)
def test_nothing_is_told_without_a_key(stranger: httpx.Client, method: str, path: str) -> None:
    wrong = "bochner_" + "0" * 16 + "_" + "a" * 43
    for headers in ({}, bearer(wrong), bearer("nonsense"), {"Authorization": "Basic eDp5"}):
        answer = asked(stranger, method, path, headers={"Content-Type": JSON, **headers})
        assert_unauthorized(answer, method == "HEAD")


@each("method", ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "get"])
def test_no_other_spelling_of_an_address_needs_no_key(here: Keyed, method: str) -> None:
    for spelled in SPELLINGS:
        came = first_answer(here.running, f"{method} {spelled} HTTP/1.1\r\nHost: here\r\n".encode())
        assert came[9:12] in (b"401", b"400"), (spelled, came)


@pytest.mark.parametrize("call", NAMES)
def test_a_stranger_cannot_tell_a_name_that_exists_from_one_that_does_not(stranger: httpx.Client, call: str) -> None:
    method, path = call.split()
    told = []
    for name in ("m", "none"):
        answer = asked(stranger, method, path.format(name), headers={"X-Request-ID": "same"})
        headers = {header: value for header, value in answer.headers.items() if header != "date"}
        told.append((answer.status_code, headers, answer.content))
    assert told[0] == told[1]


@each("role", Role)
@each("operation", GUARDED)
def test_a_role_does_what_it_may_and_no_more(here: Keyed, operation: str, role: Role) -> None:
    method, path = GUARDED[operation]
    needed = ROLES[operation]
    assert needed is not None
    if method == "DELETE" and role.includes(needed):
        path = path.replace("/m", "/another")
    with here.client(role) as client:
        answer = asked(client, method, path, headers={"Content-Type": JSON})
        if role.includes(needed):
            assert answer.status_code not in (401, 403, 500), answer.text
        elif path.startswith("/v2"):  # whose protocol has errors of its own
            assert (answer.status_code, f"expected role {needed}" in answer.json()["error"]) == (403, True)
        else:
            problem = assert_problem(client, answer, 403, "forbidden")
            assert problem["detail"] == f"expected role {needed}, got key 'the-{role}' with role {role}"


def test_health_needs_no_key_and_no_name(stranger: httpx.Client) -> None:
    for path in ("/health/live", "/health/ready"):
        for host in ("10.1.2.3:8000", "anything.example", ""):
            assert stranger.get(path, headers={"Host": host}).status_code == 200
        assert stranger.head(path).status_code == 200
        assert stranger.post(path).status_code == 405


def status(running: Running, *headers: bytes) -> int:
    head = b"\r\n".join([b"GET /v1/maps HTTP/1.1", b"Host: x", *headers, b""])
    return int(first_answer(running, head).split()[1])


def test_a_key_counts_only_as_it_is_sent_in_order(here: Keyed) -> None:
    key = here.texts[Role.read].encode()
    for good in (b"Bearer %s", b"bearer %s", b"BEARER %s", b"Bearer   %s", b" Bearer %s  "):
        assert status(here.running, b"Authorization: " + good % key) == 200, good
    assert status(here.running, b"aUTHORIZATION: Bearer " + key) == 200
    for bad in (
        *(b"Bearer", b"Bearer ", b"%s", b"Token %s", b"Bearer%s", b"Bearer %s x", b"Bearer x %s", b"Bearer, Bearer %s"),
        *(b'Bearer "%s"', b"Bearer %s,", b"Bearer %s\xff", b"Bearer \xe2\x80\x8b%s", b"Bearer key=%s", b"Digest %s"),
        *(b"Bearer\t%s", b"Bearer %s=", b"Bearer x%s", b"Basic %s", b"Basic !!!!", b"Basic " + b"A" * 5),
    ):
        assert status(here.running, b"Authorization: " + (bad % key if b"%s" in bad else bad)) == 401, bad
    assert status(here.running, b"Authorization: Bearer " + key.upper()) == 401
    assert status(here.running, b"Authorization: Bearer " + key[:-1]) == 401
    twice = (b"Authorization: Bearer " + key,) * 2
    assert status(here.running, *twice) == 401
    assert status(here.running, b"Authorization: Bearer x", twice[0]) == 401
    for other in (
        b"Proxy-Authorization: Bearer %s",
        b"X-API-Key: %s",
        b"Cookie: key=%s",
        b"X-Authorization: Bearer %s",
    ):
        assert status(here.running, other % key) == 401
    assert status(here.running, b"Authorization: Bearer " + b"a" * 60000) == 401


def test_a_browser_is_asked_for_the_key_as_a_password_and_may_look(here: Keyed, stranger: httpx.Client) -> None:
    page = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    asks = stranger.get("/docs", headers=page)
    assert asks.headers.get_list("www-authenticate") == [
        'Bearer realm="bochner"',
        'Basic realm="bochner", charset="UTF-8"',
    ]
    assert stranger.get("/docs").headers.get_list("www-authenticate") == ['Bearer realm="bochner"']
    given = basic("anybody", here.texts[Role.read])
    assert "swagger" in stranger.get("/docs", headers={**page, **given}).text
    assert stranger.get("/openapi.json", headers=given).status_code == 200
    assert stranger.get("/v1/maps/m", headers=given).status_code == 200
    assert_unauthorized(stranger.get("/docs", headers=basic(here.texts[Role.read], "")))
    assert_unauthorized(stranger.get("/docs", headers=basic("", "x")))


def test_what_a_browser_sends_by_itself_changes_nothing(here: Keyed, stranger: httpx.Client) -> None:
    given = basic("anybody", here.texts[Role.admin])
    for method, path in CALLS.values():
        if method not in ("GET", "HEAD"):
            assert_unauthorized(asked(stranger, method, path, headers={"Content-Type": JSON, **given}))


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def test_no_log_and_no_answer_has_a_key(here: Keyed) -> None:
    texts = [*here.texts.values(), here.make(Role.write).key]
    told = []
    for text in texts:
        with here.running.client(**bearer(text)) as client:
            told += [client.get(path).text for path in ("/v1/info", "/v1/keys", "/nothing", "/openapi.json")]
            told += [
                client.get(f"/{text}?key={text}").text,
                client.get(f"/v1/maps?{text}").text,
                client.put("/v1/maps/m", json={}).text,
                client.post("/v1/keys", json={"name": 1}).text,
            ]
    log = next(here.running.data_dir.parent.glob("*.log")).read_text()
    assert "GET /v1/info" in log
    for text in texts:
        secret = secret_of(text)
        assert secret not in log
        assert all(secret not in one for one in told)
