"""Make methods of calls: plain ones for the synchronous client, awaitable ones for the asynchronous client.

Each call is described once, by a function that returns one request or the steps of several; see `calls`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from bochner_client.exchange import exchange
from bochner_client.requests import Flow, Request, Stream

if TYPE_CHECKING:
    from bochner_client.jobs import AsyncJob, Job

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Asked = Request[T] | Flow[T]
"""Result of the function of a call: one request, or steps."""


class Sync:
    """Base class of what carries out calls and returns their results."""

    def run(self, flow: Flow[T]) -> T:
        """Carry out the steps of a call and return its result."""
        raise NotImplementedError

    def iterate(self, flow: Flow[None]) -> Iterator[Any]:
        """Carry out the steps of a call that yields values."""
        raise NotImplementedError

    def started(self, flow: Flow[str]) -> Job[Any]:
        """Carry out the steps of a call that starts a job."""
        raise NotImplementedError


class Async:
    """Base class of what carries out calls asynchronously."""

    async def run(self, flow: Flow[T]) -> T:
        """Carry out the steps of a call and return its result."""
        raise NotImplementedError

    def iterate(self, flow: Flow[None]) -> AsyncIterator[Any]:
        """Carry out the steps of a call that yields values."""
        raise NotImplementedError

    async def started(self, flow: Flow[str]) -> AsyncJob[Any]:
        """Carry out the steps of a call that starts a job."""
        raise NotImplementedError


class Method(Protocol[P, T_co]):
    """Type of a method that returns a result, or is awaited."""

    @overload
    def __get__(self, instance: Sync, owner: type) -> Callable[P, T_co]: ...
    @overload
    def __get__(self, instance: Async, owner: type) -> Callable[P, Coroutine[Any, Any, T_co]]: ...


class Iterating(Protocol[P, T_co]):
    """Type of a method that returns an iterator."""

    @overload
    def __get__(self, instance: Sync, owner: type) -> Callable[P, Iterator[T_co]]: ...
    @overload
    def __get__(self, instance: Async, owner: type) -> Callable[P, AsyncIterator[T_co]]: ...


class Starting(Protocol[P, T]):
    """Type of a method that starts a job and returns it."""

    @overload
    def __get__(self, instance: Sync, owner: type) -> Callable[P, Job[T]]: ...
    @overload
    def __get__(self, instance: Async, owner: type) -> Callable[P, Coroutine[Any, Any, AsyncJob[T]]]: ...


def method(call: Callable[P, Request[T]] | Callable[P, Flow[T]]) -> Method[P, T]:
    """Return the method of a call."""

    def function(self: Any, *args: Any, **options: Any) -> Any:
        return self.run(_flow(call(*args, **options)))

    return cast(Method[P, T], _like(function, call))


def iterating(call: Callable[P, Stream[T]]) -> Iterating[P, T]:
    """Return the method of a call that yields values."""

    def function(self: Any, *args: Any, **options: Any) -> Any:
        return self.iterate(call(*args, **options).flow)

    return cast(Iterating[P, T], _like(function, call))


def starting(call: Callable[P, Flow[str]]) -> Starting[P, dict[str, Any]]:
    """Return the method of a call that starts a job whose result is a document."""

    def function(self: Any, *args: Any, **options: Any) -> Any:
        return self.started(call(*args, **options))

    return cast(Starting[P, dict[str, Any]], _like(function, call))


def of_job(
    call: Callable[Concatenate[str, P], Request[T]] | Callable[Concatenate[str, P], Flow[T]],
) -> Method[P, T]:
    """Return a job object's method of a call whose first argument is the job's id."""

    def function(self: Any, *args: Any, **options: Any) -> Any:
        return self.run(_flow(call(self.id, *args, **options)))

    return cast(Method[P, T], _like(function, call, named=1))


def events_of_job(call: Callable[Concatenate[str, P], Stream[T]]) -> Iterating[P, T]:
    """Return a job object's method of a call that yields values and whose first argument is the job's id."""

    def function(self: Any, *args: Any, **options: Any) -> Any:
        return self.iterate(call(self.id, *args, **options).flow)

    return cast(Iterating[P, T], _like(function, call, named=1))


def _flow(asked: Request[T] | Flow[T]) -> Flow[T]:
    return exchange(asked) if isinstance(asked, Request) else asked


def _like(function: Callable[..., Any], call: Callable[..., Any], named: int = 0) -> Callable[..., Any]:
    """Give a method the name, docstring and signature of a call, without the call's first `named` parameters."""
    update_wrapper(function, call)
    del function.__dict__["__wrapped__"]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *list(inspect.signature(call).parameters.values())[named:]]
    vars(function)["__signature__"] = inspect.Signature(parameters)
    return function
