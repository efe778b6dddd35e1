import asyncio
from typing import Any

import pytest

from bochner_client import AsyncClient, Client
from service_tests.running import Running

SPEC = {"kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "monte_carlo"}, "input_dim": 3, "s": 4}


@pytest.mark.nightly
def test_jobs_are_awaited_side_by_side(jobs_service: Running, name: str) -> None:
    async def made() -> list[Any]:
        async with AsyncClient(jobs_service.url) as client:
            names = [f"{name}-{i}" for i in range(2)]
            records = [await client.put_map(one, SPEC, wait=False) for one in names]
            jobs = [client.job(record.job) for record in records if record.job is not None]
            seen = [event async for event in jobs[1].events()]
            assert seen[-1].state == "succeeded"
            return await asyncio.gather(*jobs)

    # A worker that is gone would have it wait for ever.
    assert [one.status for one in asyncio.run(asyncio.wait_for(made(), 120))] == ["ready", "ready"]


def test_a_job_is_named_by_its_id_or_its_link(client: Client) -> None:
    assert client.job("/v1/jobs/" + "0" * 24).id == client.job("0" * 24).id == "0" * 24
    assert repr(client.job("0" * 24)) == f"Job('{'0' * 24}')"


@pytest.mark.nightly
def test_who_gives_up_waiting_leaves_the_client_usable(jobs_service: Running, name: str) -> None:
    async def made() -> Any:
        async with AsyncClient(jobs_service.url) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.put_map(name, SPEC), 0.3)
            return await client.put_map(name, SPEC)

    assert asyncio.run(made()).status == "ready"
