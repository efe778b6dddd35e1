"""Which answers are compressed. How is the middleware's own matter."""

import gzip
import json
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.checks import JSON, NPY, npy, put

ROWS = np.random.default_rng(1).random((200, 3))


def sent(
    http: httpx.Client, method: str, path: str, coding: str = "gzip", **asked: Any
) -> tuple[httpx.Response, bytes]:
    """An answer, and its body as it was sent."""
    headers = {**asked.pop("headers", {}), "Accept-Encoding": coding}
    with http.stream(method, path, headers=headers, **asked) as answer:
        return answer, b"".join(answer.iter_raw())


@pytest.mark.parametrize("path", ["/openapi.json", "/v1/catalog"])
def test_text_is_compressed_under_the_same_etag(http: httpx.Client, path: str) -> None:
    plain, whole = sent(http, "GET", path, "identity")
    packed, short = sent(http, "GET", path)
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(short) == whole
    assert len(short) < 0.7 * len(whole)
    assert "content-encoding" not in plain.headers
    assert packed.headers["etag"] == plain.headers["etag"]
    for answer in (plain, packed):
        assert "accept-encoding" in answer.headers["vary"].lower()


def test_json_of_numbers_is_compressed_while_it_is_made_and_other_formats_are_not(
    http: httpx.Client, standing: dict[str, str]
) -> None:
    path = f"/v1/maps/{standing['wide']}/transform"
    asked: dict[str, Any] = {"content": npy(ROWS), "headers": {"Content-Type": NPY, "Accept": JSON}}
    packed, short = sent(http, "POST", path, **asked)
    assert packed.headers["content-encoding"] == "gzip"
    assert len(json.loads(gzip.decompress(short))["features"]) == len(ROWS)
    answer, content = sent(http, "POST", path, **asked | {"headers": {"Content-Type": NPY, "Accept": NPY}})
    assert "content-encoding" not in answer.headers
    assert int(answer.headers["content-length"]) == len(content)


def test_the_etag_of_a_compressed_answer_is_good_for_a_condition(http: httpx.Client, name: str, gaussian: Any) -> None:
    large = gaussian | {"kernel": {"kind": "gaussian", "length_scale": [1.5] * 500}, "input_dim": 500}
    put(http, name, large)
    record, _ = sent(http, "GET", f"/v1/maps/{name}")
    assert record.headers["content-encoding"] == "gzip"
    assert http.delete(f"/v1/maps/{name}", headers={"If-Match": record.headers["etag"]}).status_code == 204
