"""`bochner wait`: follows a job of a running service to its end."""

from typing import Any

from app.commands.asking import add_service, follow, service
from app.commands.options import AddParser


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("wait", help="wait for a job of a running service, showing its progress")
    parser.add_argument("job", help="Id or link of the job.")
    add_service(parser)
    parser.set_defaults(run=run)


def run(job: str, **options: Any) -> None:
    """Wait for the job."""
    with service(options) as client:
        client.get_job(job)
        follow(client, job)
