"""Calls that have a job copy an index, or measure its recall."""

from collections.abc import Mapping
from typing import Any

from bochner_client.calls.indexes import Keep, get_index
from bochner_client.calls.jobs import wait_for_job, wait_for_result
from bochner_client.exchange import exchange
from bochner_client.progress import Progress
from bochner_client.records import IndexRecord, Recall
from bochner_client.requests import Flow, Request, address, as_json, written_json

AS_SOURCE: Any = object()
"""Says that a copy has the bands of the index to copy."""


def copy_index(
    name: str,
    source: str,
    *,
    map: str | None = None,  # noqa: A002 - as the contract has it
    bands: int | None = AS_SOURCE,
    rows_per_band: int | None = AS_SOURCE,
    target: Mapping[str, Any] | None = None,
    keep: Keep | None = None,
    ttl: int | None = None,
    timeout: float | None = None,
    progress: Progress = False,
) -> Flow[IndexRecord]:
    """Copy all vectors of an index into another one, with their tags; wait until they are there.

    Args:
        name: name of the copy, which is made if it does not exist.
        source: name of the index to copy.
        map: name of another map; the index to copy must keep vectors. None for the same map.
        bands: number of bands of the copy, None for none; by default, those of the index to copy.
        rows_per_band: number of codes in a band.
        target: `recall` and `min_similarity` to choose the bands by.
        keep: what the copy keeps; None for what the index to copy keeps.
        ttl: seconds that the copy lives after its last use; None for ever.
        timeout: seconds to wait for the job.
        progress: True for a progress bar, or a function that is called with each event of the job.

    Returns:
        The record of the copy.

    Raises:
        InvalidInput: the copy needs vectors, and the index keeps codes alone; or the map is for other rows.
        IndexExists: the name is taken by another index.
        JobFailed: the job failed, for example because an index was deleted meanwhile.
        TimeoutError: the job has not ended in time. It goes on.
    """
    job = yield from start_copy(
        name, source, map=map, bands=bands, rows_per_band=rows_per_band, target=target, keep=keep, ttl=ttl
    )
    yield from wait_for_job(job, timeout=timeout, progress=progress)
    return (yield from exchange(get_index(name)))


def start_copy(
    name: str,
    source: str,
    *,
    map: str | None = None,  # noqa: A002 - as the contract has it
    bands: int | None = AS_SOURCE,
    rows_per_band: int | None = AS_SOURCE,
    target: Mapping[str, Any] | None = None,
    keep: Keep | None = None,
    ttl: int | None = None,
) -> Flow[str]:
    """Start a job that copies an index; arguments are those of `copy_index`."""
    members = {"from": source, "map": map, "target": target, "keep": keep}
    body: dict[str, Any] = {member: value for member, value in members.items() if value is not None}
    banding = {"bands": bands, "rows_per_band": bands and rows_per_band}
    body |= {member: value for member, value in banding.items() if value is not AS_SOURCE}
    return (yield from _started(name, "copy", body, ttl))


def measure_recall(
    name: str,
    *,
    k: int = 10,
    queries: int = 100,
    seed: int = 0,
    timeout: float | None = None,
    progress: Progress = False,
) -> Flow[Recall]:
    """Measure what searches of an index find of the nearest vectors, and what loses the others.

    Args:
        name: name of the index.
        k: number of nearest vectors that a search is to find.
        queries: number of vectors of the index that are the queries, chosen at random.
        seed: seed of the choice.
        timeout: seconds to wait for the job that measures it.
        progress: True for a progress bar, or a function that is called with each event of the job.

    Raises:
        JobFailed: the job failed, for example because there are too few vectors.
        TimeoutError: the job has not ended in time. It goes on.
    """
    job = yield from start_recall(name, k=k, queries=queries, seed=seed)
    return Recall.read((yield from wait_for_result(job, timeout=timeout, progress=progress)))


def start_recall(name: str, *, k: int = 10, queries: int = 100, seed: int = 0) -> Flow[str]:
    """Start a job that measures the recall of an index; arguments are those of `measure_recall`."""
    return (yield from _started(name, "recall", {"k": k, "queries": queries, "seed": seed}))


def _started(name: str, what: str, body: Mapping[str, Any], ttl: int | None = None) -> Flow[str]:
    request = Request(
        method="POST",
        path=address("v1", "indexes", name, what),
        params={} if ttl is None else {"ttl": ttl},
        headers={"Prefer": "respond-async"},
        body=written_json(body),
        reads=as_json(lambda record: str(record["id"]), 202),
    )
    return (yield from exchange(request))
