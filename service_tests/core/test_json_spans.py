import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.json_text import check_options, spans
from service_tests.cases import each


def lists_of(value: Any) -> list[list[Any]]:
    """The lists of a value that stand in no other list, in the order of their text."""
    if isinstance(value, list):
        return [value]
    return [one for member in value.values() for one in lists_of(member)] if isinstance(value, dict) else []


def some_value(rng: np.random.Generator, depth: int) -> Any:
    """A value of strings that look like brackets, numbers, lists and objects."""
    match int(rng.integers(0, 6 if depth else 3)):
        case 0:
            return rng.choice(["", "]", '"', "\\", '\\"],', "[1,2", "}{", "é,\n"]).item()
        case 1:
            return None
        case 2:
            return float(rng.normal())
        case 3:
            return {f"k{i},]": some_value(rng, depth - 1) for i in range(rng.integers(0, 4))}
        case _:
            return [some_value(rng, depth - 1) for _ in range(rng.integers(0, 9))]


@pytest.mark.parametrize("part_bytes", [1, 7, 64])
@pytest.mark.parametrize("indent", [None, 1])
def test_parts_of_the_outermost_lists_are_their_items(part_bytes: int, indent: int | None) -> None:
    rng = np.random.default_rng(part_bytes)
    for _ in range(300):
        value = some_value(rng, 4)
        text = json.dumps(value, indent=indent, ensure_ascii=False).encode()
        found = list(spans(text, part_bytes))
        assert [one.n_items for one in found] == [len(one) for one in lists_of(value)]
        for span, wanted in zip(found, lists_of(value), strict=True):
            parts = [json.loads(b"[" + text[before + 1 : end] + b"]") for before, end in pairwise(span.bounds)]
            assert [item for part in parts for item in part] == wanted
            assert all(parts) or parts == [[]]


@each("text", [b"[", b'{"a": [1, 2}', b'{"a": [1, 2', b'["a', b'["\\"]', b"[}]", b'{"a": "'])
def test_what_does_not_end_is_not_json(text: bytes) -> None:
    with pytest.raises(InvalidInput, match="is missing"):
        list(spans(text, 8))


def test_a_text_of_many_lists_is_refused() -> None:
    assert len(list(spans(b"{" + b'"a":[],' * 64 + b"}", 1))) == 64
    with pytest.raises(InvalidInput, match="more than 64 lists"):
        list(spans(b"{" + b'"a":[],' * 65 + b"}", 1))


def test_options_of_many_small_things_are_refused() -> None:
    told = []

    def check(text: bytes) -> None:
        check_options(text, lambda *counts: told.append(counts))

    check(b'{"a":[0],' + b" " * 100_000 + b'"b":0}')
    check(b'{"a":[' + b"0," * 1_000_000 + b"0]}")
    check(b'{"a":[' + b"[0]," * 100_000 + b'[0,","]]}')
    assert told == [(100_015, 0), (2_000_009, 1_000_000), (400_015, 100_001)]
    with pytest.raises(InvalidInput, match="131072 lists and objects in lists of options, got 200001"):
        check(b'{"a":[' + b"[0]," * 200_000 + b"[0]]}")
    with pytest.raises(InvalidInput, match="bytes beside lists in options"):
        check(b"{" + b'"a":[0],' * 30 + b'"a":0,' * 20_000 + b'"a":0}')
