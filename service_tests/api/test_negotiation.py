import numpy as np
import pytest
from fastapi import Request

from app.api.negotiation import favourite, wanted_format
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
        (NPY, NPY),
        (f"{NPY}, {JSON};q=0.9", NPY),
        (f"{JSON};q=0, */*", NPY),
        (f"application/*;q=0.2, {NPY};q=0.1", JSON),
        (f"{NPY.upper()} ; Q=0.5, text/html", NPY),
        (f"{NPY};q=nonsense, {JSON};q=0.1", JSON),
    ],
)
def test_the_most_specific_range_decides_and_of_equals_the_first(accept: str, liked: str) -> None:
    assert favourite(request(accept=accept), [JSON, NPY]) == liked


@pytest.mark.parametrize("accept", ["text/html", "*/*;q=0", "application/*;q=0", "application/json;q=0", "json"])
def test_who_accepts_nothing_is_refused(accept: str) -> None:
    with pytest.raises(Refusal, match="expected Accept with"):
        favourite(request(accept=accept), [JSON])


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
        (SINGLE, "float32", (NPY, "float32")),
        (f"{NPY};dtype=complex64", "complex128", (NPY, "complex64")),
        (f'{NPY} ; DTYPE="float16"; q=0.3', "float32", (NPY, "float16")),
        (f"{HALF}, {NPY}", "float32", (NPY, "float32")),
        (f"{HALF}, {NPY};q=0.9", "float32", (NPY, "float16")),
        (f"{HALF}, */*;q=0.1", "int32", (JSON, "int32")),
        (f"{HALF};q=0, {NPY}", "float32", (NPY, "float32")),
    ],
)
def test_another_dtype_is_for_those_who_name_it(accept: str, dtype: str, liked: tuple[str, str]) -> None:
    assert chosen(accept, None, dtype) == liked


@each(
    ("accept", "dtype"),
    [
        (HALF, "int32"),
        (SINGLE, "complex128"),
        (f"{NPY};dtype=banana", "float32"),
        (f"{JSON};dtype=float16", "float32"),
        (f"{HALF};q=0", "float32"),
    ],
)
def test_a_dtype_that_is_not_written_is_refused(accept: str, dtype: str) -> None:
    with pytest.raises(Refusal, match="expected Accept with") as refused:
        chosen(accept, None, dtype)
    assert refused.value.slug == "not-acceptable"
