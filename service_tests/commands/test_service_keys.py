"""Commands that use a service send its key."""

import os
from pathlib import Path

import pytest

from app.services.keys import AskedKey
from app.store.keys import Role
from service_tests.commands.runs import run
from service_tests.keyed import made
from service_tests.running import Running


@pytest.mark.gate  # the commands need packages for bulk work
def test_a_command_sends_the_key_of_its_variable_or_file(running: Running, tmp_path: Path) -> None:
    """A service that needs none is held to it all the same, and so tells whether it came."""
    sees, reads = (made(running.socket, AskedKey(name="k", role=role)).key for role in (Role.metrics, Role.read))
    (tmp_path / "key").write_text(reads + "\n")

    def said(*options: str, **env: str) -> str:
        command = ("transform", "in.csv", str(tmp_path), "--map", "none", "--url", running.url)
        return run(*command, *options, env={**os.environ, **env}).stderr

    assert said(BOCHNER_KEY=sees) == "403: expected role read, got key 'k' with role metrics\n"
    assert said("--key-file", str(tmp_path / "key")) == "404: there is no map 'none'\n"
