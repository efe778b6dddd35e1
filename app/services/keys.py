"""Keys as they are asked for and shown, over HTTP and by command."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from app.core.model import NAME_PATTERN, Frozen
from app.store.keys import Key, KeyStore, Role, drawn


class AskedKey(Frozen):
    """A key as it is asked for."""

    name: str = Field(pattern=NAME_PATTERN, description="What it is for. Several may have the same.")
    role: Role = Field(
        description="read: everything that changes nothing. write: maps, datasets and jobs too. admin: keys too."
    )
    rate: float | None = Field(None, ge=0.001, le=1e6, description="Requests a second; null for any number.")
    burst: int | None = Field(
        None, ge=1, le=1_000_000, description="Requests at once after a pause; null for those of one second."
    )
    quota: int | None = Field(
        None, ge=0, description="Bytes that the maps and datasets it creates may take; null for any number."
    )

    @field_validator("burst")
    @classmethod
    def _burst_of_a_rate(cls, burst: int | None, known: ValidationInfo) -> int | None:
        if burst is not None and known.data.get("rate") is None:
            raise PydanticCustomError("burst", "a burst wants a rate")
        return burst


class KeyRecord(BaseModel):
    """What is known of a key."""

    id: str
    name: str
    role: Role
    created_at: datetime
    rate: float | None
    burst: int | None
    quota: int | None

    @classmethod
    def of(cls, key: Key) -> Self:
        """The record of a key."""
        return cls.model_validate(key, from_attributes=True)


class CreatedKey(KeyRecord):
    """A key that was made this moment."""

    key: str = Field(description="The key itself. It is not kept, and so is shown this once.")


class KeyList(BaseModel):
    """All keys, oldest first."""

    keys: list[KeyRecord]


def create(store: KeyStore, asked: AskedKey) -> CreatedKey:
    """Make a key; TooManyKeys if there are enough, StoreUnavailable where the store does not answer."""
    made = drawn(asked.name, asked.role, asked.rate, asked.burst, asked.quota)
    store.create(made.key)
    return CreatedKey(**KeyRecord.of(made.key).model_dump(), key=made.text)


def listed(store: KeyStore) -> KeyList:
    """Every key; StoreUnavailable where the store does not answer."""
    return KeyList(keys=[KeyRecord.of(key) for key in store.all()])
