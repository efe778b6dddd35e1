"""The request context: the request being processed, or the one that submitted the job being processed.

Code that logs, counts, submits jobs or writes links for the request reads it here. Tasks and threads that a request
starts see the same context, and so does the process of a job.
"""

import time
from asyncio import Future
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.trace import Span


@dataclass(slots=True)
class RequestContext:
    """Context of a request while it is processed, or while a job that it submitted runs."""

    request_id: str
    """Id of the request; empty for a job that an earlier version has stored."""
    traceparent: str = ""
    """W3C `traceparent` header of the request, or that of its own span; empty if the request is not traced."""
    job_id: str = ""
    """Id of the job; empty for a request."""
    rows: int = 0
    """Number of rows that have been checked for the request."""
    owner: str = ""
    """Owner of the request: the id of its key; empty without a key."""
    prefix: str = ""
    """Prefix that a proxy has stripped from the address of the request."""
    left: "Future[None] | None" = None
    """Future that is done once the client's connection is lost; None for a job."""

    @property
    def ids(self) -> dict[str, str]:
        """Ids of the request, trace and job, without empty ones; each line of the log contains them."""
        every = {"request_id": self.request_id, "trace_id": self.trace_id, "job_id": self.job_id}
        return {name: one for name, one in every.items() if one}

    @property
    def trace_id(self) -> str:
        """Id of the trace that the request belongs to; empty if it is not traced."""
        return self.traceparent[3:35]


REQUEST: ContextVar[RequestContext | None] = ContextVar("request", default=None)


def current_owner() -> str:
    """Return the owner of the request being processed; empty if there is none."""
    request = REQUEST.get()
    return "" if request is None else request.owner


def link_to(path: str) -> str:
    """Return a path of the service as the client reaches it, that is, with the prefix that a proxy strips."""
    request = REQUEST.get()
    return path if request is None else request.prefix + path


def note_rows(rows: int) -> None:
    """Add to the row count of the request being processed; do nothing outside requests and jobs."""
    request = REQUEST.get()
    if request is not None:
        request.rows += rows


Attributes = Mapping[str, str | int]
Told = Callable[[Attributes], None]
"""Callback for the attributes that are known when a span ends. `error.type` among them marks it as failed."""


def _ignore(_: Attributes) -> None:
    """Do nothing: callback of a span that is not recorded."""


class Spans:
    """Spans that are not recorded; they cost next to nothing."""

    def request(self, name: str, attributes: Attributes, request: RequestContext) -> AbstractContextManager[Told]:
        """Open a span for the duration of a with block, in which a request is served."""
        return self._remote(name, "SERVER", attributes, request)

    def job(self, kind: str, job: RequestContext) -> AbstractContextManager[Told]:
        """Open a span for the duration of a with block, in which a job runs: part of the trace of its request."""
        attributes = {"bochner.job.id": job.job_id, "bochner.job.kind": kind}
        return self._remote(f"job {kind}", "CONSUMER", attributes, job)

    def part(self, name: str) -> AbstractContextManager[None]:
        """Open a span for the duration of a with block, for a part of the request being processed."""
        del name
        return nullcontext()

    def asked_store(self, command: str, seconds: float, failed: bool) -> None:
        """Record a span for a call to the store that has just ended, if it was made for a request."""

    def close(self) -> None:
        """Send the spans that have not been sent yet."""

    def _remote(self, name: str, kind: str, attributes: Attributes, of: RequestContext) -> AbstractContextManager[Told]:
        """Open a span that continues the caller's trace; from then on, the request is traced as part of this span."""
        del name, kind, attributes, of
        return nullcontext(_ignore)


class OpenTelemetry(Spans):
    """Spans that are sent by OTLP over HTTP; ValueError if the extra `otel` is not installed."""

    def __init__(self) -> None:
        try:
            from opentelemetry import trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import OTELResourceDetector, Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError as error:
            said = f"traces are wanted, and {error.name} is not installed"
            raise ValueError(f"{said}: install bochner[otel]") from error
        ours = Resource({"service.name": "bochner", "service.version": version("bochner")})
        # Values that the operator sets in environment variables take precedence.
        self._provider = TracerProvider(resource=Resource.create().merge(ours).merge(OTELResourceDetector().detect()))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("bochner", version("bochner"))
        self._trace, self._propagator = trace, TraceContextTextMapPropagator()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """See `Spans`."""
        # Messages of failures belong in the log alone.
        with self._tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False):
            yield

    def asked_store(self, command: str, seconds: float, failed: bool) -> None:
        """See `Spans`."""
        if REQUEST.get() is None:
            return
        ended = time.time_ns()
        span = self._tracer.start_span(
            command,
            kind=self._trace.SpanKind.CLIENT,
            attributes={"db.system.name": "redis", "db.operation.name": command},
            start_time=ended - round(seconds * 1e9),
        )
        if failed:
            span.set_status(self._trace.StatusCode.ERROR)
        span.end(ended)

    def close(self) -> None:
        """See `Spans`."""
        self._provider.shutdown()

    @contextmanager
    def _remote(self, name: str, kind: str, attributes: Attributes, of: RequestContext) -> Iterator[Told]:
        """See `Spans`."""
        parent = self._propagator.extract({"traceparent": of.traceparent}) if of.traceparent else None
        with self._tracer.start_as_current_span(
            name, parent, self._trace.SpanKind[kind], attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            carrier: dict[str, str] = {}
            self._propagator.inject(carrier)
            of.traceparent = carrier["traceparent"]
            yield lambda found: self._end(span, found)

    def _end(self, span: "Span", found: Attributes) -> None:
        span.set_attributes(found)
        if "http.route" in found:
            span.update_name(f"{found['http.request.method']} {found['http.route']}")
        if "error.type" in found:
            span.set_status(self._trace.StatusCode.ERROR)


def start_spans(wanted: bool) -> Spans:
    """Return recorded spans if `wanted`, else spans that do nothing."""
    return OpenTelemetry() if wanted else Spans()
