import gzip
import io
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from app.api.codings import zstd
from service_tests.cases import each
from service_tests.checks import JSON, NPY, npy, post, put

UNPACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.decompress, "zstd": zstd.decompress}
ROWS = np.random.default_rng(1).random((200, 3))


def sent(http: httpx.Client, method: str, path: str, coding: str = "", **asked: Any) -> tuple[httpx.Response, bytes]:
    """An answer, and its body as it was sent."""
    headers = {**asked.pop("headers", {}), "Accept-Encoding": coding}
    with http.stream(method, path, headers=headers, **asked) as answer:
        return answer, b"".join(answer.iter_raw())


@each("coding", UNPACK)
@each("path", ["/openapi.json", "/v1/catalog", "/docs", "/v1/maps/standing-phase/frequencies"])
@pytest.mark.usefixtures("standing")
def test_what_gets_shorter_is_sent_packed(http: httpx.Client, coding: str, path: str) -> None:
    plain, whole = sent(http, "GET", path)
    packed, short = sent(http, "GET", path, coding)
    if len(whole) < 1024:
        assert "content-encoding" not in packed.headers
        return
    assert packed.headers["content-encoding"] == coding
    assert "content-length" not in packed.headers
    assert UNPACK[coding](short) == whole
    assert len(short) < 0.7 * len(whole)
    for answer in (plain, packed):
        assert "accept-encoding" in answer.headers["vary"].lower()
    assert "content-encoding" not in plain.headers
    if "etag" in plain.headers:
        assert packed.headers["etag"] == f'{plain.headers["etag"][:-1]}-{coding}"'


@pytest.mark.parametrize("coding", UNPACK)
def test_a_large_answer_is_packed_while_it_is_made(http: httpx.Client, standing: dict[str, str], coding: str) -> None:
    path = f"/v1/maps/{standing['wide']}/transform"
    asked: dict[str, Any] = {"content": npy(ROWS), "headers": {"Content-Type": NPY, "Accept": JSON}}
    _, whole = sent(http, "POST", path, **asked)
    packed, short = sent(http, "POST", path, coding, **asked)
    assert packed.headers["content-encoding"] == coding
    assert UNPACK[coding](short) == whole
    assert len(short) < 0.6 * len(whole)
    assert len(json.loads(whole)["features"]) == len(ROWS)


@pytest.mark.parametrize("coding", UNPACK)
def test_numbers_without_a_pattern_are_sent_as_they_are_and_codes_packed(
    http: httpx.Client, standing: dict[str, str], coding: str
) -> None:
    asked: dict[str, Any] = {"content": npy(ROWS), "headers": {"Content-Type": NPY}}
    answer, content = sent(http, "POST", f"/v1/maps/{standing['wide']}/transform", coding, **asked)
    assert "content-encoding" not in answer.headers
    assert int(answer.headers["content-length"]) == len(content)
    assert "Accept-Encoding" in answer.headers["vary"]
    path = f"/v1/maps/{standing['wide-gmm']}/codes?encoding=b_bit&bits=2"
    answer, content = sent(http, "POST", path, coding, **asked)
    assert answer.headers["content-encoding"] == coding
    assert np.load(io.BytesIO(UNPACK[coding](content))).shape == (200, 4096)


def test_who_takes_nothing_else_gets_it_packed(http: httpx.Client, standing: dict[str, str]) -> None:
    asked: dict[str, Any] = {"content": npy(ROWS), "headers": {"Content-Type": NPY}}
    path = f"/v1/maps/{standing['wide']}/transform"
    answer, content = sent(http, "POST", path, "gzip, identity;q=0", **asked)
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(content) == sent(http, "POST", path, **asked)[1]


def test_short_answers_refusals_and_those_without_a_body_are_as_ever(
    http: httpx.Client, standing: dict[str, str]
) -> None:
    for path, status in (("/health/live", 200), ("/v1/maps/none", 404)):
        answer, _ = sent(http, "GET", path, "gzip")
        assert (answer.status_code, answer.headers.get("content-encoding")) == (status, None)
        assert "vary" not in answer.headers
    path = f"/v1/maps/{standing['phase']}"
    tag = http.get(path).headers["etag"]
    known, content = sent(http, "GET", path, "gzip", headers={"If-None-Match": tag})
    assert (known.status_code, content, known.headers["etag"]) == (304, b"", tag)
    head, content = sent(http, "HEAD", "/v1/catalog", "gzip")
    assert (head.status_code, content) == (200, b"")


def test_the_tag_of_a_packed_answer_is_good_for_the_same(http: httpx.Client, name: str, gaussian: Any) -> None:
    packed, _ = sent(http, "GET", "/v1/catalog", "gzip")
    tag = packed.headers["etag"]
    again, content = sent(http, "GET", "/v1/catalog", "gzip", headers={"If-None-Match": tag})
    assert (again.status_code, content, again.headers["etag"]) == (304, b"", tag)
    large = gaussian | {"kernel": {"kind": "gaussian", "length_scale": [1.5] * 500}, "input_dim": 500}
    put(http, name, large)
    record, _ = sent(http, "GET", f"/v1/maps/{name}", "zstd")
    assert record.headers["etag"].endswith('-zstd"')
    assert http.delete(f"/v1/maps/{name}", headers={"If-Match": record.headers["etag"]}).status_code == 204


def test_published_clients_unpack_it_unasked(http: httpx.Client, standing: dict[str, str]) -> None:
    """httpx asks for gzip, and for zstd where its package is there."""
    with httpx.Client(base_url=http.base_url) as client:
        answer = client.get("/v1/catalog")
    assert answer.headers["content-encoding"] in ("gzip", "zstd")
    assert answer.json() == http.get("/v1/catalog").json()
    assert post(http, f"{standing['phase']}/transform", {"vectors": ROWS[:1].tolist()}).status_code == 200


@pytest.mark.nightly
def test_events_come_at_once(http: httpx.Client, standing: dict[str, str]) -> None:
    headers = {"Prefer": "respond-async"}
    job = http.post(f"/v1/maps/{standing['phase']}/diagnostics/gram", json={"vectors": ROWS.tolist()}, headers=headers)
    answer, content = sent(http, "GET", f"{job.headers['location']}/events", "gzip")
    assert "content-encoding" not in answer.headers
    assert b"succeeded" in content
