"""Base of the manifests and stores of maps and indexes, which a job may make and which may have a time to live."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from app.store.connection import acknowledge
from app.store.manifest import Manifest
from app.store.named import Buffer, NamedStore, Reservation, State, end

# Fraction of a thing's time to live. A use within this time after the last recorded one is not recorded; otherwise each
# use would write to the store.
_UNNOTED = 1 / 16


class LivingManifest(Manifest):
    """Manifest of a thing that a job may make and that may have a time to live."""

    state: State = State.ready
    job: str | None = None
    """Id of the job that makes the thing, or has failed to; None if the thing is ready."""
    error: dict[str, Any] | None = None
    """Why the job failed."""
    ttl: int | None = None
    """Time to live in seconds after the last use; None for ever."""
    expires_at: datetime | None = None
    """Time when the thing expires unless it is used before; None for never, and while a job makes the thing."""

    @property
    def is_due(self) -> bool:
        """Whether a use now must be recorded to extend the thing's life."""
        if self.ttl is None or self.expires_at is None:
            return False
        return (self.expires_at - datetime.now(UTC)).total_seconds() < self.ttl * (1 - _UNNOTED)


L = TypeVar("L", bound=LivingManifest)


class LivingStore(NamedStore[L]):
    """Store of things with a time to live: renews them and reserves names; see `NamedStore` for the rest."""

    @acknowledge()
    def renew(self, there: L, ttl: int | None) -> L | None:
        """Make a thing live for `ttl` seconds after this and each later use; None for ever.

        While a job makes the thing, its time to live starts only when the job succeeds or fails.

        Returns:
            The new manifest; None if the thing is gone, or another client changes it at the same time.
        """
        if ttl is None and there.ttl is None:
            return self._confirm(there)
        return self._change_lifetime(there, lambda found: self._living(found, ttl))

    def note_use(self, there: L) -> None:
        """Record a use that extends a thing's life. Another client may record its use at the same time."""
        self._change_lifetime(there, lambda found: self._living(found, found.ttl))

    @staticmethod
    def _living(found: L, ttl: int | None) -> tuple[dict[str, Any], int | None]:
        seconds = ttl if found.state is State.ready else None
        return {"ttl": ttl, "expires_at": end(seconds)}, seconds

    def _reserve(self, manifest: L, contents: Mapping[str, Buffer], owner: str, promised: int = 0) -> Reservation:
        """Prepare the reservation of a name; the script that submits the job stores it. Arguments as for `_write`."""
        self._write(manifest, contents, owner, promised=promised)
        at = self.key(manifest.name), self._index(manifest.name), manifest.name
        return Reservation(*at, manifest.stored, self._piece_keys(manifest), self._entry(manifest))
