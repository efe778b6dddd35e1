"""What docker-compose.yml says of its services, without running them: test_image.py does that."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from app.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSED = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = {name: service for name, service in COMPOSED["services"].items() if name != "tests"}
SCRIPT = ROOT / "docker" / "secrets.sh"


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_no_rights_and_time_to_end(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert service["logging"]["options"]["max-size"]
    assert all("size=" in one for one in service["tmpfs"])
    wanted = Settings().shutdown_timeout + 20 if name == "api" else 30
    assert int(service["stop_grace_period"].removesuffix("s")) >= wanted
    assert set(service.get("secrets", [])) <= COMPOSED["secrets"].keys()


def test_passwords_are_drawn_and_kept_where_only_the_owner_gets(tmp_path: Path) -> None:
    drawn = set()
    for directory in (tmp_path / "a", tmp_path / "b"):
        for _ in range(2):  # what is there stays
            subprocess.run([SCRIPT, directory], check=True)
        assert directory.stat().st_mode & 0o777 == 0o700
        drawn.add((directory / "redis_url").read_text())
    for url in drawn:
        assert re.fullmatch("redis://bochner:[0-9a-f]{64}@store:6379/0", url)
    assert len(drawn) == 2


def test_no_password_is_in_the_repository() -> None:
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert "secrets/" in ignored
    assert "docker/secrets" in (ROOT / ".dockerignore").read_text().splitlines()
    assert COMPOSED["secrets"]["redis_url"]["file"] == "./docker/secrets/redis_url"
    files = [*(ROOT / "docker").glob("*.*"), ROOT / "docker-compose.yml", *(ROOT / "deploy").rglob("*.*")]
    for path in files:
        if path.is_file():
            assert "change-me" not in path.read_text()
            assert not re.search(r"redis://\w+:\w+@", path.read_text()), path
