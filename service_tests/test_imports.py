"""Libraries that take long to load wait for their first use."""

import subprocess
import sys

import pytest

SLOW = {"matplotlib", "scipy.stats", "scipy.optimize", "scipy.spatial", "httpx", "tqdm"}
OF_THE_WEB = {"fastapi", "starlette", "uvicorn"}


@pytest.mark.parametrize(("module", "others"), [("app.main", SLOW), ("app.handlers", SLOW | OF_THE_WEB)])
def test_slow_libraries_are_not_loaded_at_the_start(module: str, others: set[str]) -> None:
    source = f"import sys, app.__main__, {module}; print({others!r} & sys.modules.keys())"
    loaded = subprocess.run([sys.executable, "-c", source], check=True, capture_output=True, text=True).stdout
    assert loaded.strip() == "set()"
