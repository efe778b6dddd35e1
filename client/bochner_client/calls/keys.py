"""Calls for keys: create, list, revoke. All need a key with the role admin."""

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
    """Create a key.

    The request is not repeated if its answer is lost: there would be two keys, the first of them unknown to anybody.

    Args:
        name: purpose of the key.
        role: what the key may be used for.
        rate: requests per second; None for no limit.
        burst: requests that may come at once after a pause; None for those of one second.
        quota: bytes that everything created with the key may take; None for no limit.
        expires_at: time with a time zone after which the key is invalid; None for never.

    Returns:
        The record of the key; its member `key` is the secret text, which is shown only here.
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
    """Return all keys, oldest first, without their secret texts."""
    return Request(
        method="GET", path="/v1/keys", reads=as_json(lambda document: [KeyRecord.read(one) for one in document["keys"]])
    )


def revoke_key(key_id: str) -> Request[None]:
    """Revoke a key. Within a second, no process of the service accepts it any more."""
    return Request(
        method="DELETE",
        path=address("v1", "keys", key_id),
        reads=as_nothing(),
        done_by=frozenset({"key-not-found"}),
    )
