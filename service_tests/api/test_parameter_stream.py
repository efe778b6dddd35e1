"""Codes of another version of the hash stream are not given."""

import json
from typing import Any, cast

import httpx
import pytest
import redis

from app.store.maps import digest
from service_tests.checks import assert_problem, post, put

BODY = {"vectors": [[1.0, 2.0, 3.0]]}


@pytest.mark.parametrize(("stream", "slug"), [(2, "newer-version"), (0, "store-damaged"), (None, "store-damaged")])
def test_codes_of_another_parameter_stream_are_not_given(
    http: httpx.Client, store: redis.Redis, name: str, gmm: dict[str, Any], stream: int | None, slug: str
) -> None:
    """As a later or an earlier version of the service would have left the map."""
    assert put(http, name, gmm).status_code == 201
    key = f"bochner:{{map:{name}}}:manifest"
    manifest = json.loads(cast(bytes, store.get(key)))
    assert manifest["parameter_stream"] == 1
    assert "arrays" not in manifest
    spec = json.dumps(http.get(f"/v1/maps/{name}").json()["spec"])
    manifest |= {"parameter_stream": stream, "digest": digest(spec, {}, stream)}
    if stream is None:
        del manifest["parameter_stream"]
    store.set(key, json.dumps(manifest))
    answer = post(http, f"{name}/codes", BODY)
    assert "parameter stream" in assert_problem(http, answer, 503, slug)["detail"]
    listed = http.get("/v1/maps", params={"prefix": name}).json()["maps"]
    assert [one["parameter_stream"] for one in listed if one["name"] == name] == [stream]
    assert http.delete(f"/v1/maps/{name}").status_code == 204
    assert put(http, name, gmm).status_code == 201
    assert post(http, f"{name}/codes", BODY).status_code == 200
