"""Keys: create, list, revoke. All of them want a key with role admin."""

from datetime import datetime

from bochner_client.records import CreatedKey, KeyRecord, Role
from bochner_client.requests import Request, address, as_json, as_nothing, written_json


def create_key(
    name: str,
    role: Role,
    *,
    rate: float | None = None,
    burst: int | None = None,
    quota: int | None = None,
    expires_at: datetime | None = None,
) -> Request[CreatedKey]:
    """Create a key; `key` of the answer is the key itself, which is shown this once.

    Args:
        name: what it is for.
        role: what it may do.
        rate: requests a second; any number without it.
        burst: requests at once after a pause; those of one second without it.
        quota: bytes that what it creates may take; any number without it.
        expires_at: when it ends to be valid, with a time zone; never without it.

    Where the answer is lost it is not asked for again: there would be two keys, and nobody would know the first.
    """
    asked = {"name": name, "role": role, "rate": rate, "burst": burst, "quota": quota}
    asked |= {"expires_at": None if expires_at is None else expires_at.isoformat()}
    return Request(
        method="POST",
        path="/v1/keys",
        body=written_json({member: value for member, value in asked.items() if value is not None}),
        reads=as_json(CreatedKey.read, 201),
        repeatable=False,
    )


def list_keys() -> Request[list[KeyRecord]]:
    """All keys, oldest first, without their texts."""
    return Request(
        method="GET", path="/v1/keys", reads=as_json(lambda document: [KeyRecord.read(one) for one in document["keys"]])
    )


def revoke_key(key_id: str) -> Request[None]:
    """Revoke a key. Within a second no process of the service takes it any more."""
    return Request(
        method="DELETE",
        path=address("v1", "keys", key_id),
        reads=as_nothing(),
        done_by=frozenset({"key-not-found"}),
    )
