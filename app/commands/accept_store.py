"""`bochner accept-store`: lets services go on with a store that came back empty."""

import sys
from typing import Any

from app.commands.options import STORE_SETTINGS, AddParser, add_settings, reached
from app.store import identity


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("accept-store", help="let services go on with a store that came back without what it held")
    add_settings(parser, STORE_SETTINGS)
    parser.set_defaults(run=run)


def run(**options: Any) -> None:
    """Accept the store as it is."""
    with reached(options) as client:
        identity.accept(client)
    sys.stdout.write("The store is accepted as it is.\n")
