import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.settings import Settings
from service_tests.cases import each, with_nightly
from service_tests.running import free_port

ROOT = Path(__file__).parent.parent
# A value that each setting takes, other than its default.
VALUES = {
    "host": "127.0.0.2",
    "port": "8123",
    "require_keys": "true",
    "allowed_hosts": "bochner.example.org,*.inside.example",
    "allowed_origins": "https://lab.example.org",
    "max_keys": "3",
    "tls_certificate": "/tmp/certificate.pem",
    "tls_key": "/tmp/key.pem",
    "trusted_proxies": "10.0.0.0/8",
    "workers": "2",
    "data_dir": "/tmp/elsewhere",
    "redis_url": "redis://localhost:1",
    "store_replicas": "1",
    "store_binary": "/bin/true",
    "store_timeout": "1.5",
    "min_free_bytes": "1000",
    "allow_volatile_store": "true",
    "cache_bytes": "0",
    "max_body_bytes": "1000",
    "max_spec_bytes": "1000",
    "max_operations": "1000",
    "max_index_batch": "1000",
    "max_request_seconds": "0.5",
    "max_wait_seconds": "2.5",
    "max_listeners": "3",
    "max_bodies_bytes": "1000",
    "max_answers_bytes": "1000",
    "max_connections": "3",
    "max_head_bytes": "2000",
    "head_timeout": "3.5",
    "idle_timeout": "3",
    "client_timeout": "3.5",
    "body_timeout": "3.5",
    "min_body_rate": "0",
    "shutdown_timeout": "3",
    "max_result_bytes": "1000",
    "max_map_bytes": "1000",
    "max_dataset_bytes": "1000",
    "max_store_bytes": "1000",
    "max_builds": "10",
    "max_build_bytes": "1000",
    "max_store_names": "1000",
    "max_requests": "3",
    "threads": "3",
    "job_workers": "2",
    "max_queued_jobs": "3",
    "max_job_seconds": "3.5",
    "max_job_bytes": "1000",
    "job_ttl": "3.5",
    "log_format": "json",
    "traces": "true",
    "log_level": "debug",
}
BAD = {
    "port": ["0", "65536", "http"],
    "require_keys": ["perhaps"],
    "max_keys": ["0"],
    "workers": ["0", "two"],
    "redis_url": ["http://localhost", "localhost", "redis+cluster://localhost/1", "redis+sentinel://localhost"],
    "store_replicas": ["-1", "all", "1"],
    "min_free_bytes": ["-1", "1GB"],
    "store_timeout": ["0", "-1", "soon"],
    "allow_volatile_store": ["perhaps"],
    "cache_bytes": ["-1", "1GB"],
    "max_body_bytes": ["0"],
    "max_spec_bytes": ["0"],
    "max_operations": ["0"],
    "max_index_batch": ["0"],
    "max_request_seconds": ["-1"],
    "max_wait_seconds": ["-1"],
    "max_listeners": ["0"],
    "max_bodies_bytes": ["0"],
    "max_answers_bytes": ["0"],
    "max_connections": ["0"],
    "max_head_bytes": ["0", "1000"],
    "head_timeout": ["0", "soon"],
    "idle_timeout": ["0", "soon"],
    "client_timeout": ["0", "soon"],
    "body_timeout": ["0", "soon"],
    "min_body_rate": ["-1", "slow"],
    "shutdown_timeout": ["0", "soon"],
    "max_result_bytes": ["0"],
    "max_map_bytes": ["0"],
    "max_dataset_bytes": ["0"],
    "max_store_bytes": ["0"],
    "max_builds": ["0"],
    "max_build_bytes": ["0"],
    "max_store_names": ["0"],
    "max_requests": ["0"],
    "threads": ["0"],
    "job_workers": ["-1", "two"],
    "max_queued_jobs": ["0"],
    "max_job_seconds": ["0", "soon"],
    "max_job_bytes": ["0"],
    "job_ttl": ["0", "soon"],
    "log_format": ["xml"],
    "traces": ["perhaps"],
    "log_level": ["loud"],
    "store_binary": ["/no/such/program"],
}


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in Settings.model_fields:
        monkeypatch.delenv(Settings.variable(field), raising=False)


