"""Calls for indexes: create, list, read, delete; add, delete and search vectors, find duplicates."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from bochner_client.arrays import as_numbers
from bochner_client.calls.jobs import get_job_result, wait_for_job, wait_for_result
from bochner_client.calls.service import info
from bochner_client.exchange import exchange, paged
from bochner_client.pages import IndexPage, VectorPage
from bochner_client.progress import Progress
from bochner_client.records import (
    ChangedTags,
    DeletedVectors,
    Duplicates,
    IndexRecord,
    PlannedBands,
    RefusedVector,
    SearchResult,
    Upserted,
    VectorRecord,
)
from bochner_client.refusals import TooLarge
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
from bochner_client.rows import DatasetRows, Rows, as_member, is_sparse, listed, sample_members

# From how many vectors on, or bytes of them, a batch may be too large; and bytes of an entry of a sparse row in JSON.
_MANY, _MANY_BYTES, _BYTES_PER_ENTRY = 10_000, 1 << 25, 32
_DUPLICATES_ON_A_PAGE = 10_000

Keep = Literal["codes", "vectors"]
"""Content that an index stores for each vector."""


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
    """Create an index over a map, unless the same index exists; wait until it is ready.

    Args:
        name: name of the index.
        map: name of a map that can compute codes. The map is kept as long as the index exists.
        bands: number of bands: a search only looks at vectors that agree in all codes of one of them. None to scan all
            codes.
        rows_per_band: number of codes in a band.
        target: what searches are to find, to choose the bands by: `recall`, `k`, and the name of a `dataset` of rows
            like those that the index will hold. `serves` of the record says whether searches reach it.
        keep: `codes`, or `vectors` to compare the best candidates exactly.
        ttl: seconds that the index lives after its last use; None for until it is deleted.
        wait: whether to wait for the job that finds bands for a target, if there is one. Otherwise the status of the
            record may be `building`.
        progress: how to show the progress of the job; see `Job.wait`.
        timeout: seconds to wait for the job.

    Returns:
        The record of the index.

    Raises:
        IndexExists: the name is taken by another index.
        MapNotFound: the map does not exist.
        InvalidInput: the map has no codes, or the bands or the dataset do not fit it.
        JobFailed: the index could not be made.
        TimeoutError: the index was not ready in time; the job goes on.
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
    """Return the record of an index."""
    return Request(method="GET", path=address("v1", "indexes", name), reads=as_json(IndexRecord.read))


def list_indexes(prefix: str = "", *, limit: int = 100, cursor: str | None = None) -> Request[IndexPage]:
    """Return one page of the indexes whose names begin with `prefix`, in order of their names.

    Args:
        prefix: beginning of the names.
        limit: most indexes on the page.
        cursor: `next` of the previous page; None for the first page.
    """
    return Request(
        method="GET",
        path="/v1/indexes",
        params={"prefix": prefix, "limit": limit, "cursor": cursor},
        reads=as_json(IndexPage.read),
    )


def iter_indexes(prefix: str = "") -> Stream[IndexRecord]:
    """Iterate over all indexes whose names begin with `prefix`, in order of their names."""
    return paged(lambda cursor: list_indexes(prefix, cursor=cursor), lambda page: page.indexes)


def delete_index(name: str) -> Request[None]:
    """Delete an index with all its vectors."""
    return Request(
        method="DELETE",
        path=address("v1", "indexes", name),
        reads=as_nothing(),
        done_by=frozenset({"index-not-found"}),
    )


