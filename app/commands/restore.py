"""`bochner restore`: puts a backup into a store that is empty."""

import sys
from pathlib import Path
from typing import Any

from app.commands.options import STORE_SETTINGS, AddParser, add_settings, reached
from app.store.backup import restore


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("restore", help="put a backup into a store that is empty")
    parser.add_argument("file", type=Path, help="The backup.")
    add_settings(parser, STORE_SETTINGS)
    parser.set_defaults(run=run)


def run(file: Path, **options: Any) -> None:
    """Put the backup into the store."""
    with reached(options) as client:
        keys = restore(client, file)
    sys.stdout.write(f"{keys} keys were put into the store.\n")
