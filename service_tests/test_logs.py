"""The log as machines read it."""

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.api.middleware import address_of
from app.logs import FIELDS, JsonFormatter
from app.request_context import REQUEST, RequestContext
from app.store.keys import Role
from service_tests.checks import npy, post_npy, put
from service_tests.keyed import Keyed, bearer, keyed, secret_of
from service_tests.running import service
from service_tests.servers import until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def test_a_line_says_when_what_and_on_whose_behalf() -> None:
    token = REQUEST.set(RequestContext("r-1", TRACEPARENT, "j-1"))
    try:
        raise ValueError("bochner_0123456789abcdef_" + "S" * 43)
    except ValueError as error:
        failed = (type(error), error, error.__traceback__)
        args = ("here", logging.WARNING, "f.py", 1, "%d of %s\n\x1b[2J", (3, "ü"), failed)
        made = logging.getLogger("here").makeRecord(*args, extra={FIELDS: {"route": "/v1"}})
        written = JsonFormatter().format(made)
    finally:
        REQUEST.reset(token)
    assert "\n" not in written
    line = json.loads(written)
    assert line["message"] == "3 of ü\n\x1b[2J"
    assert (line["level"], line["logger"], line["route"]) == ("warning", "here", "/v1")
    assert abs(datetime.fromisoformat(line["time"]) - datetime.now(UTC)) < timedelta(minutes=1)
    assert (line["request_id"], line["trace_id"], line["job_id"]) == ("r-1", TRACE, "j-1")
    assert "Traceback" in line["exception"]
    assert "SSS" not in line["exception"]
    assert "bochner_0123456789abcdef_..." in line["exception"]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    """A service that logs all there is to log as JSON, has a worker, and wants keys."""
    options = ("--log-format", "json", "--log-level", "debug", "--require-keys", "true", "--job-workers", "1")
    with service(tmp_path_factory.mktemp("logs") / "data", *options) as running:
        yield keyed(running)


def those(here: Keyed, **members: object) -> list[dict[str, Any]]:
    """The lines with these members; each line is JSON."""
    (log,) = here.running.data_dir.parent.glob("*.log")
    return [line for line in map(json.loads, log.read_text().splitlines()) if line.items() >= members.items()]


@pytest.mark.parametrize(
    ("client", "told"),
    [
        (("203.0.113.7", 0), "203.0.113.7:0"),
        (("fe80::1%\r\nINFO: forged", 5), "fe80::1:5"),
        (('9.9.9.9 - "GET /" 200', 0), "unknown"),
        (None, "unknown"),
    ],
)
def test_a_client_is_an_address(client: tuple[str, int] | None, told: str) -> None:
    assert address_of({"type": "http", "client": client}) == told


@pytest.mark.nightly
def test_a_request_is_a_line_with_all_that_is_counted_of_it(here: Keyed, gaussian: dict[str, Any]) -> None:
    with here.client(Role.write) as http:
        put(http, "seen", gaussian)
        body = npy([[1.0, 2.0, 3.0]] * 5)
        http.headers.update({"X-Request-ID": "id-of-mine", "traceparent": TRACEPARENT})
        answer = post_npy(http, "seen/transform", body)
    until(lambda: those(here, request_id="id-of-mine"))
    (line,) = those(here, request_id="id-of-mine", logger="app.access")
    expected = {
        "method": "POST",
        "route": "/v1/maps/{name}/transform",
        "path": "/v1/maps/seen/transform",
        "status": 200,
        "bytes_in": len(body),
        "bytes_out": len(answer.content),
        "rows": 5,
        "key": "the-write",
        "level": "info",
        "trace_id": TRACE,
    }
    assert {name: line.get(name) for name in expected} == expected
    assert 0 < line["seconds"] < 60
    assert line["client"].startswith("127.0.0.1:")


@pytest.mark.nightly
def test_no_line_has_a_secret_however_much_is_logged(here: Keyed) -> None:
    texts = [*here.texts.values(), here.make(Role.admin).key]
    for text in texts:
        with here.running.client(**bearer(text)) as http:
            http.get(f"/{text}?key={text}", headers={"X-Request-ID": text})
            http.get("/v1/maps", headers={"traceparent": text, "User-Agent": text, "Cookie": text})
            http.put(f"/v1/maps/{text}", json={"kernel": text})
            http.post("/v1/keys", json={"name": "new", "role": "read"})
    until(lambda: len(those(here, route="/v1/keys", method="POST")) == len(texts))
    (log,) = here.running.data_dir.parent.glob("*.log")
    written = log.read_text()
    assert "bochner_" in written
    assert all(secret_of(text) not in written for text in texts)
