"""`bochner keys`: create, list and revoke keys directly in the store, so that there can be a first key."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from app.commands.options import STORE_SETTINGS, AddParser, add_settings, connect_to_store
from app.services.keys import AskedKey, KeyService
from app.settings import Settings
from app.store.account import Account
from app.store.keys import KeyStore, Role, TooManyKeys


def add(add_parser: AddParser) -> None:
    """Add the command and its subcommands create, list and revoke."""
    parser = add_parser("keys", help="create, list or revoke API keys")
    commands, fields = parser.add_subparsers(required=True), AskedKey.model_fields
    making = commands.add_parser("create", help="create a key, and print it: it is not shown again")
    making.add_argument("name", help="What it is for.")
    making.add_argument("--role", required=True, type=Role, choices=list(Role), help=fields["role"].description)
    for limit, kind in (("rate", float), ("burst", int), ("quota", int)):
        making.add_argument(f"--{limit}", type=kind, help=fields[limit].description)
    making.add_argument("--expires-at", type=datetime.fromisoformat, help=fields["expires_at"].description)
    making.set_defaults(run=make)
    listing = commands.add_parser("list", help="print what is known of each key, one a line as JSON, oldest first")
    listing.set_defaults(run=show)
    revoking = commands.add_parser("revoke", help="revoke keys; within a second no service takes them any more")
    revoking.add_argument("ids", nargs="+", metavar="id", help="Id of a key, or its name if no other has that.")
    revoking.set_defaults(run=revoke)
    for one in (making, listing, revoking):
        add_settings(one, (*STORE_SETTINGS, "max_keys"))


def make(**options: Any) -> None:
    """Create a key; the store may be new, before the first start of its service."""
    asked = AskedKey(**{field: options.pop(field) for field in AskedKey.model_fields})
    data_dir, default = Settings(**options).data_dir, Settings.model_fields["data_dir"].default
    # A data directory that was named but does not exist is a mistake.
    with _keys(options, may_be_new=data_dir == default or data_dir.is_dir()) as keys:
        made = keys.create(asked)
    sys.stderr.write(f"key {made.id}, {made.name!r} with role {made.role}; it is not shown again:\n")
    sys.stdout.write(made.key + "\n")


def show(**options: Any) -> None:
    """Print each key as a line of JSON."""
    with _keys(options) as keys:
        for key in keys.all().keys:
            sys.stdout.write(key.model_dump_json() + "\n")


def revoke(ids: list[str], **options: Any) -> None:
    """Revoke the keys that exist, even if others are missing."""
    with _keys(options) as keys:
        known, missing = keys.all().keys, []
        for one in ids:
            named = [key.id for key in known if key.name == one]
            if not (keys.revoke(one) or (len(named) == 1 and keys.revoke(*named))):
                missing.append(f"{one} ({len(named)} keys have this name)")
    if missing:
        sys.exit(f"no key has the id {', '.join(missing)}")


@contextmanager
def _keys(options: dict[str, Any], may_be_new: bool = False) -> Iterator[KeyService]:
    """Yield the key service of the store that the settings name; no service needs to run."""
    try:
        with connect_to_store(options, may_be_new) as client:
            yield KeyService(KeyStore(client, Settings(**options).max_keys), Account(client))
    except TooManyKeys as error:
        sys.exit(str(error))
