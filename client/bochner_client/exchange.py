"""Sends a request until it is answered: again where the service is away or busy, if that does no harm."""

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


def exchange(request: Request[T]) -> Flow[T]:
    """The answer to a request.

    It is sent again after what may pass: no connection, an answer that broke off, 408, 429, 502, 503, 504. The pauses
    grow from a tenth of a second to eight, are of random length, and are never shorter than `Retry-After` says. Where
    the next pause would end past the client's patience, the last failure is raised.
    """
    found: T = yield from _exchanged(request, keep_open=False)
    return found


def opened(request: Request[Any], until: float = math.inf) -> Flow[Any]:
    """An open stream of the answer's bytes, sent for as `exchange` sends; None if the answer has no body.

    `until` is a moment, as `time.monotonic` tells it, after which it is not sent again.
    """
    return _exchanged(request, keep_open=True, until=until)


def _exchanged(request: Request[Any], keep_open: bool, until: float = math.inf) -> Flow[Any]:
    patience: float = yield Patience()
    ends_at: float | None = None
    pause, may_be_done = _FIRST_PAUSE_SECONDS, False
    while True:
        if not keep_open:
            yield Turn()
        if ends_at is None:  # to wait for the first turn takes no patience
            ends_at = min(until, time.monotonic() + (patience if request.patient else 0.0))
        failure: Refused | ServiceAway
        try:
            return (yield Attempt(request, keep_open))
        except ServiceAway as error:
            failure, wait = error, 0.0
            unsent = error.unsent
        except Refused as error:
            if may_be_done and error.slug in request.done_by:
                return None
            if not isinstance(error, Unavailable | RequestTimeout):
                raise
            failure, wait = error, error.retry_after or 0.0
            # Who is overloaded has done nothing; of all else nobody knows.
            unsent = isinstance(error, Overloaded | RequestTimeout)
        may_be_done = may_be_done or not unsent
        wait += random.uniform(pause / 2, pause)  # noqa: S311 (clients are only to come at different times)
        if time.monotonic() + wait > ends_at or not (unsent or request.repeatable):
            raise failure
        yield Sleep(wait)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def paged(ask: Callable[[str | None], Request[P]], records: Callable[[P], Iterable[T]]) -> Stream[T]:
    """The records of all pages. `ask` gives the request of the page at a cursor, `records` what a page has."""

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
