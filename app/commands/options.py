"""What several commands share: options that are settings, and the address of a service."""

import argparse
import logging
import sys
from collections.abc import Callable, Iterable
from typing import Any

from app.settings import ClientSettings, Settings
from app.store.connection import connect

AddParser = Callable[..., argparse.ArgumentParser]
"""Gives the command line a command: its name, its help text, and the parser of its options."""


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str] = Settings.model_fields) -> None:
    """Take settings as options. One that is not given is left to the environment, and to its default."""
    for name in names:
        field = Settings.model_fields[name]
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, default=argparse.SUPPRESS, help=f"{field.description} [{Settings.variable(name)}]")


def add_service(parser: argparse.ArgumentParser) -> None:
    """Take the address of a running service, and a key."""
    for name, field in ClientSettings.model_fields.items():
        option, variable = "--" + name.replace("_", "-"), Settings.variable(name)
        parser.add_argument(option, default=argparse.SUPPRESS, help=f"{field.description} [{variable}]")


def run_client(function: str, *arguments: Any, **options: Any) -> None:
    """Run a function of `app.client` on the service that the options name; what fails is told in a line."""
    from app import client

    settings = ClientSettings(**options)
    try:
        getattr(client, function)(client.Service(settings.url, settings.key_given()), *arguments)
    except client.ClientFailed as error:
        sys.exit(str(error))


def checked_settings(options: dict[str, Any]) -> Settings:
    """The settings, once logging is set up and the store that they name has answered."""
    settings = Settings(**options)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s:     %(name)s: %(message)s")
    if settings.redis_url is not None:
        connect(settings.redis_url, settings.store_timeout).close()
    return settings
