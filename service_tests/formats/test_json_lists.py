import json
import tracemalloc

import pytest

from app.core.errors import InvalidInput
from app.formats.json.lists import PART_BYTES, LongList, document
from service_tests.cases import each

MANY = [[i, i + 0.5, None] for i in range(20_000)]


def no_matter(_: int) -> None:
    """Any length will do."""


def test_outermost_lists_are_found_at_their_places() -> None:
    text = json.dumps({"a": MANY, "b": {"c": [1], "d": {"e": MANY}}, "f": "[", "g": 3}).encode()
    told: list[int] = []
    found = document(text, told.append)
    lists = found["a"], found["b"]["c"], found["b"]["d"]["e"]
    assert all(isinstance(one, LongList) for one in lists)
    assert [list(one) for one in lists] == [MANY, [1], MANY]
    assert [len(one) for one in lists] == [len(MANY), 1, len(MANY)]
    assert [one.whole() for one in lists] == [MANY, [1], MANY]
    assert (found["f"], found["g"]) == ("[", 3)
    assert told == [len(text) - sum(one.nbytes for one in lists)]
    assert max(len(part) for part in lists[0].parts()) < 2 * PART_BYTES // len("[1,1.5]")


@each("item", [b"[1 2]", b"01", b"nul", b"", b" ", b"[1,]", b"'a'", b'"\\x"', b"[[1}]]", b"\xff"])
@each("at", [0, 3 * PART_BYTES, None])
def test_what_is_wrong_in_a_part_is_seen(item: bytes, at: int | None) -> None:
    before = [b"[1, 2]"] * ((5 * PART_BYTES if at is None else at) // 7)
    after = [] if at is None else [b"[1, 2]"] * (2 * PART_BYTES // 7)
    text = b"[" + b",".join([*before, item, *after]) + b"]"
    with pytest.raises(InvalidInput, match=r"JSON|lists"):
        list(document(text, no_matter))


def test_an_item_that_is_no_list_is_not_parsed_whole_where_it_is_long() -> None:
    text = b"[{" + b",".join(b'"%d":1' % i for i in range(200_000)) + b"}]"
    with pytest.raises(InvalidInput, match="beside the lists in it"):
        list(document(text, no_matter))


def test_parts_take_little_memory() -> None:
    text = json.dumps(MANY * 9).encode()
    tracemalloc.start()
    assert sum(map(len, document(text, no_matter))) == 3 * len(MANY) * 9
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * PART_BYTES
