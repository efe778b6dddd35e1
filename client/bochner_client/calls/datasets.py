"""Calls for datasets: create, list, read, delete."""

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
    """Store rows under a name, for `ttl` seconds or until they are deleted.

    If the dataset exists with the same rows, its remaining lifetime is set to `ttl`.

    Args:
        name: name of the dataset.
        rows: the rows, or the path of a file of rows: .npy, .npz, .parquet, .arrows (an Arrow stream) or .json.
        ttl: seconds that the dataset lives; None for until it is deleted.
        if_match: digest that an existing dataset with the name must have.
        only_new: whether to fail if a dataset with the name exists.

    Returns:
        The record of the dataset.

    Raises:
        DatasetExists: the name is taken by other rows.
        PreconditionFailed: the condition of `if_match` or `only_new` is not met.
    """
    return Request(
        method="PUT",
        path=address("v1", "datasets", name),
        params={"ttl": ttl},
        headers=preconditions(if_match, only_new),
        body=dataset_body(rows),
        reads=as_json(DatasetRecord.read, 200, 201),
        repeatable=not only_new,  # a repetition would find the dataset that the first request made
    )


def get_dataset(name: str, *, if_none_match: str | None = None) -> Request[DatasetRecord]:
    """Return the record of a dataset; NotModified if the dataset still has the digest `if_none_match`."""
    return Request(
        method="GET",
        path=address("v1", "datasets", name),
        headers=tagged("If-None-Match", if_none_match),
        reads=unless_known(as_json(DatasetRecord.read)),
    )


def list_datasets(prefix: str = "", *, limit: int = 100, cursor: str | None = None) -> Request[DatasetPage]:
    """Return one page of the datasets whose names begin with `prefix`, in order of their names.

    Args:
        prefix: beginning of the names.
        limit: most datasets on the page.
        cursor: `next` of the previous page; None for the first page.
    """
    return Request(
        method="GET",
        path="/v1/datasets",
        params={"prefix": prefix, "limit": limit, "cursor": cursor},
        reads=as_json(DatasetPage.read),
    )


def iter_datasets(prefix: str = "") -> Stream[DatasetRecord]:
    """Iterate over all datasets whose names begin with `prefix`, in order of their names."""
    return paged(lambda cursor: list_datasets(prefix, cursor=cursor), lambda page: page.datasets)


def delete_dataset(name: str, *, if_match: str | None = None) -> Request[None]:
    """Delete a dataset and everything stored for it; PreconditionFailed if it has another digest than `if_match`."""
    return Request(
        method="DELETE",
        path=address("v1", "datasets", name),
        headers=preconditions(if_match),
        reads=as_nothing(),
        done_by=frozenset({"dataset-not-found"}),
    )
