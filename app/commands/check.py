"""`bochner check`: whether the files of a private store are whole."""

import sys
from typing import Any

from app.commands.options import AddParser, add_settings, files_of
from app.store.data_files import check


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("check", help="see whether the files of a private store are whole")
    add_settings(parser, ["data_dir"])
    parser.set_defaults(run=run)


def run(**options: Any) -> None:
    """Say of each file what it holds; end with status 1 if one is damaged. Nothing is changed."""
    found = check(files_of(options))
    for one in found:
        sys.stdout.write(f"{one}\n")
    if any(one.fault for one in found):
        sys.exit(1)
    sys.stdout.write("Everything is whole.\n")
