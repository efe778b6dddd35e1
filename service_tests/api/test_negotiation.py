import pytest
from fastapi import Request

from app.api.negotiation import answer_format, favourite, posted_format
from app.api.problems import Refusal
from app.formats import FORMATS
from service_tests.checks import JSON, NPY


def request(**headers: str) -> Request:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": pairs})


@pytest.mark.parametrize(
    ("accept", "liked"),
    [
        ("", JSON),
        ("*/*", JSON),
        (NPY, NPY),
        (f"{NPY}, {JSON}", JSON),
        (f"{NPY}, {JSON};q=0.9", NPY),
        (f"{JSON};q=0, */*", NPY),
        (f"application/*;q=0.2, {NPY};q=0.1", JSON),
        (f"application/*;q=0.1, {NPY};q=0.2", NPY),
        (f"{NPY.upper()} ; Q=0.5, text/html", NPY),
        (f"{NPY};q=nonsense, {JSON};q=0.1", JSON),
        (f"{NPY};q=7, {JSON};q=0.1", JSON),
        (f"{NPY};q=nan, {JSON};q=0.1", JSON),
    ],
)
def test_the_most_specific_range_decides_and_of_equals_the_first(accept: str, liked: str) -> None:
    assert favourite(request(accept=accept), [JSON, NPY]) == liked


@pytest.mark.parametrize("accept", ["text/html", "*/*;q=0", "application/*;q=0", "application/json;q=0", "json"])
def test_who_accepts_nothing_is_refused(accept: str) -> None:
    with pytest.raises(Refusal, match="can be written"):
        favourite(request(accept=accept), [JSON])


def test_the_answer_comes_as_the_request_did_where_nothing_is_said() -> None:
    assert answer_format(request()).media_type == JSON
    assert answer_format(request(), FORMATS[NPY]).media_type == NPY
    assert answer_format(request(accept=JSON), FORMATS[NPY]).media_type == JSON


@pytest.mark.parametrize("content_type", [JSON, "Application/JSON; charset=utf-8", " application/json "])
def test_a_content_type_is_read_without_its_parameters(content_type: str) -> None:
    assert posted_format(request(content_type=content_type)).media_type == JSON


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({}, "no Content-Type came"),
        ({"content_type": "text/csv"}, "text/csv came"),
        ({"content_type": JSON, "content_encoding": "gzip"}, "Content-Encoding gzip came"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(headers: dict[str, str], named: str) -> None:
    with pytest.raises(Refusal, match=named):
        posted_format(request(**headers))
    with pytest.raises(Refusal, match="application/json is wanted"):
        posted_format(request(content_type=NPY), (JSON,))
