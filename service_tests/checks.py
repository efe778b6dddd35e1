"""What many tests send and check."""

import io
import json
import struct
import time
from typing import Any

import httpx
import numpy as np
import redis
from arro3.io import read_ipc_stream, write_parquet
from numpy.typing import ArrayLike, NDArray

from app.formats.arrow import Arrow
from app.jobs.jobs import STARTING
from app.jobs.scripts import QUEUE, TALLY
from app.store.keys import USED

JSON = "application/json"
NPY = "application/x-npy"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
PROBLEM = "application/problem+json"


def put(http: httpx.Client, name: str, spec: Any, content_type: str = JSON) -> httpx.Response:
    """PUT a spec: bytes as they are, all else as JSON."""
    return http.put(f"/v1/maps/{name}", content=_bytes(spec), headers={"Content-Type": content_type})


def put_dataset(http: httpx.Client, name: str, rows: Any, ttl: int | str | None = None) -> httpx.Response:
    """PUT a dataset: arrays as .npy, bytes as they are, lists of rows and objects as JSON."""
    binary = isinstance(rows, np.ndarray)
    content = npy(rows) if binary else _bytes({"vectors": rows} if isinstance(rows, list) else rows)
    params = {} if ttl is None else {"ttl": str(ttl)}
    return http.put(
        f"/v1/datasets/{name}", content=content, params=params, headers={"Content-Type": NPY if binary else JSON}
    )


def post(http: httpx.Client, path: str, body: Any, accept: str | None = None) -> httpx.Response:
    """POST JSON below /v1/maps: bytes as they are, all else encoded, NaN included."""
    headers = {"Content-Type": JSON, **({"Accept": accept} if accept else {})}
    return http.post(f"/v1/maps/{path}", content=_bytes(body), headers=headers)


def post_npy(http: httpx.Client, path: str, body: bytes | ArrayLike, accept: str | None = None) -> httpx.Response:
    """POST a .npy below /v1/maps: bytes as they are, arrays encoded."""
    content = body if isinstance(body, bytes) else npy(body)
    headers = {"Content-Type": NPY, **({"Accept": accept} if accept else {})}
    return http.post(f"/v1/maps/{path}", content=content, headers=headers)


OF_ANY = {"date", "content-length", "content-type", "transfer-encoding"}
"""Headers that the server itself gives, or of which the OpenAPI document tells in another place."""
NO_WAIT = {"Prefer": ""}
"""Headers of a request that leaves to the service how long to wait."""
RESPOND_ASYNC = {"Prefer": "respond-async"}
"""Headers of a request that wants a job, however quick the work is."""


def finished(http: httpx.Client, taken: httpx.Response, seconds: float = 120) -> Any:
    """The record of the job that an answer 202 names, once it has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        job = http.get(taken.headers["location"]).json()
        if job["ended_at"] is not None:
            return job
        time.sleep(0.1)
    raise AssertionError(f"{taken.headers['location']} did not end")


def npy(numbers: ArrayLike) -> bytes:
    """An array as NumPy itself saves it."""
    stream = io.BytesIO()
    np.save(stream, np.asarray(numbers), allow_pickle=True)
    return stream.getvalue()


def arrow(**columns: Any) -> bytes:
    """An Arrow stream of arrays and ids, as the service writes it; other writers are tried at night."""
    return b"".join(Arrow().encode(columns).pieces)


def parquet_of(**columns: Any) -> bytes:
    """A Parquet file of arrays and ids."""
    sink = io.BytesIO()
    write_parquet(read_ipc_stream(io.BytesIO(arrow(**columns))), sink)
    return sink.getvalue()


def npy_with_header(header: str, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """A .npy with a header of one's own."""
    text = header.encode("latin1") + b"\n"
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H" if version == (1, 0) else "<I", len(text)) + text + data


def header(descr: str = "'<f4'", shape: str = "(1, 3)") -> str:
    """The text of a .npy header."""
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


def array(response: httpx.Response) -> NDArray[Any]:
    """The array of a .npy answer."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == NPY
    numbers: NDArray[Any] = np.load(io.BytesIO(response.content), allow_pickle=False)
    return numbers


def member(response: httpx.Response, name: str) -> NDArray[np.float64]:
    """An array of a JSON answer."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == JSON
    return np.array(response.json()[name], dtype=np.float64)


def keys(store: redis.Redis) -> set[bytes]:
    """Every key of the store but those of jobs, workers, the account, receipts, uses of keys, and readiness."""
    others = *(one.encode() for one in (QUEUE, TALLY, STARTING, USED)), b"bochner:account", b"bochner:deleted:"
    others = *others, b"bochner:probe:"
    return {key for key in store.scan_iter(count=1000) if not key.startswith(others)}


def keys_of(store: redis.Redis, name: str, kind: str = "map") -> set[bytes]:
    """Every key of one map or dataset."""
    return {key for key in keys(store) if key.startswith(f"bochner:{{{kind}:{name}}}:".encode())}


def assert_problem(
    http: httpx.Client, response: httpx.Response, status: int, slug: str, pointer: str | None = None
) -> dict[str, Any]:
    """Check every member of a problem document, and that its page is there; gives the document."""
    assert response.status_code == status, response.text[:500]
    assert response.headers["content-type"] == PROBLEM
    document: dict[str, Any] = response.json()
    assert document["type"] == f"/problems/{slug}"
    assert http.get(document["type"]).status_code == 200
    assert document["title"]
    assert document["status"] == status
    assert document["detail"]
    assert "Traceback" not in response.text
    assert document["instance"] == response.headers["x-request-id"]
    assert (response.headers.get("retry-after") is not None) == (status in (429, 503))
    if pointer is not None:
        assert document["errors"][0]["pointer"] == pointer, document["errors"]
        assert all(error["detail"] for error in document["errors"])
    return document


def _bytes(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()
