"""What stands in the store for something while a job makes it."""

from typing import NamedTuple

import orjson


class Placeholder(NamedTuple):
    """What stands in the store for something while a job makes it.

    It is put there together with the job, removed when the job is cancelled, and marked when it fails: its member
    `error` is then the job's error. What the job makes takes its place only while it stands unchanged.
    """

    key: str
    listing: str
    """Sorted set that lists `member`."""
    member: str
    value: bytes
    """A JSON object."""
    instead_of: bytes = b""
    """The value of a placeholder that it may replace."""


class Taken(Exception):
    """Something stands already where the placeholder was to go; `present` is what was found."""

    def __init__(self, present: bytes) -> None:
        super().__init__("the place is taken")
        self.present = present


def failed_placeholder(fields: dict[str, str], error: str) -> bytes:
    """The placeholder in a job's fields, marked with the error (JSON); empty if there is nothing to mark."""
    placeholder = fields.get("placeholder")
    if not placeholder or not error:
        return b""
    return orjson.dumps(orjson.loads(placeholder) | {"error": orjson.loads(error)})
