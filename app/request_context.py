"""The request that is in work, or has led to the job in work: who logs, counts, submits or links for it finds it.

Tasks and threads that a request begins see the same one, and so does the process of a job.
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
    """A request, while it lasts, or while a job does what it has asked for."""

    request_id: str
    """Empty for that of a job which an earlier version has stored."""
    traceparent: str = ""
    """The header of the W3C that came with it, or that of its own span; empty where nobody traces it."""
    job_id: str = ""
    """Empty for a request."""
    rows: int = 0
    """Rows that have passed a gate for it."""
    owner: str = ""
    """Whose it is: the id of its key; empty without one."""
    prefix: str = ""
    """What a proxy has stripped from its address."""
    left: "Future[None] | None" = None
    """Done once the connection of its client is lost; None for a job."""

    @property
    def ids(self) -> dict[str, str]:
        """The ids of its request, trace and job, as far as it has some; each line of the log has them."""
        every = {"request_id": self.request_id, "trace_id": self.trace_id, "job_id": self.job_id}
        return {name: one for name, one in every.items() if one}

    @property
    def trace_id(self) -> str:
        """The trace that it belongs to, empty for none."""
        return self.traceparent[3:35]


REQUEST: ContextVar[RequestContext | None] = ContextVar("request", default=None)


def current_owner() -> str:
    """Whose request is in work; empty for nobody's."""
    request = REQUEST.get()
    return "" if request is None else request.owner


def link_to(path: str) -> str:
    """A path of the service as the client of the request in work reaches it, behind what a proxy strips."""
    request = REQUEST.get()
    return path if request is None else request.prefix + path


def note_rows(rows: int) -> None:
    """Add rows to those of the request in work, if there is one: jobs are none."""
    request = REQUEST.get()
    if request is not None:
        request.rows += rows


Attributes = Mapping[str, str | int]
Told = Callable[[Attributes], None]
"""Is told what a span has found out when it ends. `error.type` among it says that it has failed."""


def _ignore(_: Attributes) -> None:
    """For a span that nobody wants."""


class Spans:
    """Spans that nobody wants: they cost next to nothing."""

    def request(self, name: str, attributes: Attributes, request: RequestContext) -> AbstractContextManager[Told]:
        """A span for the length of a with block, in which a request is served."""
        return self._remote(name, "SERVER", attributes, request)

    def job(self, kind: str, job: RequestContext) -> AbstractContextManager[Told]:
        """A span for the length of a with block, in which a job is worked on: part of the trace of its request."""
        attributes = {"bochner.job.id": job.job_id, "bochner.job.kind": kind}
        return self._remote(f"job {kind}", "CONSUMER", attributes, job)

    def part(self, name: str) -> AbstractContextManager[None]:
        """A span for the length of a with block, of a part of the request in work."""
        del name
        return nullcontext()

    def asked_store(self, command: str, seconds: float, failed: bool) -> None:
        """A span of a call to the store that has just ended, if a request has made it."""

    def close(self) -> None:
        """Send what is not sent yet."""

    def _remote(self, name: str, kind: str, attributes: Attributes, of: RequestContext) -> AbstractContextManager[Told]:
        """A span that goes on with the trace of who has asked; from then on the request is traced as part of it."""
        del name, kind, attributes, of
        return nullcontext(_ignore)


class OpenTelemetry(Spans):
    """Spans that are sent by OTLP over HTTP; ValueError where the extra `otel` is not installed."""

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
        # What the operator says of it in variables wins.
        self._provider = TracerProvider(resource=Resource.create().merge(ours).merge(OTELResourceDetector().detect()))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("bochner", version("bochner"))
        self._trace, self._propagator = trace, TraceContextTextMapPropagator()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """See `Spans`."""
        # What a failure says is for the log alone.
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
    """Spans, if they are wanted."""
    return OpenTelemetry() if wanted else Spans()
