"""Jobs as objects: waited for, awaited, watched, cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from bochner_client.calls import jobs
from bochner_client.methods import Async, Sync, events_of_job, of_job
from bochner_client.progress import Progress
from bochner_client.requests import Flow, last_segment

if TYPE_CHECKING:
    from bochner_client.async_client import AsyncClient
    from bochner_client.client import Client

T = TypeVar("T")
R = TypeVar("R")


class _JobCalls:
    """The calls that are about one job."""

    id: str

    record = of_job(jobs.get_job)
    events = events_of_job(jobs.watch_job)
    cancel = of_job(jobs.cancel_job)
    picture = of_job(jobs.get_job_picture)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


class Job(_JobCalls, Sync, Generic[T]):
    """A job of a service, which goes on whether anybody waits for it or not."""

    def __init__(self, client: Client, job: str) -> None:
        self.id = last_segment(job)
        self._client = client

    def wait(self, *, timeout: float | None = None, progress: Progress = False) -> T:
        """Wait until it has succeeded; its result: a document, or the record of the map or index that it made.

        Args:
            timeout: seconds to wait.
            progress: True for a progress bar, or a function that is told of each event.

        Raises:
            JobFailed: it failed, or was cancelled.
            TimeoutError: it had not ended in time. It goes on.
        """
        return cast(T, self.run(jobs.wait_for_result(self.id, timeout=timeout, progress=progress)))

    def run(self, flow: Flow[R]) -> R:
        """Carry out the steps of a call."""
        return self._client.run(flow)

    def iterate(self, flow: Flow[None]) -> Iterator[Any]:
        """Carry out the steps of a call that hands out values."""
        return self._client.iterate(flow)


class AsyncJob(_JobCalls, Async, Generic[T]):
    """A job of a service, which goes on whether anybody waits for it or not. `await job` gives its result."""

    def __init__(self, client: AsyncClient, job: str) -> None:
        self.id = last_segment(job)
        self._client = client

    async def wait(self, *, timeout: float | None = None, progress: Progress = False) -> T:
        """Wait until it has succeeded; its result. Arguments and exceptions are those of `Job.wait`."""
        return cast(T, await self.run(jobs.wait_for_result(self.id, timeout=timeout, progress=progress)))

    def __await__(self) -> Generator[Any, Any, T]:
        return self.wait().__await__()

    async def run(self, flow: Flow[R]) -> R:
        """Carry out the steps of a call."""
        return await self._client.run(flow)

    def iterate(self, flow: Flow[None]) -> AsyncIterator[Any]:
        """Carry out the steps of a call that hands out values."""
        return self._client.iterate(flow)
