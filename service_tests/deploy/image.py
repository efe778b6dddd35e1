"""Builds the image of the Dockerfile where there is no engine: Debian's buildah, on a base of debootstrap."""

import configparser
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
SUITE = "trixie"  # what the Dockerfile's own base is made of
NEEDED = ("buildah", "debootstrap", "crun")
CERTIFICATES = "/run/certificates"


def missing() -> str | None:
    """Why no image can be built here; None if it can."""
    if os.geteuid() != 0:
        return "building an image takes root"
    absent = [program for program in NEEDED if shutil.which(program) is None]
    return f"building an image takes {', '.join(absent)}: apt-get install them" if absent else None


class Image(NamedTuple):
    """A built image, laid out as a file system."""

    root: Path
    config: dict[str, Any]
    """What the Dockerfile says that is no file: Env, Entrypoint, Cmd, User, Volumes, Healthcheck."""


@contextmanager
def built(directory: Path) -> Iterator[Image]:
    """The image of this repository's Dockerfile. Everything of it lies in the directory, and is removed at the end."""

    def buildah(*args: str | Path) -> str:
        # Each layer is a plain directory, which needs nothing of the system's kernel.
        place = [f"--root={directory / 'store'}", f"--runroot={directory / 'run'}", "--storage-driver=vfs"]
        command = ["buildah", *place, *map(str, args)]
        return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    base = buildah("from", "scratch")
    try:
        include = "--include=ca-certificates,python3,python3-venv"
        # Its own output is long, and of use only where it fails.
        with (directory / "debootstrap.log").open("w") as log:
            command = ["debootstrap", "--variant=minbase", include, SUITE, buildah("mount", base), *mirror()]
            subprocess.run(command, stdout=log, stderr=log, check=True)
        buildah("umount", base)
        buildah("commit", "--format=docker", base, "base")
        buildah("rm", base)
        build = ["build", "--isolation=chroot", "--format=docker", "--build-arg=BASE=localhost/base", "--tag=bochner"]
        buildah(*build, *secrets(directory), str(ROOT))
        made = buildah("from", "--pull-never", "localhost/bochner")
        config = json.loads(buildah("inspect", "--type=image", "localhost/bochner"))["Docker"]["config"]
        yield Image(Path(buildah("mount", made)), config)
        buildah("umount", made)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def mirror() -> list[str]:
    """Where this machine takes Debian's packages from; nothing, for debootstrap's own choice, if it does not say."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages", "Label: Debian"]
    return subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[:1]


def secrets(directory: Path) -> list[str]:
    """Options that pass this machine's settings of pip, whatever they are, to the build and to nothing else."""
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    settings = configparser.RawConfigParser()
    settings.add_section("global")
    options = []
    for line in told.splitlines():
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        if key == "cert":
            options.append(f"--secret=id=certificates,src={value.strip(chr(39))}")
            settings.set("global", "cert", CERTIFICATES)
        elif key in ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout"):
            settings.set("global", key, value.strip("'").replace("\\n", "\n"))
    path = directory / "pip.conf"
    path.touch(mode=0o600)
    with path.open("w") as file:
        settings.write(file)
    return [*options, f"--secret=id=pip.conf,src={path}"]
