"""`bochner create`: a map of a running service, from a file with its spec."""

import json
import sys
from pathlib import Path
from typing import Any

from app.commands.asking import add_service, follow, service
from app.commands.options import AddParser


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("create", help="create a map of a running service")
    parser.add_argument("name", help="Name of the map.")
    parser.add_argument("--spec", required=True, type=Path, help="File with its spec as JSON; - for the input.")
    parser.add_argument("--wait", action="store_true", help="Wait until it is ready, showing the progress.")
    add_service(parser)
    parser.set_defaults(run=run)


def run(name: str, spec: Path, wait: bool, **options: Any) -> None:
    """Create the map, and print its record."""
    try:
        body = sys.stdin.buffer.read() if str(spec) == "-" else spec.read_bytes()
    except OSError as error:
        sys.exit(f"{spec}: {error.strerror}")
    with service(options) as client:
        record = client.put_map(name, body, wait=False)
        if wait and record.job is not None:
            follow(client, record.job)
            record = client.get_map(name)
    sys.stdout.write(json.dumps(record.document, ensure_ascii=False) + "\n")
