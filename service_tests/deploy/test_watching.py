"""The dashboard and the alerts of deploy/ ask for what is told, and Prometheus' own tool tries the alerts."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.metrics import ASKED, COUNTED
from service_tests.cases import each

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "bochner.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]
RULES: list[dict[str, Any]] = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
TOLD = {
    one.name + end
    for one in (*COUNTED, *ASKED)
    for end in {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}[one.kind]
}


@each("expression", QUERIES + [rule["expr"] for rule in RULES])
def test_every_metric_that_is_asked_for_is_told(expression: str) -> None:
    asked = set(re.findall(r"\bup\b|bochner_\w+", expression))
    assert asked
    assert asked <= TOLD | {"up"}  # which Prometheus tells itself


def test_every_metric_is_on_the_dashboard() -> None:
    asked = {name for expression in QUERIES for name in re.findall(r"bochner_\w+", expression)}
    unseen = {one.name for one in (*COUNTED, *ASKED) if not any(name.startswith(one.name) for name in asked)}
    assert not unseen


FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})'
SERIES = {
    "BochnerDown": {'up{job="bochner"}': "1x20 0x40", 'bochner_store_up{job="bochner"}': "1x20 stale"},
    "BochnerAbsent": {'up{job="bochner"}': "1x10 stale"},
    "BochnerStoreAway": {"bochner_store_up": "0x60"},
    "BochnerNotReady": {'bochner_ready{reason="starting"}': "0x60"},
    "BochnerStoreDamaged": {"bochner_store_damaged_total": "0+1x60"},
    "BochnerBackupOld": {"bochner_last_backup_timestamp_seconds": "-200000x60"},
    "BochnerFailing": {
        'bochner_requests_total{status="503"}': "0+10x60",
        'bochner_requests_total{status="200"}': "0+90x60",
        'bochner_requests_total{status="200",route="/health/live"}': "0+900x60",
    },
    "BochnerStoreFilling": {"bochner_store_bytes": "95x60", "bochner_store_limit_bytes": "100x60"},
    "BochnerStoreWarns": {"bochner_store_warnings": "1x60"},
    "BochnerFull": {'bochner_places_taken{of="requests"}': "62x60", 'bochner_places{of="requests"}': "64x60"},
    "BochnerProcessesDie": {'bochner_process_starts_total{role="worker"}': "1+1x60"},
    "BochnerRestarts": {"bochner_start_time_seconds": "1+1x60"},
    "BochnerJobsFail": {
        'bochner_jobs_ended_total{kind="diagnose",state="failed"}': "0+1x60",
        'bochner_jobs_ended_total{kind="diagnose",state="succeeded"}': "7x60",
    },
    "BochnerJobsWait": {'bochner_jobs{state="queued"}': "3x60", 'bochner_jobs{state="running"}': "0x60"},
}
"""What makes each alert fire: samples of a minute each."""
RUNNING = {'up{job="bochner"}': "1x60"}


@pytest.mark.nightly
def test_each_alert_fires_for_what_it_is_about_and_for_nothing_else(tmp_path: Path) -> None:
    assert set(SERIES) == {rule["alert"] for rule in RULES}
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    labels = '{{alertname="{}"}}'
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": series, "values": values} for series, values in (RUNNING | shown).items()],
            "promql_expr_test": [
                {"expr": FIRING, "eval_time": "40m", "exp_samples": [{"labels": labels.format(alert), "value": 1}]}
            ],
        }
        for alert, shown in SERIES.items()
    ]
    suite = {"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(suite))
    ended = subprocess.run(
        [tool, "test", "rules", tmp_path / "tests.yaml"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
