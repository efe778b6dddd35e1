"""The client as its users have it: on the shared service, with calls that answer and with calls that are awaited."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from inspect import isawaitable
from typing import Any

import pytest

from bochner_client import AsyncClient, Client
from service_tests.running import Running


class Asked:
    """A client of either kind. Calls answer at once and loops are lists, so that what is written once tries both."""

    def __init__(self, client: Client | AsyncClient | Any, loop: asyncio.AbstractEventLoop) -> None:
        self.client, self._loop = client, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.client, name)
        return self._answering(found) if callable(found) else found

    def _answering(self, call: Any) -> Any:
        def answer(*args: Any, **options: Any) -> Any:
            given = call(*args, **options)
            if isawaitable(given) and not hasattr(given, "cancel"):
                given = self._loop.run_until_complete(given)
            if isinstance(given, AsyncIterator):
                return self._loop.run_until_complete(_listed(given))
            if isinstance(given, Iterator):
                return list(given)
            return Asked(given, self._loop) if hasattr(given, "cancel") else given

        return answer


async def _listed(values: AsyncIterator[Any]) -> list[Any]:
    return [value async for value in values]


@pytest.fixture(scope="session")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """The event loop of clients that are awaited."""
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture(scope="session")
def client(running: Running) -> Iterator[Client]:
    """A client of the shared service."""
    with Client(running.url) as made:
        yield made


@pytest.fixture(scope="session")
def async_client(running: Running, loop: asyncio.AbstractEventLoop) -> Iterator[AsyncClient]:
    """An asynchronous client of the shared service, to be used in `loop`."""
    made = AsyncClient(running.url)
    yield made
    loop.run_until_complete(made.aclose())


@pytest.fixture(params=["answers", "awaited"])
def ask(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> Asked:
    """Both clients of the shared service, one after the other."""
    kind = "client" if request.param == "answers" else "async_client"
    return Asked(request.getfixturevalue(kind), loop)


@pytest.fixture
def jobs_client(jobs_service: Running) -> Iterator[Client]:
    """A client of the service whose Monte Carlo takes long."""
    with Client(jobs_service.url) as made:
        yield made
