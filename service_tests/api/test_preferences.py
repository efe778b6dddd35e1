"""The header Prefer, as RFC 7240 writes it."""

from starlette.requests import Request

from app.api.long_work import Preferences, preferences
from service_tests.cases import each


def preferred(*headers: str, most: float = 30.0) -> Preferences:
    raw = [(b"prefer", header.encode("latin-1")) for header in headers]
    return preferences(Request({"type": "http", "headers": raw}), most)


@each(
    ("headers", "respond_async", "wait"),
    [
        (["respond-async"], True, None),
        (["Respond-Async"], True, None),
        (["WAIT = 10"], False, 10),
        (["respond-async, wait=10"], True, 10),
        (["return=minimal, wait=5 , handling=lenient"], False, 5),
        (['foo="a, respond-async; b", wait=3'], False, 3),
        (['foo="a\\", respond-async", wait=3'], False, 3),
        (["wait=3, wait=9"], False, 3),
    ],
)
def test_preferences_are_read(headers: list[str], respond_async: bool, wait: int | None) -> None:
    assert preferred(*headers) == Preferences(respond_async, wait)


@each(
    ("came", "status", "applied"),
    [
        (Preferences(), 200, None),
        (Preferences(respond_async=True), 200, None),
        (Preferences(wait=7), 202, "wait=7"),
        (Preferences(respond_async=True, wait=7), 202, "respond-async, wait=7"),
        (Preferences(respond_async=True, wait=7), 200, "wait=7"),
    ],
)
def test_the_answer_says_what_was_applied(came: Preferences, status: int, applied: str | None) -> None:
    headers = came.applied_headers(status)
    assert headers.pop("Vary") == "Prefer"
    assert headers.get("Preference-Applied") == applied
