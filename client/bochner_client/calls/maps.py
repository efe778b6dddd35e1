"""Maps: create, list, look at, take away, delete; and their frozen arrays."""

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

FrozenArray = Literal[
    "frequencies",
    "weights",
    "offsets",
    "signature",
    "signs",
    "radii",
    "landmarks",
    "landmark_values",
    "landmark_columns",
    "landmark_ends",
    "root",
]
"""Arrays that a map may have."""


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
    """Create a map, or find that the same one is there; wait until it is ready.

    Args:
        name: the map's name.
        spec: what it is to be, as the contract says; bytes are sent as they are.
        ttl: seconds that it lives after its last use; for ever without it.
        if_match: the digest that a map of the name has.
        only_new: whether to refuse to find one.
        wait: whether to follow the job that builds it, if it takes one. Otherwise the record may say `building`.
        progress: how that job shows; see `Job.wait`.
        timeout: seconds to wait for it.

    Raises:
        MapExists: another map has the name.
        InvalidInput: there is no such map.
        PreconditionFailed: `if_match` or `only_new` does not hold.
        JobFailed: it could not be built.
        TimeoutError: it was not ready in time; the job goes on.
    """
    record = yield from exchange(
        Request(
            method="PUT",
            path=address("v1", "maps", name),
            params={"ttl": ttl},
            headers=preconditions(if_match, only_new),
            body=_spec_body(spec),
            reads=as_json(MapRecord.read, 200, 201, 202),
            repeatable=not only_new,  # it would find what it has made itself
        )
    )
    if wait and record.job is not None:
        yield from wait_for_job(last_segment(record.job), timeout=timeout, progress=progress)
        return (yield from exchange(get_map(name)))
    return record


def preview_map(name: str, spec: Mapping[str, Any] | bytes) -> Request[MapPreview]:
    """What `put_map` would make and cost: everything is checked, and nothing is stored."""
    return Request(
        method="PUT",
        path=address("v1", "maps", name),
        params={"dry_run": True},
        body=_spec_body(spec),
        reads=as_json(MapPreview.read),
    )


def get_map(name: str, *, if_none_match: str | None = None) -> Request[MapRecord]:
    """Look at a map; NotModified if it still has the digest `if_none_match`."""
    return Request(
        method="GET",
        path=address("v1", "maps", name),
        headers=tagged("If-None-Match", if_none_match),
        reads=unless_known(as_json(MapRecord.read)),
    )


def list_maps(prefix: str = "", *, limit: int = 100, cursor: str | None = None) -> Request[MapPage]:
    """One page of the maps whose names begin so, in order of their names."""
    return Request(
        method="GET",
        path="/v1/maps",
        params={"prefix": prefix, "limit": limit, "cursor": cursor},
        reads=as_json(MapPage.read),
    )


def iter_maps(prefix: str = "") -> Stream[MapRecord]:
    """All maps whose names begin so, in order of their names."""
    return paged(lambda cursor: list_maps(prefix, cursor=cursor), lambda page: page.maps)


def delete_map(name: str, *, if_match: str | None = None) -> Request[None]:
    """Delete a map and everything kept for it; PreconditionFailed if it has another digest than `if_match`."""
    return Request(
        method="DELETE",
        path=address("v1", "maps", name),
        headers=preconditions(if_match),
        reads=as_nothing(),
        done_by=frozenset({"map-not-found"}),
    )


def get_array(
    name: str, array: FrozenArray, *, dtype: DTypeLike | None = None, out: Array | None = None
) -> Request[Array]:
    """Fetch a frozen array of a map, as the dtype if one is named, into `out` if that is given.

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
    """Take a map away: the bytes of a file; NotModified if the map still has the digest `if_none_match`."""
    return Request(
        method="GET",
        path=address("v1", "maps", name, "export"),
        params={"format": file_format},
        headers=tagged("If-None-Match", if_none_match),
        reads=unless_known(as_bytes("application/zip" if file_format == "npz" else "application/octet-stream")),
    )


def _spec_body(spec: Mapping[str, Any] | bytes) -> Body:
    return Body(JSON, (spec,)) if isinstance(spec, bytes) else written_json(spec)
