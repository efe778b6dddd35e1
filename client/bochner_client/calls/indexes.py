"""Indexes: create, list, look at, delete; put vectors into them, take them out, search, find duplicates."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from bochner_client.calls.jobs import wait_for_job, wait_for_result
from bochner_client.exchange import exchange, paged
from bochner_client.pages import IndexPage
from bochner_client.progress import Progress
from bochner_client.records import Duplicates, IndexRecord, SearchResult
from bochner_client.requests import (
    Flow,
    Request,
    Stream,
    address,
    as_json,
    as_nothing,
    last_segment,
    written_json,
)
from bochner_client.rows import Rows, as_member, listed, sample_members

Keep = Literal["codes", "vectors"]
"""What an index keeps of vectors."""


def put_index(
    name: str,
    map: str,  # noqa: A002 - as the contract has it
    *,
    bands: int | None = None,
    rows_per_band: int | None = None,
    target: Mapping[str, Any] | None = None,
    keep: Keep = "codes",
    ttl: int | None = None,
    wait: bool = True,
    progress: Progress = False,
    timeout: float | None = None,
) -> Flow[IndexRecord]:
    """Make an index over a map, or find that the same one is there; wait until it is ready.

    Args:
        name: the index's name.
        map: name of a map that gives codes. It stays as long as the index does.
        bands: a search looks at the vectors that agree in all codes of one of so many bands; without, at all codes.
        rows_per_band: codes of a band.
        target: in the place of bands, what searches are to find: `recall`, `k`, and the name of a `dataset` of rows
            like those that the index will hold.
        keep: `vectors` for the best candidates to be compared exactly.
        ttl: seconds that it lives after its last use; until it is deleted without it.
        wait: whether to follow the job that finds bands for a target, if it takes one. Otherwise the record may say
            `building`.
        progress: how that job shows; see `Job.wait`.
        timeout: seconds to wait for it.

    Raises:
        IndexExists: another one has the name.
        MapNotFound: there is no such map.
        InvalidInput: nothing has the recall of the target.
        JobFailed: it could not be made.
        TimeoutError: it was not made in time; the job goes on.
    """
    asked = {"map": map, "bands": bands, "rows_per_band": rows_per_band, "target": target, "keep": keep}
    record = yield from exchange(
        Request(
            method="PUT",
            path=address("v1", "indexes", name),
            params={"ttl": ttl},
            body=written_json({member: value for member, value in asked.items() if value is not None}),
            reads=as_json(IndexRecord.read, 200, 201, 202),
        )
    )
    if wait and record.job is not None:
        yield from wait_for_job(last_segment(record.job), timeout=timeout, progress=progress)
        return (yield from exchange(get_index(name)))
    return record


def get_index(name: str) -> Request[IndexRecord]:
    """Look at an index."""
    return Request(method="GET", path=address("v1", "indexes", name), reads=as_json(IndexRecord.read))


def list_indexes(prefix: str = "", *, limit: int = 100, cursor: str | None = None) -> Request[IndexPage]:
    """One page of the indexes whose names begin so, in order of their names."""
    return Request(
        method="GET",
        path="/v1/indexes",
        params={"prefix": prefix, "limit": limit, "cursor": cursor},
        reads=as_json(IndexPage.read),
    )


def iter_indexes(prefix: str = "") -> Stream[IndexRecord]:
    """All indexes whose names begin so, in order of their names."""
    return paged(lambda cursor: list_indexes(prefix, cursor=cursor), lambda page: page.indexes)


def delete_index(name: str) -> Request[None]:
    """Delete an index and all that it holds."""
    return Request(
        method="DELETE",
        path=address("v1", "indexes", name),
        reads=as_nothing(),
        done_by=frozenset({"index-not-found"}),
    )


def upsert_vectors(
    name: str, ids: Iterable[object] | None, vectors: Rows, tags: Iterable[object] | None = None
) -> Request[int]:
    """Put vectors into an index, in the place of those with the same ids: all of them, or none. How many they are.

    Args:
        name: the index's name.
        ids: whole numbers or strings, each once, as a list, an array or a column of a frame; None for those that a
            dataset has.
        vectors: the rows, one for each id.
        tags: one for each, for searches to go by; None, or a missing value, for those without.

    Raises:
        InvalidInput: a row has no codes, or ids or tags are none.
        TooLarge: they are too many for one request, or for the memory of the service.
        QuotaExceeded: there is no room for them.
    """
    body: dict[str, Any] = {"vectors": as_member(vectors)}
    if ids is not None:
        body["ids"] = listed(ids, "ids")
    if tags is not None:
        body["tags"] = listed(tags, "tags")
    return Request(
        method="POST",
        path=address("v1", "indexes", name, "vectors"),
        body=written_json(body),
        reads=as_json(lambda document: int(document["upserted"])),
    )


def delete_vector(name: str, id: int | str) -> Request[None]:  # noqa: A002 - as the contract has it
    """Take a vector out of an index; VectorNotFound if there is none of this id."""
    return Request(
        method="DELETE",
        path=address("v1", "indexes", name, "vectors", str(id)),
        params={"kind": "string" if isinstance(id, str) else "integer"},
        reads=as_nothing(),
        done_by=frozenset({"vector-not-found"}),
    )


def search_index(
    name: str,
    vectors: Rows,
    k: int = 10,
    *,
    min_similarity: float | None = None,
    exact: bool | None = None,
    tag: str | None = None,
) -> Request[tuple[SearchResult, ...]]:
    """The vectors of an index that are nearest to each row, best first: a result for each row.

    Args:
        name: the index's name.
        vectors: the rows.
        k: most vectors for each.
        min_similarity: the similarity that a vector must have.
        exact: whether the best candidates are compared exactly; without it, where vectors are kept.
        tag: the tag that a vector must have.

    Raises:
        InvalidInput: a row has no codes, or exact similarities are asked of an index that keeps codes alone.
        TooLarge: it is too much for one request.
    """
    asked = {"k": k, "min_similarity": min_similarity, "exact": exact, "tag": tag}
    options = {member: value for member, value in asked.items() if value is not None}
    return Request(
        method="POST",
        path=address("v1", "indexes", name, "search"),
        body=written_json({**sample_members(vectors), **options}),
        reads=as_json(lambda document: tuple(map(SearchResult.read, document["results"]))),
    )


def find_duplicates(
    name: str, min_similarity: float, *, timeout: float | None = None, progress: Progress = False
) -> Flow[Duplicates]:
    """The clusters of vectors of an index whose estimated similarity is as large, or that such vectors join.

    Args:
        name: the index's name.
        min_similarity: above 0, at most 1. The lower it is, the longer it takes.
        timeout: seconds to wait for the job that finds them.
        progress: True for a progress bar, or a function that is told of each event of the job.

    Raises:
        JobFailed: the job failed, as of an index that was deleted meanwhile.
        TimeoutError: the job had not ended in time. It goes on.
    """
    job = yield from start_duplicates(name, min_similarity)
    return Duplicates.read((yield from wait_for_result(job, timeout=timeout, progress=progress)))


def start_duplicates(name: str, min_similarity: float) -> Flow[str]:
    """Have a job find the duplicates in an index; arguments are those of `find_duplicates`."""
    request = Request(
        method="POST",
        path=address("v1", "indexes", name, "duplicates"),
        headers={"Prefer": "respond-async"},
        body=written_json({"min_similarity": min_similarity}),
        reads=as_json(lambda record: str(record["id"]), 202),
    )
    return (yield from exchange(request))
