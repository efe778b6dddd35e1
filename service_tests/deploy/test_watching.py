"""The dashboard and the alerts of deploy/, with Prometheus itself on a service that works."""

import json
import math
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import yaml

from app.metrics.declared import ASKED, COUNTED
from app.store.keys import Role
from service_tests.cases import each
from service_tests.checks import RESPOND_ASYNC, post, post_npy, put
from service_tests.deploy.prometheus import Prometheus, program, prometheus
from service_tests.keyed import Keyed, keyed
from service_tests.metered import samples, told, total
from service_tests.running import service
from service_tests.servers import until

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "bochner.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
RULES: list[dict[str, Any]] = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
EXPRESSIONS = [expression for _, expression in QUERIES] + [rule["expr"] for rule in RULES]
WORKED, SIDES, TIMES = 4, 4, 5
REFUSED = SIDES * TIMES
COUNTED_REFUSALS = 'sum(bochner_requests_total{route="/v1/maps/{name}/transform",status="422"})'
TOLD = {
    one.name + end
    for one in (*COUNTED, *ASKED)
    for end in {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}[one.kind]
}


@each("expression", EXPRESSIONS)
def test_every_metric_that_is_asked_for_is_told(expression: str) -> None:
    asked = set(re.findall(r"bochner_\w+", expression))
    assert asked
    assert asked <= TOLD


def test_every_panel_has_a_title_a_unit_and_a_place_of_its_own() -> None:
    places = set[tuple[int, int]]()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert panel["title"]
        assert at["x"] + at["w"] <= 24
        assert not places & cells, panel["title"]
        places |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert all(panel["fieldConfig"]["defaults"]["unit"] for panel in PANELS)


def test_every_metric_is_on_the_dashboard() -> None:
    asked = {name for _, expression in QUERIES for name in re.findall(r"bochner_\w+", expression)}
    unseen = {one.name for one in (*COUNTED, *ASKED) if not any(name.startswith(one.name) for name in asked)}
    assert not unseen


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    """A service of several processes that wants keys."""
    program("prometheus")
    home = tmp_path_factory.mktemp("watched")
    options = ("--workers", "2", "--job-workers", "1", "--require-keys", "true")
    with service(home / "data", *options) as running:
        yield keyed(running)


@pytest.fixture(scope="module")
def watching(here: Keyed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus, once it has seen all that a service can be asked for a while."""
    home = tmp_path_factory.mktemp("prometheus")
    with prometheus(home, here.running.url, ALERTS, here.texts[Role.read]) as server:
        until(lambda: server.query("bochner_store_up"))
        for times in range(1, WORKED + 1):
            work(here)
            # Rates want a series to be seen at more than one count.
            until(partial(told_count, server, times * REFUSED))
        yield server


def told_count(server: Prometheus, count: int) -> bool:
    """Whether Prometheus has seen so many refusals: each side ends with one, so all else has been seen too."""
    return [one["value"][1] for one in server.query(COUNTED_REFUSALS)] == [str(count)]


def work(here: Keyed) -> None:
    """Ask for something of everything, from several sides at once."""
    with here.client(Role.write) as http:
        spec = {
            "input_dim": 3,
            "s": 16,
            "kernel": {"kind": "gaussian", "length_scale": 1.5},
            "sampler": {"kind": "sobol"},
        }
        put(http, "m", spec)
        threads = [threading.Thread(target=ask, args=(here,)) for _ in range(SIDES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rows = {"vectors": [[1, 2, 3], [2, 3, 4]] * 20, "kernel": spec["kernel"], "budget": 32}
        http.post("/v1/recommendations", json=rows, headers=RESPOND_ASYNC)
    with socket.create_connection(("127.0.0.1", httpx.URL(here.running.url).port), timeout=30) as line:
        line.sendall(b"nonsense\r\n\r\n")
        line.recv(12)


def ask(here: Keyed) -> None:
    with here.client(Role.write) as http:
        for _ in range(TIMES):
            assert post(http, "m/transform", {"vectors": [[1, 2, 3]]}).status_code == 200
            assert post_npy(http, "m/transform", np.ones((20_000, 3))).status_code == 200
            assert post(http, "m/transform", {"vectors": [[1, 2]]}).status_code == 422


@pytest.mark.nightly
@pytest.mark.parametrize(("title", "expression"), QUERIES)
def test_every_query_of_the_dashboard_finds_data(watching: Prometheus, title: str, expression: str) -> None:
    asked = expression.replace("$instance", ".*").replace("$__rate_interval", "10m").replace("$__range", "10m")
    assert "$" not in asked, "a variable that Grafana would fill in"

    def found() -> list[float]:
        return [float(one["value"][1]) for one in watching.query(asked)]

    until(lambda: any(math.isfinite(number) for number in found()))
    assert all(number >= 0 for number in found() if math.isfinite(number)), title


@pytest.mark.nightly
def test_figures_in_prometheus_are_those_of_the_service(here: Keyed, watching: Prometheus) -> None:
    (rows,) = watching.query('sum(bochner_request_rows_sum{route="/v1/maps/{name}/transform"})')
    assert float(rows["value"][1]) == WORKED * REFUSED * 20_001
    roles = {one["metric"]["role"]: one["value"][1] for one in watching.query("sum by (role) (bochner_processes)")}
    assert roles == {"server": "2", "worker": "1"}
    with here.client(Role.read) as http:
        until(lambda: total(samples(http), "bochner_jobs_ended_total", kind="recommend", state="succeeded") == WORKED)
        checked = subprocess.run(
            [program("promtool"), "check", "metrics"], input=told(http), capture_output=True, text=True, check=False
        )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.nightly
def test_every_alert_can_be_evaluated_and_none_fires_where_all_is_well(watching: Prometheus) -> None:
    until(lambda: all(rule["health"] != "unknown" for rule in watching.rules()))
    states = {rule["name"]: (rule["health"], rule["state"]) for rule in watching.rules()}
    assert states == {rule["alert"]: ("ok", "inactive") for rule in RULES}


SERIES = {
    "BochnerStoreAway": {"bochner_store_up": "0x60"},
    "BochnerFailing": {
        'bochner_requests_total{status="503"}': "0+10x60",
        'bochner_requests_total{status="200"}': "0+90x60",
    },
    "BochnerStoreFilling": {"bochner_store_bytes": "95x60", "bochner_store_limit_bytes": "100x60"},
    "BochnerStoreWarns": {"bochner_store_warnings": "1x60"},
    "BochnerFull": {'bochner_places_taken{of="requests"}': "62x60", 'bochner_places{of="requests"}': "64x60"},
    "BochnerProcessesDie": {'bochner_process_starts_total{role="worker"}': "1+1x60"},
    "BochnerJobsWait": {'bochner_jobs{state="queued"}': "3x60", 'bochner_jobs{state="running"}': "0x60"},
}
"""What makes each alert fire: samples of a minute each."""


@pytest.mark.nightly
def test_each_alert_fires_for_what_it_is_about_and_for_nothing_else(tmp_path: Path) -> None:
    assert set(SERIES) == {rule["alert"] for rule in RULES}
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": series, "values": values} for series, values in shown.items()],
            "promql_expr_test": [
                {
                    "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                    "eval_time": "40m",
                    "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1}],
                }
            ],
        }
        for alert, shown in SERIES.items()
    ]
    suite = {"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(suite))
    command = [program("promtool"), "test", "rules", str(tmp_path / "tests.yaml")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
