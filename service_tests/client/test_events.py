import json

import pytest

from bochner_client import InvalidAnswer
from bochner_client.events import EventReader
from service_tests.cases import each

STREAM = "".join(
    f": still there\n\nid: {i}-0\nevent: {'end' if i == 2 else 'progress'}\n"
    f"data: {json.dumps({'id': 'j', 'state': 'running', 'progress': i / 2, 'newer': 1})}\n\n"
    for i in range(3)
).encode()


@each("pieces", [1, 5, 1000])
@each("line_ends", [b"\n", b"\r\n"])
def test_events_are_read_however_they_are_cut_into_pieces(pieces: int, line_ends: bytes) -> None:
    stream, reader = STREAM.replace(b"\n", line_ends), EventReader()
    events = [event for at in range(0, len(stream), pieces) for event in reader.feed(stream[at : at + pieces])]
    found = [(event.event_id, event.progress, event.last) for event in events]
    assert found == [("0-0", 0, False), ("1-0", 0.5, False), ("2-0", 1, True)]
    assert events[0].eta_seconds is None


@pytest.mark.parametrize("event", [b"id: 1\ndata: {\n\n", b"data: {}\n\n", b"id: 1\ndata: []\n\n"])
def test_an_event_that_cannot_be_read_is_told(event: bytes) -> None:
    with pytest.raises(InvalidAnswer):
        list(EventReader().feed(event))
