import httpx
import numpy as np
import pytest
from fastapi import Request

from app.api.negotiation import favourite, posted_format, wanted_format
from app.api.problems import Refusal
from app.formats import FORMATS
from service_tests.cases import each
from service_tests.checks import JSON, NPY


def request(**headers: str) -> Request:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": pairs})


@each(
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


def test_who_lists_thousands_of_types_is_refused() -> None:
    most = request(accept=",".join(["a/b"] * 1020 + [JSON]))
    assert favourite(most, [JSON]) == JSON
    far = request(accept=",".join(["a/b"] * 2000 + [JSON]))
    for choose in (lambda: favourite(far, [JSON]), lambda: wanted_format(far)):
        with pytest.raises(Refusal, match="4096 are read at most"):
            choose()


def test_the_answer_comes_as_the_request_did_where_nothing_is_said() -> None:
    assert chosen("", None) == (JSON, "float32")
    assert chosen("", NPY) == (NPY, "float32")
    assert chosen(JSON, NPY) == (JSON, "float32")


HALF, SINGLE = f"{NPY}; dtype=float16", f"{NPY};dtype=float32"


def chosen(accept: str, posted: str | None, dtype: str = "float32") -> tuple[str, str]:
    wanted = wanted_format(request(**({"accept": accept} if accept else {})), FORMATS[posted] if posted else None)
    form, found = wanted.choose(np.dtype(dtype))
    return form.media_type, found.name


@each(
    ("accept", "dtype", "liked"),
    [
        (HALF, "float32", (NPY, "float16")),
        (HALF, "float64", (NPY, "float16")),
        (SINGLE, "float64", (NPY, "float32")),
        (SINGLE, "float32", (NPY, "float32")),
        (f"{NPY};dtype=complex64", "complex128", (NPY, "complex64")),
        (f"{NPY};dtype=int32", "int32", (NPY, "int32")),
        (f'{NPY} ; DTYPE="float16"; q=0.3', "float32", (NPY, "float16")),
        (f"{NPY};q=0.3;dtype=float16", "float32", (NPY, "float16")),
        (f"{NPY};version=2", "float32", (NPY, "float32")),
        (f"{HALF}, {NPY}", "float32", (NPY, "float32")),
        (f"{HALF}, {NPY};q=0.9", "float32", (NPY, "float16")),
        (f"{HALF}, {NPY};q=0.9", "int32", (NPY, "int32")),
        (f"{HALF}, {JSON};q=0.1", "complex64", (JSON, "complex64")),
        (f"{HALF}, */*;q=0.1", "int32", (JSON, "int32")),
        (f"{HALF};q=0, {NPY}", "float32", (NPY, "float32")),
        (f"{SINGLE};q=0, {NPY}, {JSON};q=0.1", "float32", (JSON, "float32")),
        (f"{SINGLE};q=0, {NPY}, {JSON};q=0.1", "float64", (NPY, "float64")),
        (f"application/*, {HALF};q=0.5", "float32", (JSON, "float32")),
    ],
)
def test_another_dtype_is_for_those_who_name_it(accept: str, dtype: str, liked: tuple[str, str]) -> None:
    assert chosen(accept, None, dtype) == liked


@each(
    ("accept", "dtype"),
    [
        (HALF, "int32"),
        (HALF, "uint8"),
        (HALF, "complex64"),
        (SINGLE, "complex128"),
        (f"{NPY};dtype=float64", "float32"),
        (f"{NPY};dtype=banana", "float32"),
        (f"{NPY};dtype=", "float32"),
        (f"{JSON};dtype=float16", "float32"),
        (f"{HALF};q=0", "float32"),
        (f"{SINGLE};q=0, {NPY}", "float32"),
    ],
)
def test_a_dtype_that_is_not_written_is_refused(accept: str, dtype: str) -> None:
    with pytest.raises(Refusal, match="can be written") as refused:
        chosen(accept, None, dtype)
    assert refused.value.slug == "not-acceptable"


def test_a_dtype_says_nothing_to_whom_has_none() -> None:
    with pytest.raises(Refusal):
        favourite(request(accept=f"{JSON};dtype=float16"), [JSON])


@pytest.mark.parametrize("content_type", [JSON, "Application/JSON; charset=utf-8", " application/json "])
def test_a_content_type_is_read_without_its_parameters(content_type: str) -> None:
    assert posted_format(request(content_type=content_type)).media_type == JSON


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({}, "no Content-Type came"),
        ({"content_type": "text/csv"}, "text/csv came"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(headers: dict[str, str], named: str) -> None:
    with pytest.raises(Refusal, match=named):
        posted_format(request(**headers))
    with pytest.raises(Refusal, match="application/json is wanted"):
        posted_format(request(content_type=NPY), (JSON,))


@each(
    "parameters",
    [
        "dtype=float16;dtype=float32",
        "dtype=float32;dtype=float16",
        f'dtype="float16, {JSON}"',
        'dtype=""float16""',
        'dtype="float16',
        'dtype=float16"',
    ],
)
def test_a_dtype_that_is_not_named_clearly_is_refused(parameters: str) -> None:
    with pytest.raises(Refusal, match="can be written"):
        chosen(f"{NPY};{parameters}", NPY)


@pytest.mark.parametrize("accept", [JSON, NPY])
def test_caches_are_told_that_the_format_depends_on_accept(
    http: httpx.Client, standing: dict[str, str], accept: str
) -> None:
    answer = http.get(f"/v1/maps/{standing['cos_sin']}/frequencies", headers={"Accept": accept})
    assert (answer.headers["content-type"], answer.headers["vary"]) == (accept, "Accept")
