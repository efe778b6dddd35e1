import tracemalloc

import numpy as np
import pytest

from app.core.arrays import MAX_ID_BYTES, NumberIds, TextIds, check_lengths, check_text, gather_strings
from app.core.errors import InvalidInput

WORDS = ["", "é", "𝕏yz", "a" * 1000, "", "b"]


def ids(words: list[str]) -> TextIds:
    encoded = [word.encode() for word in words]
    return TextIds(np.cumsum([len(word) for word in encoded]), np.frombuffer(b"".join(encoded), np.uint8))


@pytest.mark.parametrize("kept", [ids(WORDS), NumberIds(np.array([5, -1, 1 << 62, 0, 5, 7]))])
def test_some_of_the_ids_are_those_of_the_rows_taken(kept: TextIds | NumberIds) -> None:
    every: list[object] = [*kept.to_list()]
    assert len(kept) == 6
    for some in (slice(0, 6), slice(2, 4), slice(3, 3), slice(5, 6)):
        assert kept.take(some).to_list() == every[some]
    places = np.array([5, 0, 3, 3, 2])
    assert kept.take(places).to_list() == [every[place] for place in places]
    assert kept.take(places[:0]).to_list() == []


def test_strings_are_gathered_from_anywhere_in_a_text() -> None:
    text = np.frombuffer(b"abcdef" * 500, np.uint8)
    starts, lengths = np.arange(3000 - 6), np.arange(3000 - 6) % 7
    found = gather_strings(text, starts, lengths).to_list()
    assert found == [("abcdef" * 500)[start : start + n] for start, n in zip(starts, lengths, strict=True)]


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"ok\x80"])
def test_text_that_is_no_utf8_is_refused(bad: bytes) -> None:
    check_text(ids(WORDS * 3000))
    with pytest.raises(InvalidInput, match="no UTF-8"):
        check_text(TextIds(np.array([len(bad)]), np.frombuffer(bad, np.uint8)))


def test_a_string_that_ends_within_a_character_is_refused() -> None:
    with pytest.raises(InvalidInput, match="within a character"):
        check_text(TextIds(np.array([1, 2]), np.frombuffer("é".encode(), np.uint8)))


def test_a_string_that_is_too_long_is_refused_by_its_row() -> None:
    check_lengths(np.array([0, MAX_ID_BYTES]), 0)
    with pytest.raises(InvalidInput, match=f"^the id of row 11 has {MAX_ID_BYTES + 1} bytes"):
        check_lengths(np.array([0, MAX_ID_BYTES + 1]), 10)


def test_some_ids_are_taken_without_a_look_at_all_others() -> None:
    texts = [f"{i:x}" for i in range(1_000_000)]
    kept = ids(texts)
    tracemalloc.start()
    taken = [kept.take(slice(first, first + 10)).to_list() for first in (0, 500_000, 999_995, 1_000_000)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken == [texts[:10], texts[500_000:500_010], texts[999_995:], []]
    assert kept.take(np.array([7, 999_999, 0])).to_list() == ["7", texts[-1], "0"]
    assert peak < 100_000
