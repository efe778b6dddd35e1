"""A service that needs no keys: what a key, or a name that is not its own, does there."""

import httpx

from app.services.keys import AskedKey
from app.store.keys import Role
from service_tests.cases import each
from service_tests.checks import assert_problem, put
from service_tests.connections.wire import first_answer
from service_tests.keyed import assert_unauthorized, bearer, made
from service_tests.running import Running


def test_without_keys_a_key_is_heeded_all_the_same(running: Running) -> None:
    text = made(running.socket, AskedKey(name="k", role=Role.read)).key
    with running.client(**bearer(text)) as client:
        assert client.get("/v1/maps").status_code == 200
        assert_problem(client, put(client, "m", {}), 403, "forbidden")
        assert_unauthorized(client.get("/v1/maps", headers=bearer(text[:-1] + "_")))


def test_keys_are_not_made_without_a_key_even_where_none_is_needed(http: httpx.Client) -> None:
    assert_unauthorized(http.post("/v1/keys", json={"name": "mine", "role": "admin"}))
    assert_unauthorized(http.get("/v1/keys"))
    assert_unauthorized(http.delete("/v1/keys/" + "0" * 16))


@each("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
@each(("method", "path"), [("GET", "/v1/maps"), ("POST", "/v1/maps/m/transform"), ("GET", "/docs")])
def test_without_keys_a_page_that_leads_its_name_here_reads_nothing(
    http: httpx.Client, method: str, path: str, host: str
) -> None:
    answer = http.request(method, path, headers={"Host": host})
    problem = assert_problem(http, answer, 421, "misdirected")
    assert "BOCHNER_ALLOWED_HOSTS" in problem["detail"]


def test_a_request_with_two_hosts_is_refused(running: Running) -> None:
    both = b"GET /v1/maps HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n"
    assert first_answer(running, both).startswith(b"HTTP/1.1 400")
