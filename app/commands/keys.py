"""`bochner keys`: makes, lists and revokes keys in the store itself, so that there can be a first one."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.commands.options import STORE_SETTINGS, AddParser, add_settings, reached
from app.services.keys import AskedKey, KeyService
from app.settings import Settings
from app.store.account import Account
from app.store.keys import KeyStore, Role, TooManyKeys


def add(add_parser: AddParser) -> None:
    """Add the command, and its own: create, list and revoke."""
    parser = add_parser("keys", help="create, list or revoke API keys")
    commands, fields = parser.add_subparsers(required=True), AskedKey.model_fields
    making = commands.add_parser("create", help="create a key, and print it: it is not shown again")
    making.add_argument("name", help="What it is for.")
    making.add_argument("--role", required=True, type=Role, choices=list(Role), help=fields["role"].description)
    for limit, kind in (("rate", float), ("burst", int), ("quota", int)):
        making.add_argument(f"--{limit}", type=kind, help=fields[limit].description)
    making.set_defaults(run=make)
    listing = commands.add_parser("list", help="print what is known of each key, one a line as JSON, oldest first")
    listing.set_defaults(run=show)
    revoking = commands.add_parser("revoke", help="revoke keys; within a second no service takes them any more")
    revoking.add_argument("ids", nargs="+", metavar="id", help="Id of a key.")
    revoking.set_defaults(run=revoke)
    for one in (making, listing, revoking):
        add_settings(one, (*STORE_SETTINGS, "max_keys"))


def make(name: str, role: Role, rate: float | None, burst: int | None, quota: int | None, **options: Any) -> None:
    """Create a key."""
    asked = AskedKey(name=name, role=role, rate=rate, burst=burst, quota=quota)
    with _keys(options) as keys:
        made = keys.create(asked)
    sys.stderr.write(f"key {made.id}, {made.name!r} with role {made.role}; it is not shown again:\n")
    sys.stdout.write(made.key + "\n")


def show(**options: Any) -> None:
    """List the keys."""
    with _keys(options) as keys:
        for key in keys.all().keys:
            sys.stdout.write(key.model_dump_json() + "\n")


def revoke(ids: list[str], **options: Any) -> None:
    """Revoke keys; those that are there, even if others are not."""
    with _keys(options) as keys:
        missing = [key_id for key_id in ids if not keys.revoke(key_id)]
    if missing:
        sys.exit(f"no key has the id {', '.join(missing)}")


@contextmanager
def _keys(options: dict[str, Any]) -> Iterator[KeyService]:
    """The keys of the store that the settings name, of which no service need run."""
    try:
        with reached(options) as client:
            yield KeyService(KeyStore(client, Settings(**options).max_keys), Account(client))
    except TooManyKeys as error:
        sys.exit(str(error))
