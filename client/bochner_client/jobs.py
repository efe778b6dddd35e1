"""Jobs as objects that can be waited for, awaited, watched and cancelled."""

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
    """Methods that concern one job."""

    id: str

    record = of_job(jobs.get_job)
    events = events_of_job(jobs.watch_job)
    cancel = of_job(jobs.cancel_job)
    picture = of_job(jobs.get_job_picture)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


class Job(_JobCalls, Sync, Generic[T]):
    """A job of a service; it goes on whether or not anybody waits for it.

    Args:
        client: the client to use.
        job: id or link of the job.
    """

    def __init__(self, client: Client, job: str) -> None:
        self.id = last_segment(job)
        self._client = client

    def wait(self, *, timeout: float | None = None, progress: Progress = False) -> T:
        """Wait until the job has succeeded.

        Args:
            timeout: seconds to wait; None for no limit.
            progress: True for a progress bar, or a function that is called with each event.

        Returns:
            The result of the job: a document, or the record of the map or index that it made.

        Raises:
            JobFailed: the job failed, or was cancelled.
            TimeoutError: the job has not ended in time. It goes on.
        """
        return cast(T, self.run(jobs.wait_for_result(self.id, timeout=timeout, progress=progress)))

    def run(self, flow: Flow[R]) -> R:
        """Carry out the steps of a call and return its result."""
        return self._client.run(flow)

    def iterate(self, flow: Flow[None]) -> Iterator[Any]:
        """Carry out the steps of a call that yields values."""
        return self._client.iterate(flow)


class AsyncJob(_JobCalls, Async, Generic[T]):
    """A job of a service; it goes on whether or not anybody waits for it. `await job` returns its result.

    Args:
        client: the client to use.
        job: id or link of the job.
    """

    def __init__(self, client: AsyncClient, job: str) -> None:
        self.id = last_segment(job)
        self._client = client

    async def wait(self, *, timeout: float | None = None, progress: Progress = False) -> T:
        """Wait until the job has succeeded, and return its result. Arguments and exceptions are those of `Job.wait`."""
        return cast(T, await self.run(jobs.wait_for_result(self.id, timeout=timeout, progress=progress)))

    def __await__(self) -> Generator[Any, Any, T]:
        return self.wait().__await__()

    async def run(self, flow: Flow[R]) -> R:
        """Carry out the steps of a call and return its result."""
        return await self._client.run(flow)

    def iterate(self, flow: Flow[None]) -> AsyncIterator[Any]:
        """Carry out the steps of a call that yields values."""
        return self._client.iterate(flow)
