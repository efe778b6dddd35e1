"""Datasets: create, list, look at, delete."""

from os import PathLike

from bochner_client.exchange import paged
from bochner_client.pages import DatasetPage
from bochner_client.records import DatasetRecord
from bochner_client.requests import Request, Stream, address, as_json, as_nothing, preconditions, tagged, unless_known
from bochner_client.rows import DenseOrSparse, dataset_body


def put_dataset(
    name: str,
    rows: DenseOrSparse | str | PathLike[str],
    *,
    ttl: int | None = None,
    if_match: str | None = None,
    only_new: bool = False,
) -> Request[DatasetRecord]:
    """Keep rows under a name, for `ttl` seconds or until they are deleted.

    If the same rows are there already, they now live as long as `ttl` says.

    Args:
        name: the dataset's name.
        rows: the rows; or the path of a file of them: .npy, .npz, .parquet, .arrows (an Arrow stream) or .json.
        ttl: seconds that it lives; until it is deleted without it.
        if_match: the digest that a dataset of the name has.
        only_new: whether to refuse to find one.

    Raises:
        DatasetExists: other rows have the name.
        PreconditionFailed: `if_match` or `only_new` does not hold.
    """
    return Request(
        method="PUT",
        path=address("v1", "datasets", name),
        params={"ttl": ttl},
        headers=preconditions(if_match, only_new),
        body=dataset_body(rows),
        reads=as_json(DatasetRecord.read, 200, 201),
        repeatable=not only_new,  # it would find what it has made itself
    )


def get_dataset(name: str, *, if_none_match: str | None = None) -> Request[DatasetRecord]:
    """Look at a dataset; NotModified if it still has the digest `if_none_match`."""
    return Request(
        method="GET",
        path=address("v1", "datasets", name),
        headers=tagged("If-None-Match", if_none_match),
        reads=unless_known(as_json(DatasetRecord.read)),
    )


def list_datasets(prefix: str = "", *, limit: int = 100, cursor: str | None = None) -> Request[DatasetPage]:
    """One page of the datasets whose names begin so, in order of their names."""
    return Request(
        method="GET",
        path="/v1/datasets",
        params={"prefix": prefix, "limit": limit, "cursor": cursor},
        reads=as_json(DatasetPage.read),
    )


def iter_datasets(prefix: str = "") -> Stream[DatasetRecord]:
    """All datasets whose names begin so, in order of their names."""
    return paged(lambda cursor: list_datasets(prefix, cursor=cursor), lambda page: page.datasets)


def delete_dataset(name: str, *, if_match: str | None = None) -> Request[None]:
    """Delete a dataset and everything kept for it; PreconditionFailed if it has another digest than `if_match`."""
    return Request(
        method="DELETE",
        path=address("v1", "datasets", name),
        headers=preconditions(if_match),
        reads=as_nothing(),
        done_by=frozenset({"dataset-not-found"}),
    )
