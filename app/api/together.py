"""Work that waits at the same time is done together: questions to the store, and features of the same map."""

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from app.api.admission import Admission
from app.core.arrays import Array, Floats
from app.core.maps import FeatureMap

Answer = TypeVar("Answer")

AT_ONCE = 1 << 19
"""Multiplications that may be done on the event loop: 0.3 ms or less."""
BRIEF = 1 << 26
"""Multiplications that take some milliseconds."""


class Asked(Generic[Answer]):
    """A question. Those who ask it in the same turn of the event loop, and so before it is put, share the answer."""

    def __init__(self, ask: Callable[[str], Awaitable[Answer]]) -> None:
        self._ask = ask
        self._coming: dict[str, asyncio.Task[Answer]] = {}

    async def __call__(self, about: str) -> Answer:
        """The answer to a question that is put after this call, never one that was on its way before."""
        coming = self._coming.get(about)
        if coming is None:
            coming = self._coming[about] = asyncio.create_task(self._ask_soon(about))
            coming.add_done_callback(_hear)
        return await asyncio.shield(coming)  # who leaves takes it from nobody

    async def _ask_soon(self, about: str) -> Answer:
        await asyncio.sleep(0)
        del self._coming[about]
        return await self._ask(about)


def _hear(done: "asyncio.Future[Any]") -> None:
    """Keep a failure out of the log that nobody waits for any more."""
    if not done.cancelled():
        done.exception()


class _Request(NamedTuple):
    rows: Floats
    steps: int
    features: asyncio.Future[Array]


class Together:
    """Computes features of small requests, those that wait for the same map together.

    A request waits for one computation at most that has begun before. It gets the bits, or the refusal, that it would
    get alone. `batched` is told how many requests and rows were computed together.
    """

    def __init__(self, admission: Admission, batched: Callable[[int, int], None] = lambda *_: None) -> None:
        self._admission, self._batched = admission, batched
        self._waiting: dict[FeatureMap, list[_Request]] = {}
        """Of each map at work, those who wait for their turn."""
        self._work: set[asyncio.Task[None]] = set()

    async def features(self, feature_map: FeatureMap, rows: Floats, steps: int) -> Array:
        """The features of rows behind the gate, which take so many multiplications, no more than `BRIEF`."""
        request = _Request(rows, steps, asyncio.get_running_loop().create_future())
        if feature_map in self._waiting:
            self._waiting[feature_map].append(request)
        else:
            self._waiting[feature_map] = [request]
            work = asyncio.create_task(self._serve(feature_map))
            self._work.add(work)
            work.add_done_callback(self._work.discard)
        return await request.features

    async def _serve(self, feature_map: FeatureMap) -> None:
        """Compute until nobody waits for this map."""
        waiting = self._waiting[feature_map]
        try:
            await asyncio.sleep(0)  # others begin in this turn
            while waiting:
                steps = list(accumulate(one.steps for one in waiting))
                n = max(1, bisect_right(steps, BRIEF))
                self._batched(n, sum(len(one.rows) for one in waiting[:n]))
                compute = partial(_computed, feature_map, waiting[:n])
                admission, at_once = self._admission, steps[n - 1] <= AT_ONCE
                found = admission.at_once(compute) if at_once else await admission.compute(compute, brief=True)
                for one, features in zip(waiting[:n], found, strict=True):
                    if one.features.done():  # its client has gone
                        continue
                    if isinstance(features, Exception):
                        one.features.set_exception(features)
                    else:
                        one.features.set_result(features)
                del waiting[:n]
        finally:
            del self._waiting[feature_map]
            for one in waiting:  # none, unless this was ended from outside
                one.features.cancel()


def _computed(feature_map: FeatureMap, batch: list[_Request]) -> list[Array | Exception]:
    """The features of each request, or why there are none."""
    if len(batch) > 1:
        ends = np.cumsum([len(one.rows) for one in batch])
        with suppress(Exception):  # that of one request; below, each gets its own
            features = feature_map.transform(np.concatenate([one.rows for one in batch]))
            return [*np.split(features, ends[:-1])]
    return [_alone(feature_map, one.rows) for one in batch]


def _alone(feature_map: FeatureMap, rows: Floats) -> Array | Exception:
    try:
        return feature_map.transform(rows)
    except Exception as error:  # raised again in the request that it belongs to
        return error
