"""The commands that talk to a service, and the worker, as a user runs them."""

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
from service_tests.keyed import made, secret_of
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
    for ended_, words in (
        (run("create", name, "--spec", str(spec), "--wait", "--url", jobs_service.url), "unlucky"),
        (run("wait", "0" * 24, "--url", jobs_service.url), "there is no job"),
        (run("create", name, "--spec", str(tmp_path / "none"), "--url", jobs_service.url), "No such file"),
        (run("create", "a/b", "--spec", str(spec), "--url", jobs_service.url), "404"),
        (run("create", name, "--spec", str(spec), "--url", "http://127.0.0.1:1"), "does not answer"),
    ):
        assert ended_.returncode == 1
        assert words in ended_.stderr
        assert "Traceback" not in ended_.stderr


def test_a_worker_needs_a_store(tmp_path: Path) -> None:
    alone = run("worker", "--data-dir", str(tmp_path))
    assert alone.returncode == 1
    assert "No service runs on" in alone.stderr


def test_the_command_line_sends_a_key(jobs_service: Running, name: str, tmp_path: Path) -> None:
    """A service that needs none is held to it all the same, and so tells whether it came."""
    reads, writes = (made(jobs_service.socket, AskedKey(name="k", role=role)).key for role in (Role.read, Role.write))
    command = asking(jobs_service, name, tmp_path)
    refused = run(*command, env={**os.environ, "BOCHNER_KEY": reads})
    assert (refused.returncode, refused.stderr) == (1, "403: key 'k' has role read; write is wanted\n")
    taken = run(*command, "--key", writes)
    assert json.loads(taken.stdout)["name"] == name, taken.stderr


@pytest.mark.nightly
def test_a_key_is_taken_from_where_it_is(jobs_service: Running, name: str, tmp_path: Path) -> None:
    text = made(jobs_service.socket, AskedKey(name="k", role=Role.read)).key
    command, file = asking(jobs_service, name, tmp_path), tmp_path / "key"
    file.write_text(text + "\n")
    options: tuple[str, ...]
    for options, variables, words in (
        (("--key-file", str(file)), {}, "403"),
        ((), {"BOCHNER_KEY_FILE": str(file)}, "403"),
        (("--key", "b\u00e4d"), {}, "key"),
        (("--key-file", str(tmp_path / "none")), {}, "cannot be read"),
        (("--key-file", str(tmp_path / "spec.json")), {}, "key"),
    ):
        ended = run(*command, *options, env={**os.environ, **variables})
        assert ended.returncode == 1
        assert words in ended.stderr
        assert "Traceback" not in ended.stderr
        assert secret_of(text) not in ended.stderr


def asking(service: Running, name: str, folder: Path) -> tuple[str, ...]:
    """A command that creates a map."""
    (folder / "spec.json").write_text(json.dumps(SPEC))
    return ("create", name, "--spec", str(folder / "spec.json"), "--url", service.url)
