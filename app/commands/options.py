"""Common parts of commands: options that are settings, and the connection to the store that they name."""

import argparse
import logging.config
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings

from app.logs import configuration
from app.settings import Settings, default_of, unknown_variables
from app.store.connection import Client, connect
from app.store.disk import FOLDER
from app.store.embedded import EmbeddedStore
from app.store.errors import StoreOutdated, StoreUnavailable
from app.store.server import StoreNotStarted
from app.store.servers import check_versions

logger = logging.getLogger(__name__)

AddParser = Callable[..., argparse.ArgumentParser]
"""Function that adds a command with a name and a help text, and returns the parser of its options."""
STORE_SETTINGS = (
    *("data_dir", "redis_url", "store_replicas", "store_binary", "store_timeout", "min_free_bytes"),
    *("log_format", "log_level"),
)
"""Settings that a command needs to reach a store."""


def add_settings(
    parser: argparse.ArgumentParser, names: Iterable[str] | None = None, of: type[BaseSettings] = Settings
) -> None:
    """Add settings as options, all if `names` is None. The environment or the default sets options not given."""
    for name in of.model_fields if names is None else names:
        field = of.model_fields[name]
        default = default_of(name, field)
        told = f"{field.description} [{Settings.variable(name)}{default and f', else {default}'}]"
        parser.add_argument("--" + name.replace("_", "-"), default=argparse.SUPPRESS, help=told)


def files_of(settings: Settings) -> Path:
    """Return the data directory of the private store that the settings name; ValueError if there is no store."""
    data_dir = settings.data_dir.expanduser().absolute()
    if not (data_dir / FOLDER).is_dir():
        raise ValueError(f"{data_dir} has no files of a store: name its data directory (BOCHNER_DATA_DIR)")
    return data_dir


@contextmanager
def connect_to_store(options: dict[str, Any], may_be_new: bool = False) -> Iterator[Client]:
    """Yield a client of the store that the settings name; no service needs to run.

    Raises ValueError if the store is private and does not exist, unless it may be new.
    """
    settings = checked_settings(options)
    if settings.redis_url is None and not may_be_new:
        files_of(settings)
    with ExitStack() as stack:
        url = settings.redis_url
        if url is None:
            embedded = EmbeddedStore(settings.data_dir, settings.store_binary, settings.min_free_bytes)
            try:
                url = embedded.reachable_url()
            except StoreNotStarted:  # no service runs
                url = stack.enter_context(embedded).url
        timeout, replicas = settings.store_timeout, settings.store_replicas
        yield stack.enter_context(connect(url, timeout, settings.min_free_bytes, replicas))


def checked_settings(options: dict[str, Any]) -> Settings:
    """Set up logging and return the settings; StoreOutdated if the store that they name is too old.

    A store that does not answer is not an error: a service may start before its store.
    """
    settings = Settings(**options)
    logging.config.dictConfig(configuration(settings.log_format, settings.log_level))
    for told in unknown_variables():
        logger.warning(told)
    if settings.redis_url is not None:
        with connect(settings.redis_url, settings.store_timeout) as client:
            try:
                check_versions(client)
            except StoreUnavailable as error:
                if isinstance(error, StoreOutdated):
                    raise
    return settings