def serve(*options: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run `serve` where it is expected to end by itself."""
    environment = {**os.environ, "BOCHNER_DATA_DIR": "/dev/null/no-directory", "BOCHNER_PORT": str(free_port())}
    command = [sys.executable, "-m", "app", "serve", *options]
    environment |= variables
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.nightly
@pytest.mark.parametrize("host", ["127.0.0.1", "203.0.113.1"])
def test_an_address_that_cannot_be_listened_at_is_refused_before_the_store_is_read(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ended = serve("--host", host, "--port", str(port))
    assert ended.returncode == 1
    assert f"host {host}, port {port}" in ended.stderr
    assert "BOCHNER_PORT" in ended.stderr
    assert "Traceback" not in ended.stderr


def option(field: str) -> str:
    return "--" + field.replace("_", "-")


def test_every_setting_has_a_value_here() -> None:
    other = Settings.model_fields.keys() ^ VALUES.keys()
    assert not other, f"give {sorted(other)} a value in VALUES, and bad ones in BAD"


@each("field", Settings.model_fields)
def test_every_setting_says_what_it_is(field: str) -> None:
    description = Settings.model_fields[field].description
    assert description
    assert description.endswith(".")


@each("field", Settings.model_fields)
def test_every_setting_is_read_from_its_variable(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    default = getattr(Settings(), field)
    if field == "store_replicas":  # which a private store has none of
        monkeypatch.setenv("REDIS_URL", VALUES["redis_url"])
    monkeypatch.setenv(Settings.variable(field), VALUES[field])
    read = getattr(Settings(), field)
    assert str(read).lower() == VALUES[field]
    assert read != default


def test_an_option_wins_over_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOCHNER_PORT", "8123")
    monkeypatch.setenv("REDIS_URL", "redis://variable")
    settings = Settings(port=8124, redis_url="redis://option")
    assert (settings.port, settings.redis_url) == (8124, "redis://option")


@pytest.mark.parametrize("name", ["PORT", "HOST", "BOCHNER_PRT"])
def test_variables_of_other_names_mean_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    default = Settings()
    monkeypatch.setenv(name, "redis://other")
    assert Settings() == default


def test_what_is_exported_is_read_back_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in Settings.model_fields:
        monkeypatch.setenv(Settings.variable(field), VALUES[field])
    settings = Settings()
    for field in Settings.model_fields:
        monkeypatch.delenv(Settings.variable(field))
    settings.export()
    assert Settings() == settings


def test_the_command_line_takes_every_setting() -> None:
    """All at once, with a bad one at the end that is refused for its value, not as an option."""
    options = [text for field, value in VALUES.items() for text in (option(field), value)]
    ended = serve(*options, "--log-level", "loud")
    assert ended.returncode == 1
    assert ended.stderr.startswith("log_level: ")
    command = [sys.executable, "-m", "app", "serve", "--help"]
    help_text = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    for field in Settings.model_fields:
        assert option(field) in help_text
        assert f"[{Settings.variable(field)}]" in re.sub(r"\s+", " ", help_text)


@each(("field", "value"), [(field, value) for field, values in BAD.items() for value in values])
def test_a_bad_value_is_refused(field: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(field, value, monkeypatch)


@each("value", ["inf", "-inf", "nan", "1e999"])
@each("field", [field for field, of in Settings.model_fields.items() if of.annotation is float])
def test_no_number_is_infinite(field: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(field, value, monkeypatch)


def refuse(field: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if field in ("redis_url", "store_binary"):  # looked at when the service starts; see below
        return
    monkeypatch.setenv(Settings.variable(field), value)
    with pytest.raises(ValidationError) as refused:
        Settings()
    assert len(refused.value.errors()) == 1


@pytest.mark.parametrize("field", with_nightly(["port", "store_binary"], ["redis_url", "log_level"]))
def test_a_bad_value_ends_serve_with_one_sentence(field: str) -> None:
    for ended in (serve(option(field), BAD[field][0]), serve(**{Settings.variable(field): BAD[field][0]})):
        assert ended.returncode == 1
        assert ended.stdout == ""
        assert len(ended.stderr.strip().splitlines()) == 1
        assert "Traceback" not in ended.stderr
        assert field in ended.stderr or BAD[field][0] in ended.stderr or "URL" in ended.stderr


def test_a_data_directory_that_cannot_be_used_ends_serve_with_one_sentence() -> None:
    ended = serve()
    assert ended.returncode == 1
    assert len(ended.stderr.strip().splitlines()) == 1
    assert "/dev/null/no-directory" in ended.stderr


def test_an_unknown_option_and_no_command_are_refused() -> None:
    assert serve("--prt", "1").returncode == 2
    command = [sys.executable, "-m", "app"]
    assert subprocess.run(command, capture_output=True, cwd=ROOT, check=False).returncode == 2
