import json
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from app.core.errors import InvalidInput
from app.formats.json_lists import PART_BYTES, LongList, document, loads
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


@each("value", [[], {}, {"a": []}, [[]], 3, "[", None, [[1, [2]], {"a": 3}]])
def test_short_texts_are_what_they_are(value: Any) -> None:
    found = document(b"  " + json.dumps(value).encode() + b"\n", no_matter)
    if isinstance(found, dict):
        found = {name: list(one) for name, one in found.items()}
    assert (list(found) if isinstance(found, LongList) else found) == value


def test_an_item_that_is_long_is_parsed_in_parts_too() -> None:
    numbers = [*range(400_000)]
    (first, row, last) = document(json.dumps([[1], numbers, {"indices": numbers}]).encode(), no_matter)
    assert first == [1]
    assert isinstance(row, LongList)
    assert list(row) == numbers == list(last["indices"])


@each("item", [b"[1 2]", b"01", b"nul", b"", b" ", b"[1,]", b"'a'", b'"\\x"', b"[[1}]]", b"\xff"])
@each("at", [0, 3 * PART_BYTES, None])
def test_what_is_wrong_in_a_part_is_seen(item: bytes, at: int | None) -> None:
    before = [b"[1, 2]"] * ((5 * PART_BYTES if at is None else at) // 7)
    after = [] if at is None else [b"[1, 2]"] * (2 * PART_BYTES // 7)
    text = b"[" + b",".join([*before, item, *after]) + b"]"
    with pytest.raises(InvalidInput, match=r"JSON|lists"):
        list(document(text, no_matter))


def test_the_rest_is_counted_before_it_is_parsed() -> None:
    def refuse(nbytes: int) -> None:
        raise InvalidInput(f"{nbytes} bytes")

    with pytest.raises(InvalidInput, match="8 bytes"):
        document(b'{"a":[1,2],b}', refuse)


def test_an_item_that_is_no_list_is_not_parsed_whole_where_it_is_long() -> None:
    text = b"[{" + b",".join(b'"%d":1' % i for i in range(200_000)) + b"}]"
    with pytest.raises(InvalidInput, match="beside the lists in it"):
        list(document(text, no_matter))


def test_parts_take_little_memory() -> None:
    text = json.dumps(MANY * 9).encode()
    peaks = []
    walks: list[Callable[[], int]] = [lambda: sum(map(len, document(text, no_matter))), lambda: len(loads(text))]
    for walk in walks:
        tracemalloc.start()
        walk()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < 32 * PART_BYTES
    assert peaks[1] > 5 * peaks[0]


def test_other_threads_run_while_a_long_list_is_read() -> None:
    text = b"[" + b"0," * 8_000_000 + b"0]"
    document(b"[0]", no_matter)  # compiled
    in_parts = times_awake(lambda: sum(len(part) for part in document(text, no_matter).parts()))
    whole = times_awake(lambda: len(loads(text)))
    assert in_parts > 10
    assert in_parts > 3 * whole


def times_awake(work: Callable[[], int]) -> int:
    """How often a thread that sleeps for a millisecond at a time wakes up while the work is done."""
    times, done = 0, threading.Event()

    def watch() -> None:
        nonlocal times
        while not done.is_set():
            time.sleep(0.001)
            times += 1

    watching = threading.Thread(target=watch)
    watching.start()
    work()
    done.set()
    watching.join()
    return times
