"""The commands that talk to a service, as a user runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.services.keys import AskedKey
from app.store.keys import Role
from service_tests.keyed import made
from service_tests.running import Running

SPEC = {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "monte_carlo"}, "s": 4}


def run(*command: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "app", *command], capture_output=True, text=True, timeout=60, check=False, **options
    )


@pytest.mark.gate
def test_the_command_line_creates_a_map_and_waits_for_it(jobs_service: Running, name: str, tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(SPEC))
    made = run("create", name, "--spec", str(spec), "--wait", "--url", jobs_service.url)
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["status"] == "ready"
    assert "succeeded 100%" in made.stderr
    assert "step" in made.stderr
    again = run("create", name, "--spec", "-", "--url", jobs_service.url, input=spec.read_text())
    assert json.loads(again.stdout)["status"] == "ready"
    job = httpx.get(jobs_service.url + "/v1/jobs?state=succeeded").json()["jobs"][-1]["id"]
    assert run("wait", job, "--url", jobs_service.url).returncode == 0


@pytest.mark.nightly
def test_the_command_line_says_what_went_wrong(jobs_service: Running, name: str, tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({**SPEC, "s": 1}))
    for command, url, words in (
        (("create", name, "--spec", str(spec), "--wait"), jobs_service.url, "unlucky"),
        (("wait", "0" * 24), jobs_service.url, "there is no job"),
        (("create", name, "--spec", str(tmp_path / "none")), jobs_service.url, "No such file"),
        (("create", name, "--spec", str(spec)), "http://127.0.0.1:1", "does not answer"),
    ):
        ended = run(*command, "--url", url)
        assert ended.returncode == 1
        assert words in ended.stderr
        assert "Traceback" not in ended.stderr


def test_the_command_line_sends_a_key(jobs_service: Running, name: str, tmp_path: Path) -> None:
    """A service that needs none is held to it all the same, and so tells whether it came."""
    reads, writes = (made(jobs_service.socket, AskedKey(name="k", role=role)).key for role in (Role.read, Role.write))
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    command = ("create", name, "--spec", str(tmp_path / "spec.json"), "--url", jobs_service.url)
    refused = run(*command, env={**os.environ, "BOCHNER_KEY": reads})
    assert (refused.returncode, refused.stderr) == (1, "403: key 'k' has role read; write is wanted\n")
    (tmp_path / "key").write_text(writes + "\n")
    taken = run(*command, "--key-file", str(tmp_path / "key"))
    assert json.loads(taken.stdout)["name"] == name, taken.stderr
