from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from service_tests.checks import JSON, NPY, RESPOND_ASYNC, assert_problem, put, put_dataset
from service_tests.running import Running

ROWS = [[1, -2.5, 3], [4, 0, 3]]


def get(http: httpx.Client, path: str, known: str = "", **headers: str) -> httpx.Response:
    return http.get(path, headers={**headers, **({"If-None-Match": known} if known else {})})


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/maps/standing-phase", "/v1/maps/standing-phase/frequencies", "/v1/maps/standing-phase/weights"),
        *("/v1/maps/standing-phase/offsets", "/v1/maps/standing-phase/export?format=npz"),
        *("/v1/maps/standing-phase/export?format=onnx", "/v1/datasets/etags", "/v1/catalog", "/openapi.json"),
    ],
)
@pytest.mark.usefixtures("standing")
def test_who_has_what_would_be_sent_is_not_sent_it_again(http: httpx.Client, path: str) -> None:
    put_dataset(http, "etags", ROWS)
    first = http.get(path)
    tag = first.headers["etag"]
    assert tag.startswith('"')
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*", f'"a", W/"b",{tag}'):
        again = get(http, path, known)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag), known
        assert set(first.headers.get("vary", "").split(", ")) - {""} <= set(again.headers["vary"].split(", "))
    for other in ('"other"', tag.strip('"'), f'"x{tag[1:]}', '""'):
        again = get(http, path, other)
        assert (again.status_code, again.content) == (200, first.content), other
    head = http.head(path, headers={"If-None-Match": tag})
    assert (head.status_code, head.headers["etag"]) == (304, tag)
    assert http.head(path).headers["etag"] == tag


def test_each_form_of_an_array_has_an_etag_of_its_own(http: httpx.Client, standing: dict[str, str]) -> None:
    tags: set[str] = set()
    for name in ("float64", "phase"):
        for array in ("frequencies", "weights"):
            for accept in (JSON, NPY, f"{NPY}; dtype=float16"):
                answer = get(http, f"/v1/maps/{standing[name]}/{array}", Accept=accept)
                assert answer.headers["etag"] not in tags
                tags.add(answer.headers["etag"])
                other = NPY if accept == JSON else JSON
                assert get(http, f"/v1/maps/{standing[name]}/{array}", answer.headers["etag"], Accept=other).content


MISSES = ('"other"', 'W/"other"', "", "sha256:0", '"*"', "W/{tag}", "{bare}")


@pytest.mark.parametrize("kind", ["maps", "datasets"])
@pytest.mark.parametrize("match", MISSES)
def test_what_has_another_etag_is_not_deleted(
    http: httpx.Client, name: str, gaussian: Any, kind: str, match: str
) -> None:
    put(http, name, gaussian)
    put_dataset(http, name, ROWS)
    path = f"/v1/{kind}/{name}"
    tag = http.get(path).headers["etag"]
    refused = http.delete(path, headers={"If-Match": match.format(tag=tag, bare=tag.strip('"'))})
    problem = assert_problem(http, refused, 412, "precondition-failed")
    assert tag in problem["detail"]
    assert http.get(path).headers["etag"] == tag
    deleted = http.delete(path, headers={"If-Match": f'"other", {tag}'})
    assert deleted.status_code == 204
    gone = http.delete(path, headers={"If-Match": tag})
    assert gone.status_code == 404


@pytest.mark.parametrize("kind", ["maps", "datasets"])
def test_a_put_changes_what_the_client_means_or_nothing(
    http: httpx.Client, name: str, gaussian: Any, kind: str
) -> None:
    path, body = f"/v1/{kind}/{name}", gaussian if kind == "maps" else {"vectors": ROWS}

    def send(ttl: int, **headers: str) -> httpx.Response:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return http.put(path, json=body, params={"ttl": ttl}, headers=named)

    for match in ("*", '"other"'):
        assert_problem(http, send(1000, If_Match=match), 412, "precondition-failed")
    assert http.get(path).status_code == 404
    made = send(1000, If_None_Match="*")
    assert made.status_code == 201
    tag, record = made.headers["etag"], http.get(path).json()
    for headers in ({"If_Match": '"other"'}, {"If_Match": ""}, {"If_None_Match": "*"}, {"If_None_Match": tag}):
        assert_problem(http, send(5000, **headers), 412, "precondition-failed")
        assert http.get(path).json() == record
    for headers in ({"If_Match": tag}, {"If_Match": "*"}, {"If_None_Match": '"other"'}):
        again = send(5000, **headers)
        assert (again.status_code, again.headers["etag"]) == (200, tag)
        assert http.get(path).json()["expires_at"] > record["expires_at"]


def test_a_map_under_construction_has_no_etag_to_match(jobs_service: Running, name: str, gaussian: Any) -> None:
    with jobs_service.client() as http:
        spec = gaussian | {"sampler": {"kind": "monte_carlo"}, "s": 400}
        taken = http.put(f"/v1/maps/{name}", json=spec, headers=RESPOND_ASYNC)
        assert taken.status_code == 202
        assert "etag" not in taken.headers
        for match in ('"sha256:0"', '""'):
            refused = http.delete(f"/v1/maps/{name}", headers={"If-Match": match})
            assert "no ETag yet" in assert_problem(http, refused, 412, "precondition-failed")["detail"]
        assert http.get(taken.json()["job"]).json()["state"] in ("queued", "running")
        assert http.delete(f"/v1/maps/{name}", headers={"If-Match": "*"}).status_code == 204


def test_a_map_that_another_request_makes_meanwhile_is_left_as_it_is(http: httpx.Client) -> None:
    """Of two requests at once, the one with the condition may come second at any point of the other's work."""
    spec = {"input_dim": 300, "s": 300, "kernel": {"kind": "gaussian", "length_scale": 1.0}}
    for seed in range(10):
        path, body = f"/v1/maps/meanwhile-{seed}", spec | {"sampler": {"kind": "orthogonal"}, "seed": seed}
        with ThreadPoolExecutor() as pool:
            plain = pool.submit(http.put, path, json=body)
            first = pool.submit(http.put, path, json=body, params={"ttl": 2000}, headers={"If-None-Match": "*"})
        assert plain.result().status_code in (200, 201)
        if first.result().status_code == 412 or plain.result().status_code == 200:
            assert http.get(path).json()["ttl"] is None
