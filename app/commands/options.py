"""What several commands share: options that are settings, and the address of a service."""

import argparse
import logging
from collections.abc import Callable
from typing import Any

from app.settings import Settings
from app.store.connection import connect

AddParser = Callable[..., argparse.ArgumentParser]
"""Gives the command line a command: its name, its help text, and the parser of its options."""


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Take every setting as an option. One that is not given is left to the environment, and to its default."""
    for name, field in Settings.model_fields.items():
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, default=argparse.SUPPRESS, help=f"{field.description} [{Settings.variable(name)}]")


def add_url(parser: argparse.ArgumentParser) -> None:
    """Take the address of a running service."""
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="Address of the service. [%(default)s]")


def checked_settings(options: dict[str, Any]) -> Settings:
    """The settings, once logging is set up and the store that they name has answered."""
    settings = Settings(**options)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s:     %(name)s: %(message)s")
    if settings.redis_url is not None:
        connect(settings.redis_url, settings.store_timeout).close()
    return settings
