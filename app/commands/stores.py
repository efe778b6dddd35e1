"""Commands that look after a store: `bochner backup`, `restore`, `check`, `repair` and `accept-store`."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from app.commands.options import STORE_SETTINGS, AddParser, add_settings, files_of, reached
from app.settings import Settings
from app.store import data_files, identity
from app.store.backup import back_up, restore
from app.store.embedded import EmbeddedStore


def add(add_parser: AddParser) -> None:
    """Add the commands."""
    parser = add_parser("backup", help="write everything that a store holds to a file, while services use it or not")
    parser.add_argument("file", type=Path, help="File to write, which is not there yet.")
    _run_with(parser, run_backup)
    parser = add_parser("restore", help="put a backup into a store that is empty")
    parser.add_argument("file", type=Path, help="The backup.")
    _run_with(parser, run_restore)
    parser = add_parser("check", help="see whether the files of a private store are whole")
    _run_with(parser, run_check, ["data_dir"])
    parser = add_parser("repair", help="cut damaged ends off the files of a private store, and keep them beside")
    _run_with(parser, run_repair, ["data_dir"])
    parser = add_parser("accept-store", help="let services go on with a store that came back without what it held")
    _run_with(parser, run_accept)


def _run_with(
    parser: argparse.ArgumentParser, run: Callable[..., None], settings: Sequence[str] = STORE_SETTINGS
) -> None:
    add_settings(parser, settings)
    parser.set_defaults(run=run)


def run_backup(file: Path, **options: Any) -> None:
    """Write the backup."""
    if Settings(**options).redis_url is None:
        files_of(options)  # else one would be started, and its emptiness written
    with reached(options) as client:
        keys = back_up(client, file)
    sys.stdout.write(f"{file}: {file.stat().st_size} bytes, {keys} keys.\n")


def run_restore(file: Path, **options: Any) -> None:
    """Put the backup into the store."""
    with reached(options) as client:
        keys = restore(client, file)
    sys.stdout.write(f"{keys} keys were put into the store.\n")


def run_check(**options: Any) -> None:
    """Say of each file what it holds; end with status 1 if one is damaged. Nothing is changed."""
    found = data_files.check(files_of(options))
    sys.stdout.writelines(f"{one}\n" for one in found)
    if any(one.fault for one in found):
        sys.exit(1)
    sys.stdout.write("Everything is whole.\n")


def run_repair(**options: Any) -> None:
    """Repair the files of a store that does not run, and say what was done. What is cut off is kept."""
    data_dir = files_of(options)
    with EmbeddedStore(data_dir).at_rest():
        done = data_files.repair(data_dir)
    sys.stdout.write("\n".join(done or ["Everything is whole."]) + "\n")


def run_accept(**options: Any) -> None:
    """Let services go on with the store, which came back empty, as it is."""
    with reached(options) as client:
        identity.accept(client)
    sys.stdout.write("The store is accepted as it is.\n")
