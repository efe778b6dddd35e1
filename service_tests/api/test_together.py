import asyncio
from typing import Any

import numpy as np
import pytest

from app.api.admission import AT_ONCE, BRIEF, Admission, Asked, Together
from app.core.arrays import Array
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap, FourierMap
from app.core.progress import Pause, no_pause
from app.settings import Settings
from service_tests.core.combinations import rows
from service_tests.core.specs import fourier

FEW = 100


class Counted(FourierMap):
    """A map that notes how many rows it is given at a time."""

    sizes: list[int]

    def transform(self, rows: Any, pause: Pause = no_pause) -> Array:
        self.sizes.append(len(rows))
        return super().transform(rows, pause)


@pytest.fixture
def counted() -> Counted:
    made = fourier(seed=3)
    found = Counted(made.spec, dict(made.arrays))
    found.sizes = []
    return found


def posted(counted: FeatureMap, n: int) -> list[Any]:
    return [rows(1 + i % 3, i, counted.spec.input_dim, "float32") for i in range(n)]


def served(counted: FeatureMap, each: list[Any], steps: int, late: list[Any] | None = None) -> list[Any]:
    """What requests get that come in one turn of the loop, and those that come late, while these are computed."""

    async def serve() -> list[Any]:
        together = Together(Admission(Settings(threads=1)))
        asked = [asyncio.ensure_future(together.features(counted, one, steps)) for one in each]
        if late:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            asked += [asyncio.ensure_future(together.features(counted, one, steps)) for one in late]
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(serve())


@pytest.mark.parametrize("steps", [FEW, AT_ONCE, BRIEF // 4])
def test_requests_of_one_turn_are_computed_together_and_get_what_they_would_alone(counted: Counted, steps: int) -> None:
    each = posted(counted, 7)
    found = served(counted, each, steps)
    at_once = sum(map(len, each)) if steps < BRIEF // 7 else None
    assert counted.sizes == ([at_once] if at_once else [len(one) for one in (np.vstack(each[:4]), np.vstack(each[4:]))])
    for one, features in zip(each, found, strict=True):
        assert features.tobytes() == counted.transform(one).tobytes()


def test_a_bad_row_refuses_its_own_request_only(counted: Counted) -> None:
    each = posted(counted, 5)
    each[2] = np.full_like(each[2], 3e38)
    found = served(counted, each, FEW)
    assert isinstance(found[2], InvalidInput)
    for i in (0, 1, 3, 4):
        assert found[i].tobytes() == counted.transform(each[i]).tobytes()


def test_a_client_that_leaves_takes_nothing_from_the_others(counted: Counted) -> None:
    each = posted(counted, 3)

    async def leave() -> list[Any]:
        together = Together(Admission(Settings(threads=1)))
        asked = [asyncio.ensure_future(together.features(counted, one, FEW)) for one in each]
        await asyncio.sleep(0)
        asked[1].cancel()
        found = await asyncio.gather(*asked, return_exceptions=True)
        return [*found, await together.features(counted, each[1], FEW)]  # the map serves on

    first, left, third, after = asyncio.run(leave())
    assert isinstance(left, asyncio.CancelledError)
    assert (len(first), len(third), len(after)) == (len(each[0]), len(each[2]), len(each[1]))


def test_a_question_is_shared_by_those_who_ask_before_it_is_put() -> None:
    put: list[str] = []

    async def answer(about: str) -> int:
        put.append(about)
        await asyncio.sleep(0.01)
        return len(put)

    async def ask() -> list[int]:
        asked = Asked(answer)
        first = [asyncio.ensure_future(asked(about)) for about in ("a", "a", "b", "a")]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert put == ["a", "b"]
        first.append(asyncio.ensure_future(asked("a")))  # a new answer, though one is on its way
        first[0].cancel()
        return [one for one in await asyncio.gather(*first, return_exceptions=True) if isinstance(one, int)]

    assert len(asyncio.run(ask())) == 4
    assert put == ["a", "b", "a"]
