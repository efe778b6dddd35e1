"""`bochner create` and `bochner wait`, and common parts of commands that use a running service.

`create` creates a map from a file with its spec; `wait` follows a job to its end.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.commands.options import AddParser, add_settings
from app.settings import ClientSettings

if TYPE_CHECKING:  # the client takes long to load, and most commands need none
    from bochner_client import Client, JobEvent

# Seconds for which a service may be unreachable while a command waits for a job, for instance during a restart.
_PATIENCE_SECONDS = 60.0


def add(add_parser: AddParser) -> None:
    """Add the commands."""
    parser = add_parser("create", help="create a map of a running service")
    parser.add_argument("name", help="Name of the map.")
    parser.add_argument("--spec", required=True, type=Path, help="File with its spec as JSON; - for the input.")
    parser.add_argument("--wait", action="store_true", help="Wait until it is ready, showing the progress.")
    add_settings(parser, of=ClientSettings)
    parser.set_defaults(run=run_create)
    parser = add_parser("wait", help="wait for a job of a running service, showing its progress")
    parser.add_argument("job", help="Id or link of the job.")
    add_settings(parser, of=ClientSettings)
    parser.set_defaults(run=run_wait)


def run_create(name: str, spec: Path, wait: bool, **options: Any) -> None:
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


def run_wait(job: str, **options: Any) -> None:
    """Wait for the job."""
    with service(options) as client:
        client.get_job(job)
        follow(client, job)


@contextmanager
def service(options: dict[str, Any]) -> Iterator["Client"]:
    """Yield a client of the service that the options name; exit with a one-line message if a request fails."""
    from bochner_client import BochnerError, Client

    settings = ClientSettings(**options)
    try:
        # No retries, as the address may be wrong.
        with Client(settings.url, settings.read_key(), patience=0) as client:
            yield client
    except BochnerError as error:
        sys.exit(str(error))


def follow(client: "Client", job: str) -> None:
    """Show a job's progress until it has succeeded: a bar on a terminal, else lines. The service must have answered."""
    client.patience = _PATIENCE_SECONDS
    client.wait_for_job(job, progress=True if sys.stderr.isatty() else _Lines())


class _Lines:
    """Progress as lines for logs: one whenever the state or the percentage changes."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, event: "JobEvent") -> None:
        from bochner_client.progress import words

        line = f"{event.state} {100 * event.progress:.0f}%"
        if line != self._last:
            self._last = line
            sys.stderr.write(f"{line} {words(event)}".rstrip() + "\n")
