"""Commands that maintain a store: `bochner backup`, `restore`, `check`, `repair` and `accept-store`."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from app.commands.options import STORE_SETTINGS, AddParser, add_settings, checked_settings, connect_to_store, files_of
from app.store import data_files, identity
from app.store.backup import back_up, note, restore, send
from app.store.connection import check_room
from app.store.disk import DAMAGED, cut_tails
from app.store.embedded import EmbeddedStore
from app.store.errors import StoreFull


def add(add_parser: AddParser) -> None:
    """Add the commands."""
    parser = add_parser("backup", help="write everything that a store holds to a file, while services use it or not")
    parser.add_argument("file", type=Path, help="File to write, which is not there yet; - for the output.")
    _run_with(parser, run_backup)
    parser = add_parser("restore", help="put a backup into a store that is empty")
    parser.add_argument("file", type=Path, help="The backup; - for the input, of which a temporary file is made.")
    parser.add_argument("--database", type=int, help="Database of the server that is restored, if several have stores.")
    _run_with(parser, run_restore)
    parser = add_parser("check", help="see whether all that a store holds is whole, and the files of a private one")
    _run_with(parser, run_check)
    parser = add_parser("repair", help="cut damaged ends off the files of a private store, and keep them beside")
    parser.add_argument("--dry-run", action="store_true", help="Say what would be done, and do nothing.")
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
    with connect_to_store(options) as client:
        if str(file) == "-":
            send(client, sys.stdout.buffer)
        else:
            keys = back_up(client, file)
            sys.stdout.write(f"{file}: {file.stat().st_size} bytes, {keys} keys.\n")
        note(client)


def run_restore(file: Path, database: int | None, **options: Any) -> None:
    """Put the backup into the store."""
    with tempfile.NamedTemporaryFile() as copy, connect_to_store(options, may_be_new=True) as client:
        if str(file) == "-":
            shutil.copyfileobj(sys.stdin.buffer, copy)
            copy.flush()
            file = Path(copy.name)
        keys = restore(client, file, database)
    sys.stdout.write(f"{keys} keys were put into the store.\n")


def run_check(**options: Any) -> None:
    """Print the state of each file, then what else is damaged in the store; exit with status 1 if anything is."""
    # These modules take long to load.
    from app.store.datasets import DatasetStore
    from app.store.indexes import IndexStore
    from app.store.maps import MapStore

    settings = checked_settings(options)
    if settings.redis_url is None:
        found = data_files.check(files_of(settings))
        sys.stdout.writelines(f"{one}\n" for one in found)
        if any(one.fault for one in found):
            sys.exit(1)
    with connect_to_store(options) as client:
        for _ in range(2):  # files lack something where they do so twice in a row
            with suppress(StoreFull):
                check_room(client, 0)
        damages = [told for of in (MapStore, DatasetStore, IndexStore) for told in of(client).damages()]
        if settings.redis_url is None:
            damaged = (path for path in cut_tails(files_of(settings)) if path.name.endswith(DAMAGED))
            damages += [f"{path}: its server refuses a part of it" for path in damaged]
        sys.stdout.writelines(f"{told}\n" for told in damages)
        identity.require_marks(client)
    if damages:
        sys.exit(1)
    sys.stdout.write("Everything is whole.\n")


def run_repair(dry_run: bool, **options: Any) -> None:
    """Repair the files of a store that is not running, and print what was done. Parts cut off are kept."""
    data_dir = files_of(checked_settings(options))
    with EmbeddedStore(data_dir).at_rest():
        done = data_files.repair(data_dir, dry_run)
    sys.stdout.write("\n".join(done or ["All files are whole."]) + "\n")


def run_accept(**options: Any) -> None:
    """Let services continue with a store that came back empty, as it is."""
    with connect_to_store(options) as client:
        identity.accept(client)
    sys.stdout.write("The store is accepted as it is.\n")
