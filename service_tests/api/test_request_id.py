"""The id of a request, in answers and problems."""

import httpx
import pytest

from service_tests.cases import each
from service_tests.checks import assert_problem


@pytest.mark.parametrize("path", ["/health/live", "/v1/maps/no-such-map", "/nothing"])
def test_a_request_keeps_the_id_it_came_with(http: httpx.Client, path: str) -> None:
    for request_id in ("a", "0f-2.B_c:/+=@x", "x" * 128):
        answer = http.get(path, headers={"X-Request-ID": request_id})
        assert answer.headers["x-request-id"] == request_id
        if answer.status_code != 200:
            assert assert_problem(http, answer, 404, answer.json()["type"].rpartition("/")[2])["instance"] == request_id


def test_a_request_without_an_id_gets_one_of_its_own(http: httpx.Client) -> None:
    ids = {http.get("/health/live").headers["x-request-id"] for _ in range(20)}
    assert len(ids) == 20
    assert all(len(request_id) >= 16 for request_id in ids)


@each("unsafe", ["", "x" * 129, "a b", "a\tb", '"quoted"', "<b>", "a;b", "a,b", "caf\xe9", "%0a", "{}"])
def test_an_unsafe_id_is_replaced(http: httpx.Client, unsafe: str) -> None:
    answer = http.get("/v1/maps/no-such-map", headers={b"X-Request-ID": unsafe.encode("latin1")})
    assert answer.headers["x-request-id"] != unsafe
    assert_problem(http, answer, 404, "map-not-found")
