"""The two distributions of a checkout, as pip sees them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.nightly


def would_install(*paths: str) -> dict[str, Any]:
    """What pip would install of these, by name, without what they depend on."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps", "--ignore-installed"]
    ended = subprocess.run(
        [*command, "--report", "-", *paths], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=300
    )
    return {one["metadata"]["name"]: one["metadata"] for one in json.loads(ended.stdout)["install"]}


def test_the_service_takes_the_client_of_its_checkout() -> None:
    wanted = would_install(".")["bochner"]["requires_dist"]
    assert f"bochner-client @ {(ROOT / 'client').as_uri()}" in wanted


def test_the_client_alone_needs_numpy_and_httpx_only() -> None:
    wanted = would_install("./client")["bochner-client"]["requires_dist"]
    assert {one.partition(">")[0].partition("<")[0] for one in wanted if "extra" not in one} == {"httpx", "numpy"}
