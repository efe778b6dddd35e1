"""`bochner create`: a map of a running service, from a file with its spec."""

import sys
from pathlib import Path

from app.commands.options import AddParser, add_url


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("create", help="create a map of a running service")
    parser.add_argument("name", help="Name of the map.")
    parser.add_argument("--spec", required=True, type=Path, help="File with its spec as JSON; - for the input.")
    parser.add_argument("--wait", action="store_true", help="Wait until it is ready, showing the progress.")
    add_url(parser)
    parser.set_defaults(run=run)


def run(url: str, name: str, spec: Path, wait: bool) -> None:
    """Create the map."""
    from app import client

    try:
        client.create(url, name, spec, wait)
    except client.ClientFailed as error:
        sys.exit(str(error))
