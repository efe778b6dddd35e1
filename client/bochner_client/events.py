"""Parser of the server-sent events of a job."""

import json
from collections.abc import Iterator

from bochner_client.errors import InvalidAnswer
from bochner_client.records import JobEvent


class EventReader:
    """Parses events from a stream of bytes, which may be split anywhere."""

    def __init__(self) -> None:
        self._left = b""
        self._fields: dict[str, str] = {}

    def feed(self, piece: bytes) -> Iterator[JobEvent]:
        """Yield the events that are completed by this piece. Raises InvalidAnswer if an event cannot be read."""
        *lines, self._left = (self._left + piece).split(b"\n")
        for line in lines:
            text = line.rstrip(b"\r").decode(errors="replace")
            if text:
                name, _, value = text.partition(":")  # a comment has no name, and is kept under ""
                self._fields[name] = value.removeprefix(" ")
            else:
                fields, self._fields = self._fields, {}
                if "data" in fields:
                    yield _event(fields)


def _event(fields: dict[str, str]) -> JobEvent:
    try:
        document = json.loads(fields["data"])
        return JobEvent.read({**document, "event_id": fields["id"], "last": fields.get("event") == "end"})
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidAnswer(f"the service sent an event that cannot be read: {error!r}") from error
