"""Lets the service, installed from a checkout, take the client from the same checkout.

`pip install .` is told that the service needs the client that lies here, and installs both. An editable installation
has the client's source beside its own (`dev-mode-dirs`), so that a change of either counts at once. An sdist of the
service has no client in it: what is built from one needs the published client.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CLIENT = "bochner-client"


class ServiceDependency(BuildHookInterface):
    """Adds the client to what a wheel of the service depends on."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add it; `version` is that of the wheel's kind, standard or editable."""
        if version == "editable":
            return
        source = Path(self.root) / "client"
        is_there = (source / "pyproject.toml").is_file()
        build_data["dependencies"].append(f"{CLIENT} @ {source.as_uri()}" if is_there else CLIENT)
