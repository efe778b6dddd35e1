"""The headers of answers, as the OpenAPI document describes them."""

from typing import Any

from app.api.array_answers import WARNING

_STRING = {"type": "string"}
_TEXTS = {
    "Preference-Applied": "What was made of `Prefer`: `wait` with the seconds granted, `respond-async`, or both.",
    "Vary": "Headers of the request that the answer depends on.",
    "ETag": "What tells this answer from others of the same address; of a map or dataset its digest, in quotes. For "
    "`If-None-Match`, `If-Match` and `If-Range`.",
    "Accept-Encoding": "The codings in which a body may come; of 415.",
    "Accept-Ranges": "`bytes`: a part of the answer may be asked for with `Range`.",
    "Content-Range": "Which part of the answer it is, and how long all of it is.",
    "Content-Disposition": "That it is a file, and its name.",
    "Link": 'Of the job, with `rel="monitor"`.',
    "Cache-Control": "`no-cache`: who keeps the answer asks again before using it. `no-store`: it is not to be kept.",
    "X-Accel-Buffering": "`no`: a proxy passes each event on at once.",
    WARNING: "What is doubtful about the answer, in one line: where the map's dtype is too coarse for the rows.",
    "Inference-Header-Content-Length": "Bytes of JSON that the answer begins with, where binary tensors follow.",
    "Retry-After": "Seconds after which to try again; of 429 and 503.",
    "WWW-Authenticate": "How to send a key; of 401.",
    "Allow": "The methods that the address takes; of 405.",
}
EXPOSED = (
    *sorted(set(_TEXTS) - {"Vary", "Cache-Control", "X-Accel-Buffering"}),
    "Location",
    "X-Request-ID",
    "traceparent",
)
"""Headers that pages of other origins may read, beside those that they always may."""
_REQUEST_ID = {
    "description": "The header of this name of the request, or an id that is made for it; it is in the log.",
    "schema": _STRING,
}


def headers(*names: str, location: str = "") -> dict[str, Any]:
    """The member `headers` of an answer in the document; `location` says where `Location` leads, if it is there."""
    texts = ({"Location": location} if location else {}) | {name: _TEXTS[name] for name in names}
    return {"headers": {name: {"description": text, "schema": _STRING} for name, text in texts.items()}}


def add_common_headers(document: dict[str, Any]) -> None:
    """Add the header that every answer has, and that of every answer that could be kept."""
    described = {"X-Request-ID": _REQUEST_ID, **headers("Cache-Control")["headers"]}
    document["components"]["headers"] = described
    references = {name: {"$ref": f"#/components/headers/{name}"} for name in described}
    of_all = {"X-Request-ID": references["X-Request-ID"]}
    for path in document["paths"].values():
        for method, operation in path.items():
            for answer in operation["responses"].values():
                answer["headers"] = {**answer.get("headers", {}), **(references if method == "get" else of_all)}
