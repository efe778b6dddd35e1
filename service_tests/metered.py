"""What a service tells at /metrics, read by the library's own parser."""

from collections.abc import Mapping

import httpx
from prometheus_client.parser import text_string_to_metric_families

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def told(http: httpx.Client) -> str:
    """The text that Prometheus would read."""
    answer = http.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return answer.text


def samples(http: httpx.Client) -> Samples:
    """Every sample, by its name and labels."""
    families = text_string_to_metric_families(told(http))
    return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}


def value(found: Samples, name: str, **labels: str) -> float:
    """One sample; 0 for a series that nothing was counted in yet."""
    return found.get((name, frozenset(labels.items())), 0.0)


def total(found: Samples, name: str, **labels: str) -> float:
    """The sum of all samples that have these labels, whatever others they have."""
    return sum(number for (one, having), number in found.items() if one == name and having >= labels.items())
