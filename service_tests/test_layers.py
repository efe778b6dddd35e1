"""Imports go down only: each layer may import the layers named for it, and libraries only where they belong."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import app

ROOT = Path(app.__file__).parent
PACKAGES = ("app", "bochner", "bochner_client")
# What each layer may import of this project, itself aside.
MAY_IMPORT = {
    # The core under names of its own, for processes without a service.
    "bochner": {"app.core", "app.processors"},
    # What talks to a service knows of it what its contract says.
    "bochner_client": set[str](),
    # Where the service's package is installed too, maps can be applied without the service.
    "bochner_client.calls.local": {"bochner", "bochner_client"},
    "app.core": set[str](),
    "app.processors": set[str](),
    "app.own_process": set[str](),
    "app.in_work": set[str](),
    "app.spans": {"app.in_work"},
    "app.metrics": set[str](),
    "app.logs": {"app.in_work", "app.store"},
    "app.settings": {"app.processors"},
    "app.store": {"app.core"},
    "app.parquet_process": set[str](),
    "app.formats": {"app.core", "app.pictures", "app.own_process", "app.parquet_process"},
    "app.pictures": {"app.core"},
    "app.connections": {"app.api", "app.metrics", "app.settings"},
    "app.jobs": {"app.core", "app.store", "app.in_work", "app.logs", "app.own_process", "app.spans"},
    "app.services": {
        *("app.core", "app.store", "app.jobs", "app.in_work", "app.metrics", "app.processors", "app.own_process"),
    },
    "app.api": {
        *("app.core", "app.store", "app.formats", "app.pictures", "app.jobs", "app.services"),
        *("app.in_work", "app.logs", "app.metrics", "app.spans"),
    },
    # Routes work with what is wired.
    "app.api.context": {"app.core", "app.api", "app.metrics", "app.spans", "app.wiring"},
    # They name the settings that a refusal is of.
    "app.api.admission": {"app.settings", "app.api"},
    "app.api.senders": {"app.settings", "app.api"},
    # A problem document names the setting that moves a limit.
    "app.api.problems": {"app.core", "app.store", "app.formats", "app.jobs", "app.services", "app.settings", "app.api"},
    "app.wiring": {"app.core", "app.store", "app.jobs", "app.services", "app.settings"},
    "app.handlers": {
        *(
            "app.core",
            "app.formats",
            "app.jobs",
            "app.metrics",
            "app.services",
            "app.settings",
            "app.spans",
            "app.wiring",
        ),
    },
    "app.main": {"app.settings", "app.api", "app.logs", "app.metrics", "app.spans", "app.wiring"},
    "app.commands": {
        "app.services",
        "app.store",
        "app.jobs",
        "app.logs",
        "app.metrics",
        "app.spans",
        "app.settings",
        "app.handlers",
        "app.main",
        "bochner",
        "bochner_client",
    },
    "app.__main__": {"app.commands", "app.store"},
}
# Inside core likewise, from the bottom; below them all lie the files that stand in core itself. What families of maps
# have in common lies below the families, which are the rest of `maps`.
CORE = (
    *("kernels", "discrepancy", "samplers", "hashing", "maps.terms", "maps.optional_results", "maps.base", "maps"),
    *("spec", "diagnostics", "recommendations", "indexes"),
)
# Who may import a library; all else may be imported by anybody.
ONLY_IN = {
    "redis": {"app.store", "app.jobs"},
    "valkey": {"app.store"},
    "fastapi": {"app.api", "app.main"},
    "starlette": {"app.api", "app.main"},
    "uvicorn": {"app.commands", "app.connections"},
    "matplotlib": {"app.pictures"},
    # A hostile file may end the process that reads it.
    "arro3": {"app.parquet_process"},
    "pydantic_settings": {"app.settings"},
    # They come with extras of their own.
    "pyarrow": {"bochner.bulk", "bochner_client.transformers"},
    "fsspec": {"bochner.bulk"},
    "ray": {"bochner.bulk.on_ray"},
}
READ_THE_ENVIRONMENT = {
    "app.settings",
    "app.core",  # tells libraries how many threads to start
    "bochner_client.address",
}
ENVIRONMENT = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}


def within(module: str, layer: str) -> bool:
    return module == layer or module.startswith(layer + ".")


def layer_of(module: str) -> str:
    """The longest name in MAY_IMPORT that the module lies in."""
    return max((layer for layer in MAY_IMPORT if within(module, layer)), key=len)


def floor(module: str) -> int:
    """The place in CORE of a module of core, from 1; 0 for all others."""
    return next((place for place, one in enumerate(CORE, 1) if within(module, f"app.core.{one}")), 0)


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def breaches(module: str, source: str) -> list[str]:
    """What a module does that its layer may not."""
    tree = ast.parse(source)
    layer = layer_of(module)
    allowed = MAY_IMPORT[layer] | {layer}
    found = []
    for name in imported(tree):
        is_ours = any(within(name, package) for package in PACKAGES)
        if is_ours and not any(within(name, one) for one in allowed):
            found.append(f"{module} imports {name}")
        if within(module, "app.core") and floor(name) > floor(module):
            found.append(f"{module} imports {name}")
        for library, users in ONLY_IN.items():
            if within(name, library) and not any(within(module, user) for user in users):
                found.append(f"{module} imports {name}")
    if module not in READ_THE_ENVIRONMENT:
        for node in ast.walk(tree):
            names = [node.attr] if isinstance(node, ast.Attribute) else []
            if isinstance(node, ast.ImportFrom) and node.module == "os":
                names = [alias.name for alias in node.names]
            found += [f"{module} touches {name}" for name in names if name in ENVIRONMENT]
    return found


def modules() -> list[tuple[str, Path]]:
    found = []
    for package in PACKAGES:
        above = ROOT.parent / "client" if package == "bochner_client" else ROOT.parent
        for path in sorted((above / package).rglob("*.py")):
            parts = path.relative_to(above).with_suffix("").parts
            found.append((".".join(parts).removesuffix(".__init__"), path))
    return [(module, path) for module, path in found if module != "app"]


def test_every_module_is_looked_at() -> None:
    names = {module for module, _ in modules()}
    assert {"app.main", "app.__main__", "app.settings", "app.core.spec", "app.store.maps", "app.api.routes"} <= names
    assert {"bochner", "bochner.maps", "bochner_client", "bochner_client.calls.maps"} <= names
    assert (ROOT / "__init__.py").read_text().count("import") == 0


@pytest.mark.parametrize(("module", "path"), modules())
def test_imports_go_down_only(module: str, path: Path) -> None:
    assert breaches(module, path.read_text()) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("app.core.bad", "from app.store.maps import MapStore"),
        ("app.core.bad", "import app.formats.json"),
        ("app.core.kernels.bad", "def f():\n    from app import settings"),
        ("app.core.arrays", "from app.core.kernels import Kernel"),
        ("app.core.kernels.bad", "from app.core.samplers.base import FrequencySampler"),
        ("app.core.discrepancy.bad", "import app.core.diagnostics.gram"),
        ("app.core.samplers.bad", "from app.core import spec"),
        ("app.core.maps.bad", "from app.core.spec import MapSpec"),
        ("app.core.maps.terms", "from app.core.maps.fourier.bad import FORMS"),
        ("app.core.maps.terms", "from app.core.maps.base import FeatureMap"),
        ("app.core.maps.base", "from app.core.maps import FAMILIES"),
        ("app.core.hashing.bad", "from app.core.maps import FeatureMap"),
        ("app.core.maps.bad", "from app.core.diagnostics.random_pairs import row_pairs"),
        ("app.core.diagnostics.bad", "from app.core.recommendations.trials import recommended"),
        ("app.services.bad", "import bochner"),
        ("bochner", "from app.formats.exports import EXPORTS"),
        ("bochner.bad", "from app.services.maps import Maps"),
        ("app.services.bad", "import bochner_client"),
        ("bochner_client.bad", "from app.settings import Settings"),
        ("bochner_client.bad", "import bochner"),
        ("bochner_client.bad", "import os\nos.environ['HOME']"),
        ("app.core.bad", "import redis"),
        ("app.core.bad", "from starlette.requests import Request"),
        ("app.store.bad", "from app.formats import Format"),
        ("app.formats.bad", "from app.store.errors import StoreDamaged"),
        ("app.store.bad", "from app.services import maps"),
        ("app.services.bad", "from app.api.problems import Problem"),
        ("app.services.bad", "import redis.exceptions"),
        ("app.services.bad", "from fastapi import Request"),
        ("app.services.bad", "from app.settings import Settings"),
        ("app.api.bad", "from app.main import create_app"),
        ("app.api.routes.bad", "from app.settings import Settings"),
        ("app.api.bad", "from redis import Redis"),
        ("app.main", "from app.__main__ import main"),
        ("app.settings", "from app.core import spec"),
        ("app.services.bad", "import os\nos.environ['HOME']"),
        ("app.core.bad", "from os import getenv"),
        ("app.commands.bad", "import os\nos.getenv('PORT')"),
        ("app.__main__", "from app.settings import Settings"),
        ("app.api.bad", "import uvicorn"),
        ("bochner.bad", "import pyarrow"),
        ("bochner.bulk.bad", "import ray"),
    ],
)
def test_a_breach_is_caught(module: str, source: str) -> None:
    assert breaches(module, source)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("app.api.problems", "from app.settings import Settings"),
        ("app.store.good", "import redis\nimport os\nos.fsencode('x')"),
        ("app.core.good", "import numpy as np\nfrom app.core.arrays import Rows"),
        ("app.core.samplers.good", "from app.core.discrepancy.box_discrepancy import BoxDiscrepancy"),
        ("app.core.maps.fourier.good", "from app.core.maps.base import FeatureMap"),
        ("app.core.spec", "from app.core.maps import FeatureMap"),
        ("app.core.recommendations.good", "from app.core import diagnostics"),
        ("bochner.good", "from app.core.maps import made\nfrom bochner.maps import Map"),
        ("app.settings", "import os\nos.environ['HOME']"),
        ("app.services.good", "import redistribute"),
    ],
)
def test_what_is_allowed_is_no_breach(module: str, source: str) -> None:
    assert breaches(module, source) == []


SLOW = {"matplotlib", "scipy.stats", "scipy.optimize", "scipy.spatial", "httpx", "tqdm"}
OF_THE_WEB = {"fastapi", "starlette", "uvicorn"}


@pytest.mark.parametrize(("module", "others"), [("app.main", SLOW), ("app.handlers", SLOW | OF_THE_WEB)])
def test_libraries_that_take_long_to_load_wait_for_their_first_use(module: str, others: set[str]) -> None:
    source = f"import sys, app.__main__, {module}; print({others!r} & sys.modules.keys())"
    loaded = subprocess.run([sys.executable, "-c", source], check=True, capture_output=True, text=True).stdout
    assert loaded.strip() == "set()"
