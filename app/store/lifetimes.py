"""Manifests and stores of maps and indexes, which a job may make, and which may live for a time."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from app.store.connection import acknowledge
from app.store.manifest import Manifest
from app.store.named import Buffer, NamedStore, Reservation, State, end

# Of the time that a thing lives after its last use: as long as less has passed since, a use leaves it at that. Else
# each use would be a write of the store.
_UNNOTED = 1 / 16


class LivingManifest(Manifest):
    """The manifest of a thing that a job may make, and that may live for a time."""

    state: State = State.ready
    job: str | None = None
    """Id of the job that makes the thing, or could not; None where it is ready."""
    error: dict[str, Any] | None = None
    """Why the job failed."""
    ttl: int | None = None
    """Seconds that it lives after its last use; None for ever."""
    expires_at: datetime | None = None
    """When it may be gone if it is not used before. None for never, and while a job makes it."""

    @property
    def is_due(self) -> bool:
        """Whether a use is to be noted, so that it lives on."""
        if self.ttl is None or self.expires_at is None:
            return False
        return (self.expires_at - datetime.now(UTC)).total_seconds() < self.ttl * (1 - _UNNOTED)


L = TypeVar("L", bound=LivingManifest)


class LivingStore(NamedStore[L]):
    """Renew things that live for a time, and reserve their names; see `NamedStore` for the rest."""

    @acknowledge()
    def renew(self, there: L, ttl: int | None) -> L | None:
        """Let a thing live for so many seconds after this and each later use, or for ever.

        One that a job makes begins to live so long when it is made, or could not be.

        Returns:
            The manifest as it stands then; None if the thing is gone, or another changes it at the same time.
        """
        if ttl is None and there.ttl is None:
            return self._confirm(there)
        return self._change_lifetime(there, lambda found: self._living(found, ttl))

    def note_use(self, there: L) -> None:
        """Let a thing live on whose use is to be noted. Another may note its own use at the same time."""
        self._change_lifetime(there, lambda found: self._living(found, found.ttl))

    @staticmethod
    def _living(found: L, ttl: int | None) -> tuple[dict[str, Any], int | None]:
        seconds = ttl if found.state is State.ready else None
        return {"ttl": ttl, "expires_at": end(seconds)}, seconds

    def _reserve(self, manifest: L, contents: Mapping[str, Buffer], owner: str, promised: int = 0) -> Reservation:
        """Prepare to hold a name for a job, whose script stores the reservation; arguments are those of `_write`."""
        self._write(manifest, contents, owner, promised=promised)
        at = self.key(manifest.name), self._index(manifest.name), manifest.name
        return Reservation(*at, manifest.stored, self._piece_keys(manifest), self._entry(manifest))
