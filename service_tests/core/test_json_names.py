import json

import httpx
import pytest

from app.core.errors import InvalidInput
from app.core.json_text import check_names
from service_tests.cases import each
from service_tests.checks import assert_problem, post

LONG = b" " * (1 << 17)


ONCE = b"""{} "a" {"a":1,"b":1} {"a":{"a":{"a":[]}}} [{"a":1},{"a":1}] {"a":"b","b":"a"} {"a":"\\"a\\":1","b":2}
{"a":1}}} {"a {"a":["a","a"],"b":{"a":1},"c":[{"a":1},{"a":2}]} {"a":"{\\"a\\"","b":1}"""


@each(
    "text", [*ONCE.split(), b"", b"[" * 5000, json.dumps(dict.fromkeys(map(str, range(256)))).encode(), b'{"a":' * 64]
)
def test_names_that_come_once_pass(text: bytes) -> None:
    check_names(text)
    check_names(bytearray(text + LONG))


@each(
    ("text", "name", "pointer"),
    [
        (b'{"a":1,"a":1}', "a", "/a"),
        (b'{"a":1,"b":{"x":1,"y":[{"a":2}]},"c":3,"b":2}', "b", "/b"),
        (b'{"a":{"b":1,"c":[1,2,{"d":1}],"b":3}}', "b", ""),
        (b'[{"a":1,"b":2},{"b":1 , "b" :2}]', "b", ""),
        (b'{"":1,"":2}', "", "/"),
        ('{"é":1,"é":2}'.encode(), "é", "/é"),
        (b'{"a/~":1,"a/~":2}', "a/~", "/a~1~0"),
        (b'{"a":"}","a":2}', "a", "/a"),
        (b'{"a":"\\"","a":2}', "a", "/a"),
    ],
)
def test_a_name_that_comes_twice_is_told(text: bytes, name: str, pointer: str) -> None:
    for one in (text, text + LONG, LONG + text):
        with pytest.raises(InvalidInput, match=f"the member {name!r} came twice in one object") as refused:
            check_names(one)
        assert refused.value.pointer == pointer


def test_names_with_a_backslash_are_refused() -> None:
    for text in (b'{"\\u0061":1,"b":1}', b'{"a":1,"\\u0061":1}', b'{"x":[{"a\\/":1,"a/":1}]}'):
        for one in (text, text + LONG):
            with pytest.raises(InvalidInput, match="with a backslash"):
                check_names(one)


def test_no_object_is_so_large_or_so_deep() -> None:
    with pytest.raises(InvalidInput, match="more than 256 members"):
        check_names(json.dumps({str(i): i for i in range(257)}).encode())
    with pytest.raises(InvalidInput, match="more than 64 objects"):
        check_names(b'{"a":' * 65)


MANY = b'{"vectors":[{"indices":[0],"values":[1]}' + b',{"indices":[0],"values":[1]}' * 10_000


@each(
    ("call", "body", "name"),
    [
        ("transform", b'{"vectors":[[1,2,3]],"vectors":[[4,5,6]]}', "vectors"),
        ("transform", b'{"vectors":[{"indices":[0],"values":[1],"indices":[1]}]}', "indices"),
        ("transform", MANY + b',{"values":[1],"values":[2],"indices":[0]}]}', "values"),
        ("kernel", b'{"x":[[1,2,3]],"y":[[1,2,3]],"x":[[1,2,3]]}', "x"),
        ("kernel", b'{"x":{"dataset":"d","dataset":"e"}}', "dataset"),
        ("diagnostics/gram", b'{"vectors":[[1,2,3]],"seed":1,"seed":2}', "seed"),
    ],
)  # fmt: skip
def test_bodies_with_rows_say_everything_once(
    http: httpx.Client, standing: dict[str, str], call: str, body: bytes, name: str
) -> None:
    problem = assert_problem(http, post(http, f"{standing['phase']}/{call}", body), 422, "invalid-input")
    assert repr(name) in problem["detail"]
