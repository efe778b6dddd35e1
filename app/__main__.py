"""The commands: serve, and openapi, which prints the OpenAPI document."""

import argparse
import json
import logging
import signal
import sys
from contextlib import nullcontext
from types import FrameType
from typing import Any

import uvicorn
from pydantic import ValidationError

from app.main import create_app
from app.settings import Settings
from app.store.connection import connect
from app.store.embedded import EmbeddedStore, StoreNotStarted

_SHUTDOWN_SECONDS = 8


def main() -> None:
    """Run the command named on the command line."""
    parser = argparse.ArgumentParser(prog="bochner", description="Kernel features and hash codes as a service.")
    commands = parser.add_subparsers(dest="command", required=True)
    serve_parser = commands.add_parser("serve", help="run the service", argument_default=argparse.SUPPRESS)
    for name, field in Settings.model_fields.items():
        option = "--" + name.replace("_", "-")
        serve_parser.add_argument(option, help=f"{field.description} [{Settings.variable(name)}]")
    commands.add_parser("openapi", help="print the OpenAPI document")
    options = vars(parser.parse_args())
    if options.pop("command") == "openapi":
        print_openapi()
        return
    try:
        settings = Settings(**options)
        if settings.redis_url is not None:
            connect(settings.redis_url, settings.store_timeout).close()
        serve(settings)
    except ValidationError as error:
        sys.exit("\n".join(f"{one['loc'][0]}: {one['msg']}" for one in error.errors()))
    except (ValueError, StoreNotStarted) as error:
        sys.exit(str(error))


def print_openapi() -> None:
    """Print the OpenAPI document; it needs no store."""
    document = create_app(Settings(redis_url="redis://localhost")).openapi()
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def serve(settings: Settings) -> None:
    """Run the service until it is told to stop, and with it, unless it was given one, a store of its own.

    Raises:
        StoreNotStarted: the private store does not come up.
    """
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s:     %(name)s: %(message)s")
    # uvicorn repeats a signal once it has shut down; as an exception it lets the store be stopped too.
    signal.signal(signal.SIGTERM, _exit)
    embedded = EmbeddedStore(settings.data_dir, settings.store_binary) if settings.redis_url is None else None
    with embedded or nullcontext():
        if embedded is not None:
            settings = settings.model_copy(update={"redis_url": embedded.url})
        settings.export()
        uvicorn.run(
            "app.main:create_app",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            log_level=settings.log_level,
            server_header=False,
            ws="none",
            # A client that stalls must not keep the store from being stopped in order.
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )


def _exit(_: int, __: FrameType | None) -> Any:
    sys.exit(0)


if __name__ == "__main__":
    main()
