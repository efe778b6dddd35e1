import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.settings import Settings
from service_tests.cases import each, with_nightly
from service_tests.running import free_port

ROOT = Path(__file__).parent.parent
NUMBERS = [field for field, of in Settings.model_fields.items() if re.search("int|float", str(of.annotation))]
# A value that each setting takes, other than its default. Where nothing else is said, numbers take 2001.
VALUES = {field: "2001.5" if "float" in str(Settings.model_fields[field].annotation) else "2001" for field in NUMBERS}
VALUES |= {
    "host": "127.0.0.2", "workers": "2", "store_replicas": "1", "job_workers": "2", "max_keys": "3",
    "require_keys": "true", "allow_volatile_store": "true", "traces": "true", "log_format": "json",
    "log_level": "debug", "log_probes": "false", "data_dir": "/tmp/elsewhere", "redis_url": "redis://localhost:1",
    "store_binary": "/bin/true", "tls_certificate": "/tmp/certificate.pem", "tls_key": "/tmp/key.pem",
    "allowed_hosts": "bochner.example.org,*.inside.example", "allowed_origins": "https://lab.example.org",
    "trusted_proxies": "10.0.0.0/8", "root_path": "/behind/a-proxy",
}  # fmt: skip
BAD = [
    *((field, value) for field in NUMBERS for value in ("-1", "soon", "inf", "nan")),
    *((field, "0") for field in ("port", "workers", "max_body_bytes", "head_timeout", "threads", "max_requests")),
    *(("port", "65536"), ("max_head_bytes", "1000"), ("store_replicas", "1"), ("min_free_bytes", "1 apple")),
    *(("require_keys", "perhaps"), ("traces", "perhaps"), ("log_format", "xml"), ("log_level", "loud")),
    *(("trusted_proxies", value) for value in ("proxy.internal", "::1,10.0.0.1/8")),
]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in Settings.model_fields:
        monkeypatch.delenv(Settings.variable(field), raising=False)


def serve(*options: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run `serve` where it is expected to end by itself."""
    return run("serve", *options, **variables)


def run(*options: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "BOCHNER_DATA_DIR": "/dev/null/no-directory", "BOCHNER_PORT": str(free_port())}
    command = [sys.executable, "-m", "app", *options]
    environment |= variables
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def option(field: str) -> str:
    return "--" + field.replace("_", "-")


def test_every_setting_is_read_from_its_variable_and_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.model_fields.keys() == VALUES.keys(), "give each a value in VALUES"
    defaults = Settings()
    for field, value in VALUES.items():
        monkeypatch.setenv(Settings.variable(field), value)
    read = Settings()
    for field, value in VALUES.items():
        assert str(getattr(read, field)).lower() == value
        assert getattr(read, field) != getattr(defaults, field)
        monkeypatch.delenv(Settings.variable(field))
    read.export()
    assert Settings() == read


def test_an_option_wins_over_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOCHNER_PORT", "8123")
    monkeypatch.setenv("REDIS_URL", "redis://variable")
    settings = Settings(port=8124, redis_url="redis://option")
    assert (settings.port, settings.redis_url) == (8124, "redis://option")


def test_the_command_line_takes_every_setting() -> None:
    """All at once, with a bad one at the end that is refused for its value, not as an option."""
    options = [text for field, value in VALUES.items() for text in (option(field), value)]
    ended = serve(*options, "--log-level", "loud")
    assert ended.returncode == 1
    assert ended.stderr.startswith("BOCHNER_LOG_LEVEL (--log-level) is 'loud': ")
    assert serve("--prt", "1").returncode == 2


def test_sizes_have_units_and_words_any_case() -> None:
    read = Settings(max_body_bytes="512MiB", cache_bytes="1.5 GB", log_level="INFO", log_format="JSON")
    assert (read.max_body_bytes, read.cache_bytes) == (512 << 20, 1_500_000_000)
    assert (read.log_level, read.log_format) == ("info", "json")


def test_help_tells_what_a_command_takes_and_its_defaults() -> None:
    assert run("--version").stdout == f"bochner {version('bochner')}\n"
    served, worked = (" ".join(run(command, "--help").stdout.split()) for command in ("serve", "worker"))
    for told in ("[BOCHNER_PORT, else 8000]", "[BOCHNER_CACHE_BYTES, else 1GiB]", "[REDIS_URL]", "else true]"):
        assert told in served
    assert "[BOCHNER_MAX_JOB_SECONDS, else 14400.0]" in worked
    assert "BOCHNER_PORT" not in worked


def test_a_variable_that_is_no_setting_is_told_of() -> None:
    ended = run("check", BOCHNER_CACHE_BITES="1", BOCHNER_CACHE_BYTES="2", BOCHNER_KEY="x")
    assert "BOCHNER_CACHE_BITES is no setting; is BOCHNER_CACHE_BYTES meant?" in ended.stderr
    assert ended.stderr.count("is no setting") == 1


@each(("field", "value"), BAD)
def test_a_bad_value_is_refused(field: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(Settings.variable(field), value)
    with pytest.raises(ValidationError) as refused:
        Settings()
    assert len(refused.value.errors()) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    with_nightly(
        [("store_binary", "/no/such/program"), ("data_dir", "/dev/null/no-directory")],
        [("redis_url", "http://localhost"), ("redis_url", "redis+cluster://localhost/1"), ("port", "0")],
    ),
)
def test_a_bad_value_ends_serve_with_one_sentence(field: str, value: str) -> None:
    ended = serve(option(field), value)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert len(ended.stderr.strip().splitlines()) == 1
    assert "Traceback" not in ended.stderr
    assert field in ended.stderr or value in ended.stderr or "URL" in ended.stderr


def test_what_no_command_can_read_is_told_in_a_sentence(tmp_path: Path) -> None:
    unreadable = "x" * 5000  # for administrators too, who may read what others may not
    commands = [("check",), ("repair",), ("keys", "list"), ("serve",), ("backup", str(tmp_path / "b"))]
    for command in (*commands, ("accept-store",), ("serve", "--store-replicas", "1")):
        ended = run(*command, "--data-dir", unreadable)
        assert ended.returncode == 1, command
        assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
        assert "Traceback" not in ended.stderr, command
