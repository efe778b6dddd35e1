"""API keys: requests for them, and records of them, over HTTP and by command."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import AwareDatetime, Field, FutureDatetime, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from app.core.model import NAME_PATTERN, Described, Frozen
from app.store.account import UNLIMITED, Account, Quota
from app.store.keys import Key, KeyStore, Role, TooManyKeys, draw_key


class AskedKey(Frozen):
    """A key to create."""

    name: str = Field(pattern=NAME_PATTERN)
    """Purpose of the key. Several keys may have the same name."""
    role: Role
    """Permissions of the key. metrics: read metrics only. read: all requests that change nothing. write: also change
    maps, datasets and jobs. admin: also manage keys.
    """
    rate: float | None = Field(None, ge=0.001, le=1e6)
    """Maximum number of requests per second; null for no limit."""
    burst: int | None = Field(None, ge=1, le=1_000_000)
    """Maximum number of simultaneous requests after a pause; null for as many as `rate` allows in one second."""
    quota: int | None = Field(None, ge=0)
    """Maximum size in bytes of everything that the key creates or puts into indexes; null for no limit."""
    expires_at: Annotated[AwareDatetime, FutureDatetime] | None = None
    """Time at which the key expires, with a time zone; null for never."""

    @field_validator("burst")
    @classmethod
    def _burst_of_a_rate(cls, burst: int | None, known: ValidationInfo) -> int | None:
        if burst is not None and known.data.get("rate") is None:
            raise PydanticCustomError("burst", "a burst wants a rate")
        return burst


class KeyRecord(Described):
    """A key without its text, and the storage that its data take."""

    id: str
    """Id of the key: the part of it that is no secret."""
    name: str
    """Name of the key."""
    role: Role
    """What the key may do."""
    created_at: datetime
    """Time when the key was made."""
    rate: float | None
    """Requests per second that the key may send; null for no limit."""
    burst: int | None
    """Requests that may come at once, if there is a rate."""
    quota: int | None
    """Bytes that the key may keep in the store; null for no limit."""
    expires_at: datetime | None
    """Time from which the key is not accepted; null for never."""
    last_used_at: datetime | None
    """Time of the last use, to the minute; null if the key was never used, or not for over a year."""
    bytes: int
    """Current size in bytes of everything that the key has created or put into indexes."""

    @classmethod
    def of(cls, key: Key, account: Account, last_used_at: datetime | None = None) -> Self:
        """Return the record of a key."""
        return cls(**dict(key), last_used_at=last_used_at, bytes=account.usage(key.id).nbytes)


class CreatedKey(KeyRecord):
    """A key that was just created."""

    key: str
    """Text of the key. It is not stored, so it is shown only once."""


class KeyList(Described):
    """All keys, oldest first."""

    keys: list[KeyRecord]
    """All keys, without their secrets."""


class KeyService:
    """Creates, lists and revokes keys. Every method raises StoreUnavailable if the store does not answer."""

    def __init__(self, store: KeyStore, account: Account) -> None:
        self._store, self._account = store, account

    def create(self, asked: AskedKey) -> CreatedKey:
        """Create a key; raise TooManyKeys if the limit is reached."""
        made = draw_key(**dict(asked))
        # The quota is set first, so that there is never a key without its quota.
        self._account.allow(made.key.id, Quota(asked.quota))
        try:
            self._store.create(made.key)
        except TooManyKeys:
            self._account.allow(made.key.id, UNLIMITED)
            raise
        return CreatedKey(**dict(KeyRecord.of(made.key, self._account)), key=made.text)

    def all(self) -> KeyList:
        """Return all keys, oldest first."""
        keys = self._store.all()
        uses = self._store.last_uses([key.id for key in keys]) if keys else []
        return KeyList(keys=[KeyRecord.of(key, self._account, used) for key, used in zip(keys, uses, strict=True)])

    def revoke(self, key_id: str) -> bool:
        """Revoke a key; return False if there is none. What it has created stays, and its jobs go on.

        So does its quota, which limits what these jobs store.
        """
        return self._store.revoke(key_id)
