"""The asynchronous client, whose methods are awaited."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from bochner_client.errors import BochnerError
from bochner_client.jobs import AsyncJob
from bochner_client.methods import Async
from bochner_client.operations import Operations
from bochner_client.recommendations import Recommendation
from bochner_client.requests import (
    Attempt,
    Body,
    Buffer,
    Close,
    Flow,
    Give,
    Patience,
    Read,
    Sleep,
    Step,
    Turn,
    advance,
)
from bochner_client.transport import PATIENCE_SECONDS, TIMEOUT_SECONDS, arguments, away, heed, options, reading, refused

T = TypeVar("T")

_AT_ONCE = 32
"""Requests that may run at a time: the service would refuse more, and they would be repeated."""


class AsyncClient(Operations, Async):
    """A client of a running service, for asyncio. Close it, or use it in an `async with` block.

    It takes the arguments of `Client`. Any number of calls may be made at once: up to 32 requests run at a time, and
    the others wait for their turn. Waiting for jobs does not count. The client can be used in one event loop after
    another.
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
        self._options = options(url, key, timeout, verify)
        self._loops: dict[asyncio.AbstractEventLoop, tuple[httpx.AsyncClient, asyncio.Semaphore, object]] = {}

    @property
    def url(self) -> str:
        """Address of the service."""
        return str(self._options["base_url"]).rstrip("/")

    async def _here(self) -> tuple[httpx.AsyncClient, asyncio.Semaphore]:
        """Return the HTTP client and the semaphore of the running event loop; forget those of closed loops."""
        for ended in [loop for loop in tuple(self._loops) if loop.is_closed()]:
            self._loops.pop(ended, None)
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            opened = _opened(httpx.AsyncClient(**self._options))
            self._loops[loop] = await anext(opened), asyncio.Semaphore(_AT_ONCE), opened
        return self._loops[loop][:2]

    def job(self, job: str) -> AsyncJob[Any]:
        """Return a job, given its id or link, without a request to the service."""
        return AsyncJob(self, job)

    async def aclose(self) -> None:
        """Close all connections of the running event loop."""
        await (await self._here())[0].aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    async def run(self, flow: Flow[T]) -> T:
        """Carry out the steps of a call and return its result."""
        async with AsyncExitStack() as opened:
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
                outcome = await self._outcome(step, opened)

    async def iterate(self, flow: Flow[None]) -> AsyncIterator[Any]:
        """Carry out the steps of a call that yields values."""
        async with AsyncExitStack() as opened:
            opened.callback(flow.close)
            outcome: Any = None
            while True:
                try:
                    step = advance(flow, outcome)
                except StopIteration:
                    return
                if isinstance(step, Give):
                    yield step.value
                outcome = await self._outcome(step, opened)

    async def started(self, flow: Flow[str]) -> AsyncJob[Any]:
        """Carry out the steps of a call that starts a job; return the job."""
        return self.job(await self.run(flow))

    async def _outcome(self, step: Step, opened: AsyncExitStack) -> Any:
        """Carry out a step; return its result, or an exception to be thrown into the flow."""
        try:
            match step:
                case Turn():
                    await (await self._here())[1].acquire()
                case Attempt(_, keep_open):
                    try:
                        return await self._attempt(step, opened)
                    finally:
                        if not keep_open:
                            (await self._here())[1].release()
                case Read(stream):
                    with away(self._options["base_url"]):
                        return await anext(stream.pieces, b"")
                case Close(stream):
                    await stream.response.aclose()
                case Sleep(seconds):
                    await asyncio.sleep(seconds)
                case Patience():
                    return self.patience, self._is_new
                case Give():
                    pass
        except BochnerError as error:
            return error

    async def _attempt(self, attempt: Attempt, opened: AsyncExitStack) -> Any:
        request = attempt.request
        body: Any = None if request.body is None else _pieces(request.body)
        http, _ = await self._here()
        built = http.build_request(**arguments(request, http.timeout), content=body)
        async with AsyncExitStack() as closed:
            with away(self._options["base_url"]):
                response = await http.send(built, stream=True)
                self._is_new = False
                closed.push_async_callback(response.aclose)
                if response.is_error:
                    await response.aread()
                    raise refused(response)
                how = reading(request, response)
                if attempt.keep_open:
                    opened.push_async_exit(closed.pop_all())
                    return _Stream(response) if response.status_code == httpx.codes.OK else None
                heed(response.headers)
                sink = how.sink(response.headers)
                async for piece in response.aiter_bytes():
                    sink.feed(piece)
                return sink.end()


class _Stream:
    """An answer that is read while it is received."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.pieces = response.aiter_bytes()


async def _pieces(body: Body) -> AsyncIterator[Buffer]:
    for piece in body.pieces():
        yield piece


async def _opened(http: httpx.AsyncClient) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Yield the client, and close it when its event loop ends: a loop finishes asynchronous generators at its end."""
    async with http:
        yield http
