"""The commands: serve, worker, create and wait, which talk to a service, and openapi, which prints the document."""

import argparse
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from pydantic import ValidationError

from app.jobs.worker_supervisor import WorkerSupervisor
from app.settings import Settings
from app.store.binary import StoreNotStarted
from app.store.connection import connect
from app.store.embedded import EmbeddedStore

_SHUTDOWN_SECONDS = 8
_LOOK_SECONDS = 0.25


def main() -> None:
    """Run the command named on the command line.

    What only some commands need is imported by them: a client is not to wait for compilers to load, and a worker needs
    no web server.
    """
    parser = argparse.ArgumentParser(prog="bochner", description="Kernel features and hash codes as a service.")
    commands = parser.add_subparsers(dest="command", required=True)
    for run, text in ((serve, "run the service"), (worker, "run jobs of the store at REDIS_URL")):
        with_settings = commands.add_parser(run.__name__, help=text, argument_default=argparse.SUPPRESS)
        with_settings.set_defaults(run=run)
        for name, field in Settings.model_fields.items():
            option = "--" + name.replace("_", "-")
            with_settings.add_argument(option, help=f"{field.description} [{Settings.variable(name)}]")
    with_settings.add_argument("--parent", type=int, help="End when this process is gone.")
    _add_client_commands(commands.add_parser)
    commands.add_parser("openapi", help="print the OpenAPI document").set_defaults(run=print_openapi)
    options = vars(parser.parse_args())
    del options["command"]
    try:
        options.pop("run")(**options)
    except ValidationError as error:
        sys.exit("\n".join(f"{one['loc'][0]}: {one['msg']}" for one in error.errors()))
    except (ValueError, StoreNotStarted) as error:
        sys.exit(str(error))


def _add_client_commands(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    create_parser = add_parser("create", help="create a map of a running service")
    create_parser.set_defaults(run=partial(_ask, "create"))
    create_parser.add_argument("name", help="Name of the map.")
    create_parser.add_argument("--spec", required=True, type=Path, help="File with its spec as JSON; - for the input.")
    create_parser.add_argument("--wait", action="store_true", help="Wait until it is ready, showing the progress.")
    wait_parser = add_parser("wait", help="wait for a job of a running service, showing its progress")
    wait_parser.set_defaults(run=partial(_ask, "wait_for"))
    wait_parser.add_argument("job", help="Id or link of the job.")
    for client_parser in (create_parser, wait_parser):
        client_parser.add_argument(
            "--url", default="http://127.0.0.1:8000", help="Address of the service. [%(default)s]"
        )


def _ask(function: str, **options: Any) -> None:
    """Run a command that talks to a service, one of the functions of `app.client`."""
    from app import client

    try:
        getattr(client, function)(**options)
    except client.ClientFailed as error:
        sys.exit(str(error))


def worker(parent: int | None = None, **options: Any) -> None:
    """Run jobs until the process is told to stop, or until the process `parent` is gone."""
    settings = _settings(options)
    if settings.redis_url is None:
        url = EmbeddedStore(settings.data_dir, settings.store_binary).reachable_url()
        settings = settings.model_copy(update={"redis_url": url})
    if parent is not None:
        Thread(target=_end_with, args=(parent,), name="parent-watch", daemon=True).start()
    from app.handlers import run_worker

    run_worker(settings)


def _settings(options: dict[str, Any]) -> Settings:
    """The settings, once logging is set up and the store that they name has answered."""
    settings = Settings(**options)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s:     %(name)s: %(message)s")
    if settings.redis_url is not None:
        connect(settings.redis_url, settings.store_timeout).close()
    return settings


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def print_openapi() -> None:
    """Print the OpenAPI document; it needs no store."""
    from app.main import create_app

    document = create_app(Settings(redis_url="redis://localhost")).openapi()
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def serve(**options: Any) -> None:
    """Run the service until it is told to stop, and with it, unless it was given one, a store of its own."""
    import uvicorn

    from app.connections import Connection

    settings = _settings(options)
    # uvicorn repeats a signal once it has shut down; as an exception it lets the store be stopped too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    embedded = EmbeddedStore(settings.data_dir, settings.store_binary) if settings.redis_url is None else None
    with embedded or nullcontext():
        if embedded is not None:
            settings = settings.model_copy(update={"redis_url": embedded.url})
        settings.export()
        with WorkerSupervisor(settings.job_workers):
            uvicorn.run(
                "app.main:create_app",
                factory=True,
                host=settings.host,
                port=settings.port,
                workers=settings.workers,
                log_level=settings.log_level,
                server_header=False,
                http=Connection,
                ws="none",
                # A client that stalls must not keep the store from being stopped in order.
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            )


if __name__ == "__main__":
    main()
