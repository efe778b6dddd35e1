"""`bochner wait`: follows a job of a running service to its end."""

import sys

from app.commands.options import AddParser, add_url


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("wait", help="wait for a job of a running service, showing its progress")
    parser.add_argument("job", help="Id or link of the job.")
    add_url(parser)
    parser.set_defaults(run=run)


def run(url: str, job: str) -> None:
    """Wait for the job."""
    from app import client

    try:
        client.wait_for(url, job)
    except client.ClientFailed as error:
        sys.exit(str(error))
