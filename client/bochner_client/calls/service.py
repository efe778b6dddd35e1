"""The service itself: whether it lives, what it is, what it knows."""

from typing import Any

from bochner_client.records import Info
from bochner_client.requests import Request, address, as_document, as_json, as_text


def live() -> Request[dict[str, Any]]:
    """Whether a process answers: its answer now, without patience."""
    return Request(method="GET", path="/health/live", reads=as_json(as_document), patient=False)


def ready() -> Request[dict[str, Any]]:
    """Whether requests would be served now; with `warnings` of what an operator should look at.

    Raises:
        Starting: not yet.
        StoreUnavailable: the store keeps them from it.
    """
    return Request(method="GET", path="/health/ready", reads=as_json(as_document), patient=False)


def info() -> Request[Info]:
    """Versions, limits, the store, and how much it keeps."""
    return Request(method="GET", path="/v1/info", reads=as_json(Info.read))


def catalog() -> Request[dict[str, Any]]:
    """Every kernel, sampler, form and diagnostic, by family and kind, with the JSON Schema of its options."""
    return Request(method="GET", path="/v1/catalog", reads=as_json(as_document))


def problem(slug: str) -> Request[str]:
    """The page that explains a kind of problem, as HTML."""
    return Request(method="GET", path=address("problems", slug), reads=as_text("text/html"))


def metrics() -> Request[str]:
    """What all processes of the service have counted, in the text format of Prometheus."""
    return Request(method="GET", path="/metrics", reads=as_text("text/plain"))


def openapi() -> Request[dict[str, Any]]:
    """The OpenAPI document of the service."""
    return Request(method="GET", path="/openapi.json", reads=as_json(as_document))
