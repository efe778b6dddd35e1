"""`bochner create`: a map of a running service, from a file with its spec."""

from pathlib import Path
from typing import Any

from app.commands.options import AddParser, add_service, run_client


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("create", help="create a map of a running service")
    parser.add_argument("name", help="Name of the map.")
    parser.add_argument("--spec", required=True, type=Path, help="File with its spec as JSON; - for the input.")
    parser.add_argument("--wait", action="store_true", help="Wait until it is ready, showing the progress.")
    add_service(parser)
    parser.set_defaults(run=run)


def run(name: str, spec: Path, wait: bool, **options: Any) -> None:
    """Create the map."""
    run_client("create", name, spec, wait, **options)
