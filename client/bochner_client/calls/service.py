"""Calls for the service itself: health, information, catalogue, documentation."""

from typing import Any

from bochner_client.records import Info
from bochner_client.requests import Request, address, as_document, as_json, as_text


def live() -> Request[dict[str, Any]]:
    """Check that a process answers; the request is not repeated."""
    return Request(method="GET", path="/health/live", reads=as_json(as_document), patient=False)


def ready() -> Request[dict[str, Any]]:
    """Check that the service can serve requests now; `warnings` of the answer are for operators. Not repeated.

    Raises:
        Starting: the service is not ready yet.
        StoreUnavailable: the store does not allow it.
    """
    return Request(method="GET", path="/health/ready", reads=as_json(as_document), patient=False)


def info() -> Request[Info]:
    """Return the service's versions, limits, store, and usage."""
    return Request(method="GET", path="/v1/info", reads=as_json(Info.read))


def catalog() -> Request[dict[str, Any]]:
    """Return all kernels, samplers, forms and diagnostics, by family and kind, with JSON Schemas of their options."""
    return Request(method="GET", path="/v1/catalog", reads=as_json(as_document))


def problem(slug: str) -> Request[str]:
    """Return the HTML page that explains a kind of problem."""
    return Request(method="GET", path=address("problems", slug), reads=as_text("text/html"))


def metrics() -> Request[str]:
    """Return the metrics of all processes of the service, in the text format of Prometheus."""
    return Request(method="GET", path="/metrics", reads=as_text("text/plain"))


def openapi() -> Request[dict[str, Any]]:
    """Return the OpenAPI document of the service."""
    return Request(method="GET", path="/openapi.json", reads=as_json(as_document))