def upsert_vectors(
    name: str,
    ids: Iterable[object] | None,
    vectors: Rows,
    tags: Iterable[object] | None = None,
    *,
    on_zero: Literal["refuse", "skip"] = "refuse",
    unless_similar: float | None = None,
    dry_run: bool = False,
) -> Flow[Upserted]:
    """Put vectors into an index, replacing those with the same ids. Either all vectors are put or none.

    More than 10,000 vectors, or 32 MB, are sent in batches as large as the service takes, one after the other. Each of
    them is put as a whole. If one is refused, those before it are there.

    With `unless_similar`, vectors that are similar to others are refused, and all others put, whatever other clients do
    at the same time.

    Args:
        name: name of the index.
        ids: distinct whole numbers or strings, as a list, an array or a column of a data frame; None for the ids of a
            dataset.
        vectors: the rows, one for each id.
        tags: a tag or a list of tags for each vector, by which searches can filter; missing values for vectors
            without a tag. Without `tags`, vectors that are replaced keep theirs.
        on_zero: `skip` to leave out vectors that are all zero, which kernel gmm gives no codes.
        unless_similar: similarity from which a vector is refused, to one of the index or one before it in `vectors`.
        dry_run: whether to return what would be done, and store nothing.

    Returns:
        The number of vectors that are put. Its `skipped` has the ids of those left out. With `unless_similar`, its
        `inserted` and `refused` say which vectors are put, and which are like others.

    Raises:
        InvalidInput: a row has no codes, or ids or tags are not valid.
        TooLarge: there are too many vectors for one request, or for the memory of the service.
        QuotaExceeded: there is no room for the vectors.
    """
    keys = None if ids is None else listed(ids, "ids")
    labels = None if tags is None else listed(tags, "tags")
    params = {
        "on_zero": None if on_zero == "refuse" else on_zero,
        "unless_similar": unless_similar,
        "dry_run": dry_run or None,
    }
    found, parts = Upserted(0), [slice(None)]
    if keys is not None and not isinstance(vectors, DatasetRows):
        vectors = vectors.tocsr() if is_sparse(vectors) else as_numbers(cast(ArrayLike, vectors))
        parts = yield from _batches(len(keys), vectors)
    for part in parts:
        is_whole = len(parts) == 1
        body: dict[str, Any] = {"vectors": as_member(vectors if is_whole else vectors[part])}  # type: ignore[index]
        body |= {} if keys is None else {"ids": keys[part]}
        body |= {} if labels is None else {"tags": labels[part]}
        request = Request(
            method="POST",
            path=address("v1", "indexes", name, "vectors"),
            params=params,
            body=written_json(body),
            reads=as_json(_upserted),
        )
        one: Upserted = yield from exchange(request)
        total = Upserted(found + one)
        total.skipped, total.inserted = found.skipped + one.skipped, found.inserted + one.inserted
        total.refused = found.refused + one.refused
        found = total
    return found


