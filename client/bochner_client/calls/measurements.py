"""Calls for diagnostics, recommendations and advice. If they take long, a job does them; the client can wait for it."""

from collections.abc import Mapping
from typing import Any

from bochner_client.calls.indexes import Keep
from bochner_client.calls.jobs import get_job_picture, wait_for_job, wait_for_result
from bochner_client.exchange import exchange
from bochner_client.progress import Progress
from bochner_client.recommendations import Recommendation, trees
from bochner_client.requests import (
    JSON,
    Flow,
    Reads,
    Request,
    address,
    as_bytes,
    as_document,
    as_json,
    written_json,
)
from bochner_client.rows import Rows, as_member, is_sparse, sample_members

SVG = "image/svg+xml"


class _JobId(str):
    """Id of a job that will have the answer."""


def diagnose(
    name: str,
    kind: str,
    vectors: Rows | None = None,
    *,
    x: Rows | None = None,
    y: Rows | None = None,
    timeout: float | None = None,
    progress: Progress = False,
    **options: Any,
) -> Flow[dict[str, Any]]:
    """Run a diagnostic of a map, on rows or without any, and return its figures.

    Args:
        name: name of the map.
        kind: kind of the diagnostic: `gram`, `box-discrepancy`, `max-error`, `variance`, `collisions`.
        vectors: rows, or rows of a dataset, for diagnostics that take rows.
        x: rows, for diagnostics that take pairs of rows; row i is paired with row i of `y`.
        y: the same number of rows.
        timeout: seconds to wait for the job, if the diagnostic takes long.
        progress: how to show the progress of the job; see `Job.wait`.
        options: options of the diagnostic, as `catalog` describes them.

    Raises:
        JobFailed: the job failed, or was cancelled.
        TimeoutError: the job has not ended in time. It goes on.
    """
    found = yield from exchange(_diagnosis(name, kind, vectors, x, y, options))
    figures: dict[str, Any] = yield from _figures(found, timeout, progress)
    return figures


def start_diagnosis(
    name: str,
    kind: str,
    vectors: Rows | None = None,
    *,
    x: Rows | None = None,
    y: Rows | None = None,
    **options: Any,
) -> Flow[str]:
    """Start a job that runs a diagnostic of a map; arguments are those of `diagnose`."""
    return _started(_diagnosis(name, kind, vectors, x, y, options, prefer="respond-async"))


def draw_diagnosis(
    name: str,
    kind: str,
    vectors: Rows | None = None,
    *,
    x: Rows | None = None,
    y: Rows | None = None,
    media_type: str = SVG,
    timeout: float | None = None,
    progress: Progress = False,
    **options: Any,
) -> Flow[bytes]:
    """Return the plot of a diagnostic as a file of the media type; arguments are those of `diagnose`.

    Raises:
        NotAcceptable: the diagnostic has no plot of this media type.
    """
    found = yield from exchange(_diagnosis(name, kind, vectors, x, y, options, accept=media_type))
    return (yield from _picture(found, media_type, timeout, progress))


def recommend(
    kernel: Mapping[str, Any] | list[Mapping[str, Any]],
    vectors: Rows,
    *,
    timeout: float | None = None,
    progress: Progress = False,
    **options: Any,
) -> Flow[Recommendation]:
    """Try samplers and sizes on rows, and return their ranking, whose `transformer()` goes into a pipeline.

    Args:
        kernel: the kernel to approximate, or several kernels.
        vectors: rows, or rows of a dataset.
        timeout: seconds to wait for the job, if the recommendation takes long.
        progress: how to show the progress of the job; see `Job.wait`.
        options: those of the HTTP API: `budget` or `target_error`; `y` (labels), `labels_are`, `input`, `samplers`,
            `multiples`, `objective`, `mode`, `seeds`, `seed`.
    """
    found = yield from exchange(_recommendation(kernel, vectors, options))
    answer = Recommendation((yield from _figures(found, timeout, progress)))
    if answer.get("baselines"):
        answer["baselines"] += trees(vectors, options["y"], options.get("labels_are"))
    return answer


def start_recommendation(
    kernel: Mapping[str, Any] | list[Mapping[str, Any]], vectors: Rows, **options: Any
) -> Flow[str]:
    """Start a job that tries samplers and sizes; arguments are those of `recommend`."""
    return _started(_recommendation(kernel, vectors, options, prefer="respond-async"))


def draw_recommendation(
    kernel: Mapping[str, Any] | list[Mapping[str, Any]],
    vectors: Rows,
    *,
    media_type: str = SVG,
    timeout: float | None = None,
    progress: Progress = False,
    **options: Any,
) -> Flow[bytes]:
    """Return the plot of a recommendation, error against columns; arguments are those of `recommend`."""
    found = yield from exchange(_recommendation(kernel, vectors, options, accept=media_type))
    return (yield from _picture(found, media_type, timeout, progress))


