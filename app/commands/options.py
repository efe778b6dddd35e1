"""What several commands share: options that are settings, and the store that they name."""

import argparse
import logging
import logging.config
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.logs import configuration
from app.settings import Settings
from app.store.connection import Client, connect
from app.store.disk import FOLDER
from app.store.embedded import EmbeddedStore
from app.store.errors import StoreOutdated, StoreUnavailable
from app.store.server import StoreNotStarted
from app.store.servers import check_versions

logger = logging.getLogger(__name__)

AddParser = Callable[..., argparse.ArgumentParser]
"""Gives the command line a command: its name, its help text, and the parser of its options."""
STORE_SETTINGS = (
    *("data_dir", "redis_url", "store_replicas", "store_binary", "store_timeout", "min_free_bytes"),
    *("log_format", "log_level"),
)
"""What a command needs to reach a store."""


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str] = Settings.model_fields) -> None:
    """Take settings as options. One that is not given is left to the environment, and to its default."""
    for name in names:
        field = Settings.model_fields[name]
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, default=argparse.SUPPRESS, help=f"{field.description} [{Settings.variable(name)}]")


def files_of(options: dict[str, Any]) -> Path:
    """The data directory that the settings name, of a private store; ValueError if there is none."""
    data_dir = checked_settings(options).data_dir.expanduser().absolute()
    if not (data_dir / FOLDER).is_dir():
        raise ValueError(f"{data_dir} has no files of a store: name its data directory (BOCHNER_DATA_DIR)")
    return data_dir


@contextmanager
def reached(options: dict[str, Any]) -> Iterator[Client]:
    """A client of the store that the settings name, for the length of a with block; no service need run."""
    settings = checked_settings(options)
    with _url(settings) as url, _connected(settings, url) as client:
        yield client


def _connected(settings: Settings, url: str) -> Client:
    return connect(url, settings.store_timeout, settings.min_free_bytes, settings.store_replicas)


@contextmanager
def _url(settings: Settings) -> Iterator[str]:
    if settings.redis_url is not None:
        yield settings.redis_url
        return
    embedded = EmbeddedStore(settings.data_dir, settings.store_binary, settings.min_free_bytes)
    try:
        running = embedded.reachable_url()
    except StoreNotStarted:
        with embedded:  # no service runs
            yield embedded.url
    else:
        yield running


def checked_settings(options: dict[str, Any]) -> Settings:
    """The settings, once logging is set up; StoreOutdated if the store that they name is too old.

    A store that does not answer is no reason to stop: a service may start before it.
    """
    settings = Settings(**options)
    logging.config.dictConfig(configuration(settings.log_format, settings.log_level))
    if settings.redis_url is not None:
        with connect(settings.redis_url, settings.store_timeout) as client:
            try:
                check_versions(client)
            except StoreOutdated:
                raise
            except StoreUnavailable:
                logger.debug("the store does not answer yet")
    return settings