def _batches(n: int, vectors: Any) -> Flow[list[slice]]:
    """Return the batches in which n vectors, an array or a CSR array, are sent."""
    nbytes = vectors.nbytes * 4 // 3 if isinstance(vectors, np.ndarray) else _BYTES_PER_ENTRY * vectors.nnz
    if vectors.shape[:1] != (n,) or (n <= _MANY and nbytes <= _MANY_BYTES):
        return [slice(None)]
    limits = (yield from exchange(info())).limits
    at_once = max(1, int(min(limits["max_index_batch"], limits["max_body_bytes"] * n // (2 * max(1, nbytes)))))
    return [slice(first, first + at_once) for first in range(0, n, at_once)]


def _upserted(document: Mapping[str, Any]) -> Upserted:
    found = Upserted(document["upserted"])
    found.skipped = (*document.get("skipped", ()),)
    found.inserted = (*document.get("inserted", ()),)
    found.refused = (*map(RefusedVector.read, document.get("refused", ())),)
    return found


def delete_vector(name: str, id: int | str) -> Request[None]:  # noqa: A002 - as the contract has it
    """Delete a vector from an index; VectorNotFound if the index has no vector with this id."""
    return Request(
        method="DELETE",
        path=address("v1", "indexes", name, "vectors", str(id)),
        params={"kind": "string" if isinstance(id, str) else "integer"},
        reads=as_nothing(),
        done_by=frozenset({"vector-not-found"}),
    )


def delete_vectors(
    name: str,
    ids: Iterable[object] | None = None,
    *,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - as the contract has it
) -> Request[DeletedVectors]:
    """Delete vectors of an index by their ids, or all whose tags fit a filter; see `search_index`.

    Returns:
        How many are deleted, and the ids without a vector.
    """
    body = {} if ids is None else {"ids": listed(ids, "ids")}
    return Request(
        method="POST",
        path=address("v1", "indexes", name, "vectors", "delete"),
        body=written_json(body if filter is None else {**body, "filter": filter}),
        reads=as_json(DeletedVectors.read),
    )


def change_tags(
    name: str, ids: Iterable[object], *, add: Iterable[str] = (), remove: Iterable[str] = ()
) -> Request[ChangedTags]:
    """Add tags to vectors of an index, and remove others.

    Returns:
        How many vectors now have other tags, and the ids without a vector.

    Raises:
        InvalidInput: a vector would have too many tags. None is changed.
    """
    body = {"ids": listed(ids, "ids"), "add_tags": [*add], "remove_tags": [*remove]}
    return Request(
        method="PATCH",
        path=address("v1", "indexes", name, "vectors"),
        body=written_json(body),
        reads=as_json(ChangedTags.read),
    )


def get_vector(name: str, id: int | str, *, vector: bool = False) -> Request[VectorRecord]:  # noqa: A002
    """Return a vector of an index: its tags and, with `vector`, its numbers, if the index keeps them.

    Raises:
        VectorNotFound: the index has no vector with this id.
    """
    return Request(
        method="GET",
        path=address("v1", "indexes", name, "vectors", str(id)),
        params={
            "kind": "string" if isinstance(id, str) else "integer",
            "include": "vector" if vector else None,
        },
        reads=as_json(VectorRecord.read),
    )


def list_vectors(
    name: str, *, tag: str | None = None, limit: int = 100, cursor: str | None = None
) -> Request[VectorPage]:
    """Return one page of the vectors of an index, with their tags.

    Args:
        name: name of the index.
        tag: tag that a vector must have.
        limit: most vectors on the page. There may be fewer, and yet a next page.
        cursor: `next` of the previous page; None for the first page.
    """
    return Request(
        method="GET",
        path=address("v1", "indexes", name, "vectors"),
        params={"limit": limit, "cursor": cursor, "tag": tag},
        reads=as_json(VectorPage.read),
    )


def iter_vectors(name: str, *, tag: str | None = None) -> Stream[VectorRecord]:
    """Iterate over all vectors of an index, or those with a tag.

    None that stays meanwhile is missed; one may come twice if others are deleted.
    """
    return paged(lambda cursor: list_vectors(name, tag=tag, limit=1000, cursor=cursor), lambda page: page.vectors)


def count_vectors(name: str, filter: Mapping[str, Any] | None = None) -> Request[int]:  # noqa: A002
    """Return the number of vectors of an index whose tags fit a filter; see `search_index`."""
    return Request(
        method="POST",
        path=address("v1", "indexes", name, "vectors", "count"),
        body=written_json({} if filter is None else {"filter": filter}),
        reads=as_json(lambda document: int(document["count"])),
    )


def search_index(
    name: str,
    vectors: Rows | None = None,
    k: int = 10,
    *,
    ids: Iterable[object] | None = None,
    first: int = 0,
    min_similarity: float | None = None,
    exact: bool | None = None,
    tag: str | None = None,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - as the contract has it
    include: Iterable[str] = (),
    scan: bool | None = None,
) -> Flow[tuple[SearchResult, ...]]:
    """Return the vectors of an index that are nearest to each row, best first.

    If these are more rows than the service takes, they are sent in several requests.

    Args:
        name: name of the index.
        vectors: the rows; None if `ids` are given.
        k: most vectors to return for each row.
        ids: ids of vectors of the index that are the rows. A vector is not among its own results.
        first: number of vectors that were returned already: the next ones follow.
        min_similarity: least similarity that a vector must have.
        exact: whether to compare the best candidates exactly; None to do so if the index keeps vectors.
        tag: tag that a vector must have.
        filter: `all`, `any` and `none`: lists of tags of which a vector must have all, one, and none.
        include: `["tags"]` for results with the tags of the vectors.
        scan: True to look at the codes of all vectors, although the index has bands.

    Returns:
        A result for each row.

    Raises:
        InvalidInput: a row has no codes, or `exact` is True for an index that keeps codes only.
        VectorNotFound: there is no vector with one of the ids.
        TooLarge: the search of one row, or of rows of a dataset, is too much work for one request.
    """
    asked: dict[str, Any] = {"k": k, "min_similarity": min_similarity, "exact": exact, "tag": tag, "scan": scan}
    asked |= {"cursor": str(first) if first else None, "filter": filter, "include": [*include] or None}
    options = {member: value for member, value in asked.items() if value is not None}
    keys = None if ids is None else listed(ids, "ids")
    if keys is None and vectors is not None and not isinstance(vectors, DatasetRows):
        vectors = vectors.tocsr() if is_sparse(vectors) else as_numbers(cast(ArrayLike, vectors))
        n = (*vectors.shape, 1)[0]
    else:
        n = 1 if keys is None else len(keys)
    found, first_row, at_once = list[SearchResult](), 0, n
    while True:
        part = slice(first_row, first_row + at_once)
        rows = vectors if keys is not None or at_once == n else vectors[part]  # type: ignore[index]
        request = Request(
            method="POST",
            path=address("v1", "indexes", name, "search"),
            body=written_json({**(sample_members(rows) if keys is None else {"ids": keys[part]}), **options}),
            reads=as_json(lambda document: tuple(map(SearchResult.read, document["results"]))),
        )
        try:
            found += yield from exchange(request)
        except TooLarge:
            if at_once <= 1:
                raise
            at_once = -(-at_once // 2)
            continue
        first_row += at_once
        if first_row >= n:
            return tuple(found)


def plan_bands(hashes: int, min_similarity: float, recall: float = 0.95) -> Request[PlannedBands]:
    """Return how to cut hashes of any MinHash into bands, so that similar pairs share one with probability `recall`.

    Args:
        hashes: hashes of a set or vector.
        min_similarity: the rate at which hashes of pairs agree that are to be found.
        recall: probability with which such a pair is to be found.
    """
    body = {"hashes": hashes, "min_similarity": min_similarity, "recall": recall}
    path = address("v1", "bands")
    return Request(method="POST", path=path, body=written_json(body), reads=as_json(PlannedBands.read))


def find_duplicates(
    name: str,
    min_similarity: float,
    *,
    answer: Literal["pairs", "clusters"] | None = None,
    exact: bool | None = None,
    linkage: Literal["single", "representative"] = "single",
    keep_which: Literal["first", "longest"] = "first",
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - as the contract has it
    timeout: float | None = None,
    progress: Progress = False,
) -> Flow[Duplicates]:
    """Find the pairs of vectors in an index that have at least the given similarity, or clusters of them.

    Args:
        name: name of the index.
        min_similarity: above 0, at most 1. The lower it is, the longer the search takes.
        answer: `pairs` for all pairs, `clusters` for clusters with the vector of each to keep; None for ids alone.
        exact: whether pairs are compared exactly whose estimates are within three standard errors of `min_similarity`.
            None: if `answer` is given and the index keeps vectors.
        linkage: `single` for clusters whose vectors are linked by pairs, `representative` for clusters of vectors that
            are all similar to the one to keep.
        keep_which: vector of a cluster to keep: the `first` id, or the `longest`, with the most entries that are not 0.
        filter: `{"all": [tags], "any": [tags], "none": [tags]}` that vectors must have; None for all vectors.
        timeout: seconds to wait for the job that finds them.
        progress: True for a progress bar, or a function that is called with each event of the job.

    Returns:
        The pairs or clusters, fetched page by page.

    Raises:
        JobFailed: the job failed, for example because the index was deleted meanwhile.
        TimeoutError: the job has not ended in time. It goes on.
    """
    job = yield from start_duplicates(
        name,
        min_similarity,
        answer=answer,
        exact=exact,
        linkage=linkage,
        keep_which=keep_which,
        filter=filter,
        limit=_DUPLICATES_ON_A_PAGE,
    )
    page = first = yield from wait_for_result(job, timeout=timeout, progress=progress)
    while (cursor := page["next"]) is not None:
        page = yield from get_job_result(job, cursor=cursor)
        for member in {"pairs", "clusters"} & page.keys():
            first[member] += page[member]
    return Duplicates.read(first)


def start_duplicates(
    name: str,
    min_similarity: float,
    *,
    answer: Literal["pairs", "clusters"] | None = None,
    exact: bool | None = None,
    linkage: Literal["single", "representative"] = "single",
    keep_which: Literal["first", "longest"] = "first",
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - as the contract has it
    limit: int | None = None,
) -> Flow[str]:
    """Start a job that finds the duplicates in an index; arguments are those of `find_duplicates`.

    With a `limit`, at least 1,000, the result has pages of at most so many pairs or clusters.
    """
    body: dict[str, Any] = {"min_similarity": min_similarity, "linkage": linkage, "keep_which": keep_which}
    body |= {"answer": answer, "exact": exact, "filter": filter, "limit": limit}
    request = Request(
        method="POST",
        path=address("v1", "indexes", name, "duplicates"),
        headers={"Prefer": "respond-async"},
        body=written_json({member: value for member, value in body.items() if value is not None}),
        reads=as_json(lambda record: str(record["id"]), 202),
    )
    return (yield from exchange(request))
