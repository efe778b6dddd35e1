"""The header Prefer, as RFC 7240 writes it."""

import re
import time

import pytest
from starlette.requests import Request

from app.api.preferences import Preferences, preferences
from service_tests.cases import each


def preferred(*headers: str, most: float = 30.0) -> Preferences:
    raw = [(b"prefer", header.encode("latin-1")) for header in headers]
    return preferences(Request({"type": "http", "headers": raw}), most)


@each(
    ("headers", "respond_async", "wait"),
    [
        ([], False, None),
        ([""], False, None),
        (["respond-async"], True, None),
        (["Respond-Async"], True, None),
        (["wait=10"], False, 10),
        (["WAIT = 10"], False, 10),
        (['wait="10"'], False, 10),
        (["wait=10;foo=bar"], False, 10),
        (["respond-async, wait=10"], True, 10),
        (["respond-async;x", "wait=10"], True, 10),
        (["return=minimal, wait=5 , handling=lenient"], False, 5),
        (['foo="a, respond-async; b", wait=3'], False, 3),
        (['foo="a\\", respond-async", wait=3'], False, 3),
        (["wait=3, wait=9"], False, 3),
        (["wait=0"], False, 0),
        ([",, ;x, wait=3"], False, 3),
    ],
)
def test_preferences_are_read(headers: list[str], respond_async: bool, wait: int | None) -> None:
    assert preferred(*headers) == Preferences(respond_async, wait)


MALFORMED = """wait|wait=|wait=soon|wait=-1|wait=1.5|wait=1e3|wait=٣|wait=1 2|w ait=3|wait="3|=3|wait=abc, wait=3
respond async|;respond-async|; wait=3|"respond-async"|respond-async=no"""


@each("header", re.split(r"[|\n]", MALFORMED))
def test_malformed_preferences_are_ignored(header: str) -> None:
    assert preferences(Request({"type": "http", "headers": [(b"prefer", header.encode())]}), 30.0) == Preferences()


@pytest.mark.nightly
def test_no_header_takes_long_to_read() -> None:
    began = time.perf_counter()
    for hostile in (
        " " * 60_000 + "x y",
        '\\"' * 30_000,
        '"' * 60_001,
        "," * 60_000,
        "a" * 60_000,
        "=" * 60_000,
        " " * 60_000,
        '";' * 30_000,
    ):
        preferred(hostile)
        preferred("wait=" + hostile)
    assert time.perf_counter() < began + 2


def test_a_header_of_thousands_of_preferences_is_ignored() -> None:
    assert preferred("a," * 4000 + "wait=3").wait == 3
    assert preferred("a," * 5000 + "wait=3").wait is None


@pytest.mark.parametrize(("most", "wait"), [(30.0, 30), (2.5, 2), (0.5, 0), (100.0, 99)])
def test_no_wait_is_longer_than_is_allowed(most: float, wait: int) -> None:
    assert preferred("wait=99", most=most).wait == wait
    assert preferred("wait=" + 5000 * "9", most=most).wait == int(most)


@each(
    ("came", "status", "applied"),
    [
        (Preferences(), 200, None),
        (Preferences(respond_async=True), 202, "respond-async"),
        (Preferences(respond_async=True), 200, None),
        (Preferences(wait=7), 200, "wait=7"),
        (Preferences(wait=7), 202, "wait=7"),
        (Preferences(respond_async=True, wait=7), 202, "respond-async, wait=7"),
        (Preferences(respond_async=True, wait=7), 200, "wait=7"),
    ],
)
def test_the_answer_says_what_was_applied(came: Preferences, status: int, applied: str | None) -> None:
    headers = came.applied(status)
    assert headers.pop("Vary") == "Prefer"
    assert headers.get("Preference-Applied") == applied
