"""Prometheus itself, as Debian has it, reading what a service tells."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from service_tests.running import free_port
from service_tests.servers import until


def program(name: str) -> str:
    """Where a program of Prometheus is; the test is skipped where it is not."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian: prometheus)")
    return found


class Prometheus:
    """A server that is asked over HTTP."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an instant query; fails with the server's words where it cannot be read."""
        answer = self._http.get("/api/v1/query", params={"query": expression}).json()
        assert answer["status"] == "success", (expression, answer)
        samples: list[dict[str, Any]] = answer["data"]["result"]
        return samples

    def rules(self) -> list[dict[str, Any]]:
        """All alerts."""
        groups = self._http.get("/api/v1/rules").json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]


@contextmanager
def prometheus(home: Path, target: str, rules: Path, key: str) -> Iterator[Prometheus]:
    """A server that reads a target every two seconds, with a key, as docs/how-to/watch-it-run.md says."""
    (home / "key").write_text(key)
    port = free_port()
    settings = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {
                "job_name": "bochner",
                "static_configs": [{"targets": [target.removeprefix("http://")]}],
                "authorization": {"credentials_file": str(home / "key")},
            }
        ],
    }
    (home / "prometheus.yml").write_text(yaml.safe_dump(settings))
    command = [
        program("prometheus"),
        f"--config.file={home / 'prometheus.yml'}",
        f"--storage.tsdb.path={home / 'data'}",
    ]
    with (home / "prometheus.log").open("wb") as log:
        server = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        with closing(httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)) as http:
            until(lambda: server.poll() is not None or is_ready(http))
            assert server.poll() is None, (home / "prometheus.log").read_text()
            yield Prometheus(http)
    finally:
        server.terminate()
        server.wait(30)


def is_ready(http: httpx.Client) -> bool:
    with suppress(httpx.TransportError):
        return http.get("/-/ready").status_code == 200
    return False
