"""The synchronous client."""

import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from bochner_client.errors import BochnerError
from bochner_client.jobs import Job
from bochner_client.methods import Sync
from bochner_client.operations import Operations
from bochner_client.recommendations import Recommendation
from bochner_client.requests import Attempt, Close, Flow, Give, Patience, Read, Sleep, Step, Turn, advance
from bochner_client.transport import PATIENCE_SECONDS, TIMEOUT_SECONDS, arguments, away, heed, options, reading, refused

T = TypeVar("T")


class Client(Operations, Sync):
    """A client of a running service. Threads may share one; close it, or use it in a with block.

    Args:
        url: address of the service; by default the variable `BOCHNER_URL`, else `http://127.0.0.1:8000`.
        key: key for the service; by default the variable `BOCHNER_KEY`, else the content of the file
            `BOCHNER_KEY_FILE`.
        timeout: seconds that the service may be silent within one request.
        patience: seconds for which a request is repeated if the service is unavailable or busy; 0 for no repetition.
        verify: how HTTPS certificates are checked, as in httpx.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float | httpx.Timeout = TIMEOUT_SECONDS,
        patience: float = PATIENCE_SECONDS,
        verify: bool | ssl.SSLContext = True,
    ) -> None:
        self.patience = patience
        self._is_new = True  # no service has answered yet
        self._http = httpx.Client(**options(url, key, timeout, verify))

    @property
    def url(self) -> str:
        """Address of the service."""
        return str(self._http.base_url).rstrip("/")

    def job(self, job: str) -> Job[Any]:
        """Return a job, given its id or link, without a request to the service."""
        return Job(self, job)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def run(self, flow: Flow[T]) -> T:
        """Carry out the steps of a call and return its result."""
        with ExitStack() as opened:
            opened.callback(flow.close)
            outcome: Any = None
            while True:
                try:
                    step = advance(flow, outcome)
                except StopIteration as end:
                    answer: T = end.value
                    if isinstance(answer, Recommendation):
                        answer.url = self.url
                    return answer
                outcome = self._outcome(step, opened)

    def iterate(self, flow: Flow[None]) -> Iterator[Any]:
        """Carry out the steps of a call that yields values."""
        with ExitStack() as opened:
            opened.callback(flow.close)
            outcome: Any = None
            while True:
                try:
                    step = advance(flow, outcome)
                except StopIteration:
                    return
                if isinstance(step, Give):
                    yield step.value
                outcome = self._outcome(step, opened)

    def started(self, flow: Flow[str]) -> Job[Any]:
        """Carry out the steps of a call that starts a job; return the job."""
        return self.job(self.run(flow))

    def _outcome(self, step: Step, opened: ExitStack) -> Any:
        """Carry out a step; return its result, or an exception to be thrown into the flow."""
        try:
            match step:
                case Attempt():
                    return self._attempt(step, opened)
                case Read(stream):
                    with away(self._http.base_url):
                        return next(stream.pieces, b"")
                case Close(stream):
                    stream.response.close()
                case Sleep(seconds):
                    time.sleep(seconds)
                case Patience():
                    return self.patience, self._is_new
                case Give() | Turn():
                    pass
        except BochnerError as error:
            return error

    def _attempt(self, attempt: Attempt, opened: ExitStack) -> Any:
        request = attempt.request
        body: Any = None if request.body is None else request.body.pieces()
        built = self._http.build_request(**arguments(request, self._http.timeout), content=body)
        with away(self._http.base_url), ExitStack() as closed:
            response = self._http.send(built, stream=True)
            self._is_new = False
            closed.callback(response.close)
            if response.is_error:
                response.read()
                raise refused(response)
            how = reading(request, response)
            if attempt.keep_open:
                opened.push(closed.pop_all())
                return _Stream(response) if response.status_code == httpx.codes.OK else None
            heed(response.headers)
            sink = how.sink(response.headers)
            for piece in response.iter_bytes():
                sink.feed(piece)
            return sink.end()


class _Stream:
    """An answer that is read while it is received."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.pieces = response.iter_bytes()
