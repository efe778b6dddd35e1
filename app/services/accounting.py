"""Keeps the account of the store right where versions without one have written to it."""

import logging
import time
from collections.abc import Iterable
from typing import Protocol

from app.store.account import Account
from app.store.errors import StoreDamaged, StoreUnavailable, in_full

logger = logging.getLogger(__name__)

# Between two counts: a version without account may still run beside this one.
_SECONDS = 3600.0
# After one that has failed.
_PAUSE_SECONDS = 10.0


class Counted(Protocol):
    """A part of the store: its maps, its datasets or its jobs."""

    def count(self) -> None:
        """Enter into the account what is there and not in it."""


def keep_account(account: Account, kept: Iterable[Counted]) -> None:
    """Count at once and every hour from then on; never returns. Who writes meanwhile waits for nothing."""
    kept = tuple(kept)
    while True:
        try:
            for one in kept:
                one.count()
            account.tidy()
            time.sleep(_SECONDS)
        except (StoreUnavailable, StoreDamaged) as error:
            logger.warning("what the store keeps is not counted yet: %s", in_full(error))
            time.sleep(_PAUSE_SECONDS)
