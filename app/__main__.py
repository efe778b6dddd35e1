"""The command line: `bochner COMMAND`, with each command in a module of app/commands."""

import argparse
import atexit
import gc
import sys
from importlib.metadata import version

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from app.commands import bulk, keys, openapi, serve, stores, worker
from app.settings import ClientSettings, Settings
from app.store.backup import BackupFailed
from app.store.errors import StoreUnavailable, in_full
from app.store.server import StoreNotStarted

COMMANDS = (serve, worker, keys, bulk, stores, openapi)


def main() -> None:
    """Run the command named on the command line.

    Modules that only some commands need are imported when those commands run: a client must not wait for compilers to
    load, and a worker needs no web server.
    """
    parser = argparse.ArgumentParser(prog="bochner", description="Kernel features and hash codes as a service.")
    parser.add_argument("--version", action="version", version=f"bochner {version('bochner')}")
    # Skips garbage collection of the libraries' objects at exit, which would take a third of a second.
    atexit.register(gc.freeze)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in COMMANDS:
        command.add(commands.add_parser)
    options = vars(parser.parse_args())
    del options["command"]
    try:
        options.pop("run")(**options)
    except ValidationError as error:
        sys.exit("\n".join(map(_describe_error, error.errors())))
    except (ValueError, BackupFailed, StoreNotStarted, OSError) as error:
        sys.exit(str(error))
    except StoreUnavailable as error:
        sys.exit(in_full(error))


def _describe_error(error: ErrorDetails) -> str:
    """Return what is wrong with an option, with its value unless the option is a key."""
    if not error["loc"]:
        return error["msg"]
    name = str(error["loc"][0])
    came = "" if name == "key" else f" is {error['input']!r}"
    if name in Settings.model_fields or name in ClientSettings.model_fields:
        name = f"{Settings.variable(name)} (--{name.replace('_', '-')})"
    return f"{name}{came}: {error['msg']}"


if __name__ == "__main__":
    main()
