"""How the body of a request reaches its format."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from starlette.requests import Request

from app.api import bodies
from app.api.context import Context
from app.api.problems import Refusal
from app.api.senders import Senders
from app.core.arrays import Array
from app.core.recommendations import KernelMember
from app.formats import Body, Format
from app.formats.npy import Npy
from app.settings import Settings


class Tagged(Npy):
    """A .npy behind as many bytes as a header says."""

    media_type = "application/x-tagged-npy"
    request_headers: ClassVar = {"Tag-Length": "Bytes before the array."}

    def matrix(self, body: Body) -> Array:
        return super().matrix(Body(body.content[int(body.headers["Tag-Length"]) :]))


def test_a_format_gets_the_headers_that_it_names_and_no_others() -> None:
    rows = np.arange(6.0).reshape(2, 3)
    content = b"tag" + b"".join(Npy().encode({"features": rows}).pieces)
    headers = [(b"tag-length", b"3"), (b"authorization", b"secret")]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    def read(form: Format) -> Body:
        request = Request({"type": "http", "method": "POST", "headers": headers, "state": {}}, receive)
        return asyncio.run(bodies.read_in(form, request, cast(Context, context)))

    def check(*_: int) -> None:
        """Any length will do."""

    limits = SimpleNamespace(check_body=check, check_dataset=check, check_options=check)
    admission = SimpleNamespace(senders=Senders(1 << 20))
    context = SimpleNamespace(limits=limits, settings=Settings(), admission=admission)
    body = read(Tagged())
    assert body == Body(content, {"Tag-Length": "3"}, check, check, check)
    np.testing.assert_array_equal(Tagged().matrix(body), rows)
    assert read(Npy()).headers == {}


@pytest.mark.parametrize(
    "body",
    [
        {"kernel": {"kind": [1.0] * 100_000}},
        {"kernel": {"kind": "x" * 400_000}},
        {"kernel": {"kind": "gaussian", "length_scale": 1.0, "x" * 400_000: 1}},
        {"kernel": "x" * 400_000},
    ],
    ids=["list", "string", "name", "value"],
)
def test_a_refusal_repeats_little_of_what_came(body: Any) -> None:
    with pytest.raises(Refusal) as refused:
        bodies.parse(KernelMember, json.dumps(body).encode())
    assert len(json.dumps(refused.value.members)) < 2000
    assert len(str(refused.value)) < 2000
