"""Calls for maps: create, list, read, export, delete, and fetch their frozen arrays."""

from collections.abc import Mapping
from typing import Any, Literal

from numpy.typing import DTypeLike

from bochner_client.arrays import Array, accepting, as_array
from bochner_client.calls.jobs import wait_for_job
from bochner_client.exchange import exchange, paged
from bochner_client.pages import MapPage
from bochner_client.progress import Progress
from bochner_client.records import MapPreview, MapRecord
from bochner_client.requests import (
    JSON,
    Body,
    Flow,
    Request,
    Stream,
    address,
    as_bytes,
    as_json,
    as_nothing,
    last_segment,
    preconditions,
    tagged,
    unless_known,
    written_json,
)


def put_map(
    name: str,
    spec: Mapping[str, Any] | bytes,
    *,
    ttl: int | None = None,
    if_match: str | None = None,
    only_new: bool = False,
    wait: bool = True,
    progress: Progress = False,
    timeout: float | None = None,
) -> Flow[MapRecord]:
    """Create a map, unless the same map exists; wait until it is ready.

    Args:
        name: name of the map.
        spec: the spec, as the HTTP API defines it; bytes are sent unchanged.
        ttl: seconds that the map lives after its last use; None for ever.
        if_match: digest that an existing map with the name must have.
        only_new: whether to fail if a map with the name exists.
        wait: whether to wait for the job that builds the map, if there is one. Otherwise the status of the record may
            be `building`.
        progress: how to show the progress of the job; see `Job.wait`.
        timeout: seconds to wait for the job.

    Returns:
        The record of the map.

    Raises:
        MapExists: the name is taken by another map.
        InvalidInput: the spec is not valid.
        PreconditionFailed: the condition of `if_match` or `only_new` is not met.
        JobFailed: the map could not be built.
        TimeoutError: the map was not ready in time; the job goes on.
    """
    record = yield from exchange(
        Request(
            method="PUT",
            path=address("v1", "maps", name),
            params={"ttl": ttl},
            headers=preconditions(if_match, only_new),
            body=_spec_body(spec),
            reads=as_json(MapRecord.read, 200, 201, 202),
            repeatable=not only_new,  # a repetition would find the map that the first request made
        )
    )
    if wait and record.job is not None:
        yield from wait_for_job(last_segment(record.job), timeout=timeout, progress=progress)
        return (yield from exchange(get_map(name)))
    return record


def preview_map(name: str, spec: Mapping[str, Any] | bytes) -> Request[MapPreview]:
    """Return what `put_map` would make, and at what cost: everything is checked, nothing is stored."""
    return Request(
        method="PUT",
        path=address("v1", "maps", name),
        params={"dry_run": True},
        body=_spec_body(spec),
        reads=as_json(MapPreview.read),
    )


def get_map(name: str, *, if_none_match: str | None = None) -> Request[MapRecord]:
    """Return the record of a map; NotModified if the map still has the digest `if_none_match`."""
    return Request(
        method="GET",
        path=address("v1", "maps", name),
        headers=tagged("If-None-Match", if_none_match),
        reads=unless_known(as_json(MapRecord.read)),
    )


def list_maps(prefix: str = "", *, limit: int = 100, cursor: str | None = None) -> Request[MapPage]:
    """Return one page of the maps whose names begin with `prefix`, in order of their names.

    Args:
        prefix: beginning of the names.
        limit: most maps on the page.
        cursor: `next` of the previous page; None for the first page.
    """
    return Request(
        method="GET",
        path="/v1/maps",
        params={"prefix": prefix, "limit": limit, "cursor": cursor},
        reads=as_json(MapPage.read),
    )


def iter_maps(prefix: str = "") -> Stream[MapRecord]:
    """Iterate over all maps whose names begin with `prefix`, in order of their names."""
    return paged(lambda cursor: list_maps(prefix, cursor=cursor), lambda page: page.maps)


def delete_map(name: str, *, if_match: str | None = None) -> Request[None]:
    """Delete a map and everything stored for it; PreconditionFailed if it has another digest than `if_match`."""
    return Request(
        method="DELETE",
        path=address("v1", "maps", name),
        headers=preconditions(if_match),
        reads=as_nothing(),
        done_by=frozenset({"map-not-found"}),
    )


def get_array(name: str, array: str, *, dtype: DTypeLike | None = None, out: Array | None = None) -> Request[Array]:
    """Fetch a frozen array of a map.

    Args:
        name: name of the map.
        array: name of the array; the catalogue lists those of each sampler.
        dtype: dtype of the result; None for that of the array.
        out: array to write the result into; None for a new array.

    Raises:
        ArrayNotFound: the map has no such array.
    """
    return Request(
        method="GET",
        path=address("v1", "maps", name, array),
        headers=accepting(dtype if out is None else out.dtype),
        reads=as_array(dtype, out),
    )


def export_map(
    name: str, file_format: Literal["onnx", "safetensors", "npz"], *, if_none_match: str | None = None
) -> Request[bytes]:
    """Return the bytes of a file of the map; NotModified if the map still has the digest `if_none_match`."""
    return Request(
        method="GET",
        path=address("v1", "maps", name, "export"),
        params={"format": file_format},
        headers=tagged("If-None-Match", if_none_match),
        reads=unless_known(as_bytes("application/zip" if file_format == "npz" else "application/octet-stream")),
    )


def _spec_body(spec: Mapping[str, Any] | bytes) -> Body:
    return Body(JSON, (spec,)) if isinstance(spec, bytes) else written_json(spec)
