"""The text that Prometheus reads: as it was declared, whole, and in both of its forms."""

import io
from importlib.metadata import version

import httpx
import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as of_prometheus

from app.formats.arrow import Arrow
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


def test_bodies_that_may_expand_are_read_on_a_thread(http: httpx.Client, standing: dict[str, str]) -> None:
    """A few bytes of Arrow may be millions of rows, which nobody else may wait for."""
    path, rows = f"/v1/maps/{standing['phase']}/transform", np.ones((1, 3))
    npz, npy = io.BytesIO(), io.BytesIO()
    np.savez(npz, vectors=rows)
    np.save(npy, rows)
    assert http.post(path, json={"vectors": rows.tolist()}).status_code == 200
    for media_type, content, waits in (("application/x-npy", npy, 0), ("application/x-npz", npz, 1)):
        before = samples(http)
        headers = {"Content-Type": media_type}
        assert http.post(path, content=content.getvalue(), headers=headers).status_code == 200
        after = samples(http)
        count = [value(of, "bochner_waited_seconds_count", waits_for="compute") for of in (before, after)]
        assert count[1] - count[0] == waits
    assert Arrow.expands
