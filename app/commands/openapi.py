"""`bochner openapi`: print the OpenAPI document."""

import json
import sys

from app.commands.options import AddParser
from app.settings import Settings


def add(add_parser: AddParser) -> None:
    """Add the command."""
    add_parser("openapi", help="print the OpenAPI document").set_defaults(run=run)


def run() -> None:
    """Print the OpenAPI document; this needs no store."""
    from app.main import create_app

    document = create_app(Settings(redis_url="redis://localhost")).openapi()
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
