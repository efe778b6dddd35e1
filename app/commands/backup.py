"""`bochner backup`: writes everything that a store holds to a file."""

import sys
from pathlib import Path
from typing import Any

from app.commands.options import STORE_SETTINGS, AddParser, add_settings, files_of, reached
from app.settings import Settings
from app.store.backup import back_up


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("backup", help="write everything that a store holds to a file, while services use it or not")
    parser.add_argument("file", type=Path, help="File to write, which is not there yet.")
    add_settings(parser, STORE_SETTINGS)
    parser.set_defaults(run=run)


def run(file: Path, **options: Any) -> None:
    """Write the backup."""
    if Settings(**options).redis_url is None:
        files_of(options)  # else one would be started, and its emptiness written
    with reached(options) as client:
        keys = back_up(client, file)
    sys.stdout.write(f"{file}: {file.stat().st_size} bytes, {keys} keys.\n")
