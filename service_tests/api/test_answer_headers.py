import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from service_tests.checks import OF_ANY, put

NAME = "documented"
SPEC = {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "sobol"}, "s": 8}
ROWS = {"vectors": [[1, 2, 3], [4, 5, 6]]}
FAR = {"vectors": [[1e9, 2, 3]]}
NOTHING_MORE: set[str] = set()


@pytest.fixture(scope="module")
def there(http: httpx.Client) -> Iterator[dict[str, str]]:
    """What the addresses below name."""
    made = {"name": NAME, "kind": "gram"}
    digest = put(http, NAME, SPEC).headers["etag"]
    dataset = http.put(f"/v1/datasets/{NAME}", json=ROWS)
    assert dataset.status_code == 201
    job = http.post(f"/v1/maps/{NAME}/diagnostics/gram", json=ROWS, headers={"Prefer": "respond-async"})
    made |= {"digest": digest, "id": job.json()["id"]}
    events = http.get(f"/v1/jobs/{made['id']}/events")  # until it has ended
    assert "succeeded" in events.text
    yield made
    http.delete(f"/v1/maps/{NAME}")
    http.delete(f"/v1/datasets/{NAME}")


@pytest.fixture(scope="module")
def document(http: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = http.get("/openapi.json").json()
    return found


PREFERRED = {"Preference-Applied", "Vary"}
FREQUENCIES = "/v1/maps/{name}/frequencies"
TRANSFORM, DIAGNOSE = "/v1/maps/{name}/transform", "/v1/maps/{name}/diagnostics/{kind}"


@pytest.mark.parametrize(
    ("method", "path", "body", "sent", "status", "headers"),
    [
        ("PUT", "/v1/maps/{name}", SPEC, {}, 200, {"ETag", *PREFERRED}),
        ("PUT", "/v1/maps/new", SPEC, {}, 201, {"ETag", "Location", *PREFERRED}),
        ("PUT", "/v1/maps/{name}", SPEC | {"seed": 1}, {}, 409, NOTHING_MORE),
        ("GET", "/v1/maps/{name}", None, {"If-None-Match": "{digest}"}, 304, {"ETag", "Vary"}),
        ("POST", TRANSFORM, ROWS, {}, 200, {"Vary"}),
        ("POST", TRANSFORM, FAR, {}, 200, {"Bochner-Warning", "Vary"}),
        ("POST", DIAGNOSE, ROWS, {"Prefer": "respond-async"}, 202, {"Location", "Link", *PREFERRED}),
        ("PUT", "/v1/datasets/new", ROWS, {"If-None-Match": "*"}, 201, {"ETag", "Location"}),
        ("DELETE", "/v1/datasets/{name}", None, {"If-Match": '"other"'}, 412, NOTHING_MORE),
        ("GET", "/v1/jobs/{id}/result", None, {}, 200, {"Vary"}),
        ("GET", "/v1/jobs/{id}/events", None, {}, 200, {"X-Accel-Buffering"}),
        ("GET", "/v1/keys", None, {}, 401, {"WWW-Authenticate"}),
    ],
)
def test_an_answer_has_the_headers_that_the_document_says(
    http: httpx.Client,
    there: dict[str, str],
    document: dict[str, Any],
    method: str,
    path: str,
    body: dict[str, Any] | None,
    sent: dict[str, str],
    status: int,
    headers: set[str],
) -> None:
    sent = {name: value.format(**there) for name, value in sent.items()}
    answer = http.request(method, path.format(**there), json=body, headers=sent)
    assert answer.status_code == status, answer.text
    if path.endswith("/new"):
        http.delete(path)
    came = set(answer.headers) - OF_ANY
    kept = {"Cache-Control"} if method == "GET" else NOTHING_MORE
    assert came == {name.lower() for name in headers | kept | {"X-Request-ID"}}
    operation = document["paths"][path.replace("/new", "/{name}")].get(method.lower())
    if operation is None:  # 405
        operation = document["paths"][path]["get"]
    described = operation["responses"].get(str(status), operation["responses"]["default"])["headers"]
    assert came <= {name.lower() for name in described}
    if sent.keys() & {"If-None-Match", "If-Match", "Prefer"}:
        taken = {one["name"] for one in operation["parameters"] if one["in"] == "header"}
        assert sent.keys() <= taken


def test_an_answer_that_is_no_problem_has_no_headers_but_its_own(document: dict[str, Any]) -> None:
    described = document["paths"]["/v1/datasets/{name}"]["put"]["responses"]
    assert set(described["200"]["headers"]) == {"X-Request-ID", "ETag"}
    assert set(described["201"]["headers"]) == {"X-Request-ID", "ETag", "Location"}
    assert set(described["default"]["headers"]) == {"X-Request-ID", "Retry-After", "WWW-Authenticate", "Allow"}


def test_caches_ask_again_before_they_use_what_they_have_kept(http: httpx.Client, there: dict[str, str]) -> None:
    """A name may stand for another map by now, and what one key may see is not for who has none."""
    for path in ("/v1/maps/{name}", "/v1/maps", FREQUENCIES, "/v1/maps/none", "/v1/catalog", "/v1/jobs/{id}/result"):
        for method in ("GET", "HEAD"):
            assert http.request(method, path.format(**there)).headers["cache-control"] == "no-cache"
    assert http.get("/v1/maps", headers={"Host": "other.example.org"}).headers["cache-control"] == "no-cache"  # 421
    assert http.get(f"/v1/jobs/{there['id']}/events").headers["cache-control"] == "no-store"
    page = http.get("/", headers={"Accept": "text/html"})
    assert page.headers["cache-control"] == "no-cache"
    script = re.search(r'(?:src|href)="([^"]*[.](?:js|css))"', page.text)
    assert script is not None
    assert http.get(f"/{script[1]}").headers["cache-control"].endswith("immutable")
