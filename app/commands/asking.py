"""What the commands that talk to a running service share: its address, and a job that is waited for."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from app.settings import ClientSettings, Settings

if TYPE_CHECKING:  # the client takes long to load, and most commands need none
    from bochner_client import Client, JobEvent

# How long a service may be away while a job is waited for, as while it is being restarted.
_PATIENCE_SECONDS = 60.0


def add_service(parser: argparse.ArgumentParser) -> None:
    """Take the address of a running service, and a key."""
    for name, field in ClientSettings.model_fields.items():
        option, variable = "--" + name.replace("_", "-"), Settings.variable(name)
        parser.add_argument(option, default=argparse.SUPPRESS, help=f"{field.description} [{variable}]")


@contextmanager
def service(options: dict[str, Any]) -> Iterator["Client"]:
    """A client of the service that the options name, for the length of a with block; what fails is told in a line."""
    from bochner_client import BochnerError, Client

    settings = ClientSettings(**options)
    try:
        # Without patience, as an address may be wrong.
        with Client(settings.url, settings.key_given(), patience=0) as client:
            yield client
    except BochnerError as error:
        sys.exit(str(error))


def follow(client: "Client", job: str) -> None:
    """Show how far a job is until it has succeeded: by a bar at a terminal, else by lines. The service has answered."""
    client.patience = _PATIENCE_SECONDS
    client.wait_for_job(job, progress=True if sys.stderr.isatty() else _Lines())


class _Lines:
    """Writes a line whenever there is something new: for logs."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, event: "JobEvent") -> None:
        from bochner_client.progress import words

        line = f"{event.state} {100 * event.progress:.0f}%"
        if line != self._last:
            self._last = line
            sys.stderr.write(f"{line} {words(event)}".rstrip() + "\n")
