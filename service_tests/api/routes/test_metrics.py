"""The text that Prometheus reads: as it was declared, whole, and in both of its forms."""

from importlib.metadata import version

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as of_prometheus

from app.metrics import ASKED, COUNTED
from service_tests.checks import post
from service_tests.metered import samples, told, value

DECLARED = {one.name: one for one in (*COUNTED, *ASKED)}


@pytest.fixture
def text(http: httpx.Client, standing: dict[str, str]) -> str:
    assert post(http, f"{standing['phase']}/transform", {"vectors": [[1, 2, 3]]}).status_code == 200
    return told(http)


def test_all_that_is_told_was_declared_so(text: str) -> None:
    families = list(of_prometheus(text))
    assert len(families) > 30
    for family in families:
        of = DECLARED[family.name]
        assert (family.type, family.documentation) == (of.kind, of.told)
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(of.labels), sample


def test_openmetrics_is_spoken_where_it_is_asked_for(http: httpx.Client) -> None:
    answer = http.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0, text/plain;q=0.5"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert "Accept" in answer.headers["vary"].split(", ")
    found = {family.name for family in text_string_to_metric_families(answer.text)}
    assert {"bochner_requests", "bochner_store_up", "bochner_request_seconds"} <= found


def test_the_service_its_processes_and_its_store_are_told(http: httpx.Client) -> None:
    found = samples(http)
    ((_, labels),) = [key for key in found if key[0] == "bochner_info"]
    assert {"version": version("bochner"), "numpy": version("numpy")}.items() <= dict(labels).items()
    for role in ("server", "worker"):
        assert value(found, "bochner_processes", role=role) == 1
        assert value(found, "bochner_process_cpu_seconds_total", role=role) > 0.1
        assert 50e6 < value(found, "bochner_process_resident_bytes", role=role) < 2e9
    assert value(found, "bochner_store_up") == 1
    assert value(found, "bochner_store_limit_names") == 100_000
    assert value(found, "bochner_store_memory_bytes") > 1e5
