import asyncio
from typing import Any

import numpy as np

from bochner_client import AsyncClient, MapNotFound
from service_tests.running import Running


def test_calls_run_side_by_side(running: Running, standing: dict[str, str]) -> None:
    async def features() -> list[bool]:
        async with AsyncClient(running.url) as client:
            rows = [np.full((5, 3), i, np.float32) for i in range(30)]
            together = await asyncio.gather(*(client.transform(standing["phase"], one) for one in rows))
            alone = [await client.transform(standing["phase"], one) for one in rows]
            return [np.array_equal(a, b) for a, b in zip(alone, together, strict=True)]

    assert all(asyncio.run(features()))


def test_one_failure_leaves_the_others_alone(running: Running, standing: dict[str, str]) -> None:
    async def asked() -> Any:
        async with AsyncClient(running.url) as client:
            calls = (client.get_map(one) for one in (standing["phase"], "none", standing["gmm"]))
            return await asyncio.gather(*calls, return_exceptions=True)

    first, second, third = asyncio.run(asked())
    assert isinstance(second, MapNotFound)
    assert [getattr(one, "name", "") for one in (first, third)] == [standing["phase"], standing["gmm"]]
