import asyncio

import numpy as np

from bochner_client import AsyncClient
from service_tests.running import Running


def test_calls_run_side_by_side(running: Running, standing: dict[str, str]) -> None:
    async def features() -> list[bool]:
        async with AsyncClient(running.url) as client:
            rows = [np.full((5, 3), i, np.float32) for i in range(30)]
            together = await asyncio.gather(*(client.transform(standing["phase"], one) for one in rows))
            alone = [await client.transform(standing["phase"], one) for one in rows]
            return [np.array_equal(a, b) for a, b in zip(alone, together, strict=True)]

    assert all(asyncio.run(features()))


def test_calls_that_are_given_up_are_in_nobodys_way(running: Running) -> None:
    async def asked() -> str:
        async with AsyncClient(running.url) as client:
            begun = [asyncio.create_task(client.info()) for _ in range(100)]
            for pause in (0.0, 0.005, 0.0):  # before, within and between requests
                await asyncio.sleep(pause)
                for task in begun[::3]:
                    task.cancel()
                begun = begun[1:]
            await asyncio.gather(*begun, return_exceptions=True)
            answers = await asyncio.wait_for(asyncio.gather(*(client.info() for _ in range(40))), 30)
            return answers[-1].versions["bochner"]

    assert asyncio.run(asked())
