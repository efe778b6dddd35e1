"""Spans, as a receiver of OTLP gets them from the makers' own exporter."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from service_tests.checks import RESPOND_ASYNC, finished, put
from service_tests.running import service
from service_tests.servers import until

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


class Receiver:
    """Takes what exporters send, gzip or not, until it is closed."""

    def __init__(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        came: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                came.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._came = came
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def of(self, trace: str) -> list[Any]:
        scopes = [scope for sent in self._came for one in sent.resource_spans for scope in one.scope_spans]
        return [span for scope in scopes for span in scope.spans if span.trace_id.hex() == trace]


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(scope="module")
def client(receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a service with a worker that send spans, four times a second."""
    kernel, home = {"kind": "gaussian", "length_scale": 1.5}, tmp_path_factory.mktemp("spans")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "250")
        with service(home / "data", "--traces", "true", "--job-workers", "1") as traced, traced.client() as http:
            spec = {"input_dim": 3, "s": 16, "kernel": kernel, "sampler": {"kind": "sobol"}}
            assert put(http, "m", spec).status_code == 201
            yield http


def named(receiver: Receiver, trace: str, name: str) -> Any:
    """The one span of a name in a trace, once it is there."""
    until(lambda: any(span.name == name for span in receiver.of(trace)))
    found = [span for span in receiver.of(trace) if span.name == name]
    assert len(found) == 1, receiver.of(trace)
    return found[0]


@pytest.mark.nightly
def test_a_request_is_one_span_of_the_trace_that_it_came_with(receiver: Receiver, client: httpx.Client) -> None:
    answer = client.post("/v1/maps/m/transform?x=1", json={"vectors": []}, headers={"traceparent": TRACEPARENT})
    assert answer.status_code == 422
    span = named(receiver, TRACE, "POST /v1/maps/{name}/transform")
    assert span.parent_span_id.hex() == PARENT
    assert span.kind == span.SPAN_KIND_SERVER
    assert attributes(span) == {
        "http.request.method": "POST",
        "http.route": "/v1/maps/{name}/transform",
        "url.path": "/v1/maps/m/transform",
        "url.scheme": "http",
        "http.response.status_code": 422,
    }
    assert span.status.code == span.status.STATUS_CODE_UNSET, "it is the client that was wrong"


@pytest.mark.nightly
def test_a_job_goes_on_with_the_trace_of_the_request_that_has_asked_for_it(
    receiver: Receiver, client: httpx.Client
) -> None:
    trace = "7" * 32
    rows = {"vectors": [[1, 2, 3], [2, 3, 4]] * 20, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "budget": 32}
    asked = client.post(
        "/v1/recommendations", json=rows, headers={**RESPOND_ASYNC, "traceparent": f"00-{trace}-{PARENT}-01"}
    )
    assert asked.status_code == 202
    job = finished(client, asked)
    span = named(receiver, trace, "job recommend")
    assert span.parent_span_id == named(receiver, trace, "POST /v1/recommendations").span_id
    assert span.kind == span.SPAN_KIND_CONSUMER
    assert attributes(span) == {
        "bochner.job.id": job["id"],
        "bochner.job.kind": "recommend",
        "bochner.job.state": "succeeded",
    }
