import json
import subprocess
from pathlib import Path

import pytest

from service_tests.commands.runs import run
from service_tests.keyed import bearer, secret_of
from service_tests.running import service
from service_tests.servers import until


def keys(data_dir: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    return run("keys", *command, "--data-dir", str(data_dir))


@pytest.mark.nightly
def test_the_first_key_is_made_before_the_first_start_and_others_while_the_service_runs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for mistyped in (("create", "ops", "--role", "admin"), ("list",), ("revoke", "ops")):
        assert "has no files of a store" in keys(data, *mistyped).stderr
    assert not data.exists()
    data.mkdir()
    first = keys(data, "create", "ops", "--role", "admin")
    assert first.returncode == 0, first.stderr
    with service(data, "--require-keys", "true") as running:
        second = keys(data, "create", "search", "--role", "read", "--rate", "2.5", "--burst", "9", "--quota", "100")
        text = second.stdout.strip()
        with running.client(**bearer(text)) as client:
            assert client.get("/v1/maps").status_code == 200
            listed = keys(data, "list").stdout
            assert secret_of(text) not in listed
            records = [json.loads(line) for line in listed.splitlines()]
            assert [(one["name"], one["role"], one["rate"], one["burst"], one["quota"]) for one in records] == [
                ("ops", "admin", None, None, None),
                ("search", "read", 2.5, 9, 100),
            ]
            assert keys(data, "create", "ops", "--role", "read", "--expires-at", "2100-01-01T00:00Z").returncode == 0
            refused = keys(data, "revoke", "ops", "search")  # by name, where one alone has it
            assert "ops (2 keys have this name)" in refused.stderr
            twin = json.loads(keys(data, "list").stdout.splitlines()[-1])
            assert twin["expires_at"] == "2100-01-01T00:00:00Z"
            assert keys(data, "revoke", twin["id"]).returncode == 0
            until(lambda: client.get("/v1/maps").status_code == 401)
        with running.client(**bearer(first.stdout.strip())) as admin:
            assert [one["name"] for one in admin.get("/v1/keys").json()["keys"]] == ["ops"]


def test_what_cannot_be_done_is_told_in_a_line() -> None:
    ended = run("keys", "create", "k", "--role", "read", "--burst", "5")
    assert ended.returncode in (1, 2)
    assert "burst" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