def advise(
    name: str,
    dataset: str,
    k: int = 10,
    recall: float = 0.95,
    *,
    candidates: int | None = None,
    keep: Keep = "vectors",
    timeout: float | None = None,
    progress: Progress = False,
) -> Flow[dict[str, Any]]:
    """Return which bands of a map's codes find the nearest rows, or that a scan of all codes does better.

    Args:
        name: name of the map.
        dataset: name of a dataset of rows like those that the index would hold.
        k: number of nearest rows that a search is to find.
        recall: share of the `k` most similar rows that a search is to find.
        candidates: most rows that a search of bands may look at; None for a tenth of the rows.
        keep: what the index would keep. With `codes`, a search returns the best rows by codes, without comparing them
            exactly.
        timeout: seconds to wait for the job, if the advice takes long.
        progress: how to show the progress of the job; see `Job.wait`.
    """
    found = yield from exchange(_advice(name, dataset, k, recall, candidates, keep))
    figures: dict[str, Any] = yield from _figures(found, timeout, progress)
    return figures


def start_advice(
    name: str,
    dataset: str,
    k: int = 10,
    recall: float = 0.95,
    *,
    candidates: int | None = None,
    keep: Keep = "vectors",
) -> Flow[str]:
    """Start a job that computes advice; arguments are those of `advise`."""
    return _started(_advice(name, dataset, k, recall, candidates, keep, prefer="respond-async"))


def draw_advice(
    name: str,
    dataset: str,
    k: int = 10,
    recall: float = 0.95,
    *,
    candidates: int | None = None,
    keep: Keep = "vectors",
    media_type: str = SVG,
    timeout: float | None = None,
    progress: Progress = False,
) -> Flow[bytes]:
    """Return the plot of advice, recall against the share of rows looked at; arguments are those of `advise`."""
    found = yield from exchange(_advice(name, dataset, k, recall, candidates, keep, accept=media_type))
    return (yield from _picture(found, media_type, timeout, progress))


def _diagnosis(
    name: str,
    kind: str,
    vectors: Rows | None,
    x: Rows | None,
    y: Rows | None,
    options: Mapping[str, Any],
    accept: str = JSON,
    prefer: str | None = None,
) -> Request[Any]:
    pairs = {member: as_member(rows) for member, rows in (("x", x), ("y", y)) if rows is not None}
    document = {**sample_members(vectors), **pairs, **options}
    return _request(address("v1", "maps", name, "diagnostics", kind), document, accept, prefer)


def _recommendation(
    kernel: Any, vectors: Rows, options: Mapping[str, Any], accept: str = JSON, prefer: str | None = None
) -> Request[Any]:
    width = {"input_dim": vectors.shape[1]} if is_sparse(vectors) else {}
    document = {"kernel": kernel, **sample_members(vectors), **width, **options}
    return _request("/v1/recommendations", document, accept, prefer)


def _advice(
    name: str,
    dataset: str,
    k: int,
    recall: float,
    candidates: int | None,
    keep: Keep,
    accept: str = JSON,
    prefer: str | None = None,
) -> Request[Any]:
    document = {"map": name, "dataset": dataset, "k": k, "recall": recall, "keep": keep}
    if candidates is not None:
        document["candidates"] = candidates
    return _request("/v1/indexes/advice", document, accept, prefer)


def _request(path: str, document: Any, accept: str, prefer: str | None) -> Request[Any]:
    headers = {"Accept": accept} | ({} if prefer is None else {"Prefer": prefer})
    figures: Reads[Any] = as_json(as_document) if accept == JSON else as_bytes(accept)
    reads = {**figures, **as_json(lambda record: _JobId(record["id"]), 202)}
    return Request(method="POST", path=path, headers=headers, body=written_json(document), reads=reads)


def _started(request: Request[Any]) -> Flow[str]:
    found: str = yield from exchange(request)
    return found


def _figures(found: Any, timeout: float | None, progress: Progress) -> Flow[Any]:
    if isinstance(found, _JobId):
        return (yield from wait_for_result(found, timeout=timeout, progress=progress))
    return found


def _picture(found: Any, media_type: str, timeout: float | None, progress: Progress) -> Flow[bytes]:
    if isinstance(found, _JobId):
        yield from wait_for_job(found, timeout=timeout, progress=progress)
        found = yield from exchange(get_job_picture(found, media_type))
    picture: bytes = found
    return picture
