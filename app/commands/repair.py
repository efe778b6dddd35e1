"""`bochner repair`: makes damaged files of a private store usable, and keeps what that cuts off."""

import sys
from typing import Any

from app.commands.options import AddParser, add_settings, files_of
from app.store.data_files import repair
from app.store.embedded import EmbeddedStore


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("repair", help="cut damaged ends off the files of a private store, and keep them beside")
    add_settings(parser, ["data_dir"])
    parser.set_defaults(run=run)


def run(**options: Any) -> None:
    """Repair the files of a store that does not run, and say what was done."""
    data_dir = files_of(options)
    with EmbeddedStore(data_dir).at_rest():
        done = repair(data_dir)
    sys.stdout.write("\n".join(done or ["Everything is whole."]) + "\n")
