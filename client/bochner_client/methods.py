"""Makes methods of calls: those of a client answer, those of an asynchronous client are awaited.

A call is described once, by a function that gives a request or the steps of several; see `calls`.
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
"""What a call gives: one request, or steps."""


class Sync:
    """Whatever carries calls out and gives their answers."""

    def run(self, flow: Flow[T]) -> T:
        """Carry out the steps of a call."""
        raise NotImplementedError

    def iterate(self, flow: Flow[None]) -> Iterator[Any]:
        """Carry out the steps of a call that hands out values."""
        raise NotImplementedError

    def started(self, flow: Flow[str]) -> Job[Any]:
        """Carry out the steps of a call that begins a job."""
        raise NotImplementedError


class Async:
    """Whatever carries calls out while others wait, and gives their answers to who awaits them."""

    async def run(self, flow: Flow[T]) -> T:
        """Carry out the steps of a call."""
        raise NotImplementedError

    def iterate(self, flow: Flow[None]) -> AsyncIterator[Any]:
        """Carry out the steps of a call that hands out values."""
        raise NotImplementedError

    async def started(self, flow: Flow[str]) -> AsyncJob[Any]:
        """Carry out the steps of a call that begins a job."""
        raise NotImplementedError


class Method(Protocol[P, T_co]):
    """A method that answers, or is awaited."""

    @overload
    def __get__(self, instance: Sync, owner: type) -> Callable[P, T_co]: ...
    @overload
    def __get__(self, instance: Async, owner: type) -> Callable[P, Coroutine[Any, Any, T_co]]: ...


class Iterating(Protocol[P, T_co]):
    """A method whose values are looped over."""

    @overload
    def __get__(self, instance: Sync, owner: type) -> Callable[P, Iterator[T_co]]: ...
    @overload
    def __get__(self, instance: Async, owner: type) -> Callable[P, AsyncIterator[T_co]]: ...


class Starting(Protocol[P, T]):
    """A method that gives a job, which will have the answer."""

    @overload
    def __get__(self, instance: Sync, owner: type) -> Callable[P, Job[T]]: ...
    @overload
    def __get__(self, instance: Async, owner: type) -> Callable[P, Coroutine[Any, Any, AsyncJob[T]]]: ...


def method(call: Callable[P, Request[T]] | Callable[P, Flow[T]]) -> Method[P, T]:
    """The method of a call."""

    def function(self: Any, *args: Any, **options: Any) -> Any:
        return self.run(_flow(call(*args, **options)))

    return cast(Method[P, T], _like(function, call))


def iterating(call: Callable[P, Stream[T]]) -> Iterating[P, T]:
    """The method of a call that hands out values."""

    def function(self: Any, *args: Any, **options: Any) -> Any:
        return self.iterate(call(*args, **options).flow)

    return cast(Iterating[P, T], _like(function, call))


def starting(call: Callable[P, Flow[str]]) -> Starting[P, dict[str, Any]]:
    """The method of a call that begins a job whose result is a document."""

    def function(self: Any, *args: Any, **options: Any) -> Any:
        return self.started(call(*args, **options))

    return cast(Starting[P, dict[str, Any]], _like(function, call))


def of_job(
    call: Callable[Concatenate[str, P], Request[T]] | Callable[Concatenate[str, P], Flow[T]],
) -> Method[P, T]:
    """The method, of an object that stands for a job, of a call whose first argument is the job."""

    def function(self: Any, *args: Any, **options: Any) -> Any:
        return self.run(_flow(call(self.id, *args, **options)))

    return cast(Method[P, T], _like(function, call, named=1))


def events_of_job(call: Callable[Concatenate[str, P], Stream[T]]) -> Iterating[P, T]:
    """The method, of an object that stands for a job, of a call that hands out values of the job."""

    def function(self: Any, *args: Any, **options: Any) -> Any:
        return self.iterate(call(self.id, *args, **options).flow)

    return cast(Iterating[P, T], _like(function, call, named=1))


def _flow(asked: Request[T] | Flow[T]) -> Flow[T]:
    return exchange(asked) if isinstance(asked, Request) else asked


def _like(function: Callable[..., Any], call: Callable[..., Any], named: int = 0) -> Callable[..., Any]:
    """The function with the name, the text and the parameters of a call, but for so many that it knows by itself."""
    update_wrapper(function, call)
    del function.__dict__["__wrapped__"]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *list(inspect.signature(call).parameters.values())[named:]]
    vars(function)["__signature__"] = inspect.Signature(parameters)
    return function
