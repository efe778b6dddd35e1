"""Send a request until it is answered: repeat it if the service is unavailable or busy and repetition is safe."""

import math
import random
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from bochner_client.errors import Refused, ServiceAway
from bochner_client.pages import Page
from bochner_client.refusals import Overloaded, RequestTimeout, Unavailable
from bochner_client.requests import Attempt, Flow, Give, Patience, Request, Sleep, Stream, Turn

T = TypeVar("T")
P = TypeVar("P", bound=Page)

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 8.0
_NEW_CLIENT_SECONDS = 2.0


def exchange(request: Request[T]) -> Flow[T]:
    """Send a request and return the answer.

    The request is repeated after failures that may be temporary: no connection, an interrupted answer, 408, 429, 502,
    503, 504. Pauses are of random length, grow from a tenth of a second to eight, and are never shorter than
    `Retry-After`. If the next pause would exceed the client's patience, the last failure is raised. A client that no
    service has answered yet has two seconds of patience with an address that cannot be reached.
    """
    found: T = yield from _exchanged(request, keep_open=False)
    return found


def opened(request: Request[Any], until: float = math.inf) -> Flow[Any]:
    """Send a request like `exchange`, and return an open stream of the answer's bytes; None if the answer has no body.

    The request is not repeated after the time `until` of `time.monotonic`.
    """
    return _exchanged(request, keep_open=True, until=until)


def _exchanged(request: Request[Any], keep_open: bool, until: float = math.inf) -> Flow[Any]:
    patience: float
    patience, is_new = yield Patience()
    ends_at: float | None = None
    pause, may_be_done = _FIRST_PAUSE_SECONDS, False
    while True:
        if not keep_open:
            yield Turn()
        if ends_at is None:  # waiting for the first turn does not count as patience
            began = time.monotonic()
            ends_at = min(until, began + (patience if request.patient else 0.0))
        failure: Refused | ServiceAway
        try:
            return (yield Attempt(request, keep_open))
        except ServiceAway as error:
            failure, wait = error, 0.0
            unsent = error.unsent
            if is_new and unsent:
                ends_at = min(ends_at, began + _NEW_CLIENT_SECONDS)
        except Refused as error:
            if may_be_done and error.slug in request.done_by:
                return None
            if not isinstance(error, Unavailable | RequestTimeout):
                raise
            failure, wait = error, error.retry_after or 0.0
            # An overloaded service, or one that waited in vain for the request, has done nothing; otherwise this is
            # unknown.
            unsent = isinstance(error, Overloaded | RequestTimeout)
        may_be_done = may_be_done or not unsent
        wait += random.uniform(pause / 2, pause)  # noqa: S311 (clients are only to come at different times)
        if time.monotonic() + wait > ends_at or not (unsent or request.repeatable):
            raise failure
        yield Sleep(wait)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def paged(ask: Callable[[str | None], Request[P]], records: Callable[[P], Iterable[T]]) -> Stream[T]:
    """Return a stream of all records; `ask` returns the request for the page at a cursor, `records` those of a page."""

    def flow() -> Flow[None]:
        cursor: str | None = None
        while True:
            page = yield from exchange(ask(cursor))
            for record in records(page):
                yield Give(record)
            cursor = page.next
            if cursor is None:
                return

    return Stream(flow())
