"""Tags of vectors: their marks, and filters on them."""

from itertools import combinations

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.indexes.labels import UNTAGGED, encode_tags, fitting, number
from app.core.indexes.options import Filter
from service_tests.cases import each


def test_sets_of_tags_have_marks_of_their_own() -> None:
    every = ["a", "b", ["a", "b"], ["ab"], ["a", "a", "b"], ["b", "a"], None, "", [], "\u00e9" * 512]
    marks = [encode_tags(one, "/tags")[0] for one in every]
    assert marks[2] == marks[4] == marks[5]
    assert marks[6] == marks[7] == marks[8] == UNTAGGED
    assert len({*marks}) == 6
    assert {len(one) for one in marks} == {8}
    assert [encode_tags(one, "/tags")[1] for one in (None, "a", ["b", "a"])] == [b"[]", b'["a"]', b'["a","b"]']


def test_marks_stay_as_they_are_in_the_store() -> None:
    assert encode_tags("letters", "/tag")[0].hex() == "20e35e6e9c9ddab0"
    assert encode_tags(["letters", "digits"], "/tag")[0].hex() == "f3dc3070ad7def1b"


@pytest.mark.parametrize("bad", [1, {"a": 1}, [1], [""], [None], "\ud800", "\u00e9" * 513, [str(i) for i in range(17)]])
def test_what_is_no_tag_is_refused_where_it_stands(bad: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        encode_tags(bad, "/tags/1")
    assert refused.value.pointer == "/tags/1"


SETS = [list(some) for n in range(4) for some in combinations("abc", n)]


@each("all_of", [(), ("a",), ("a", "b")])
@each("any_of", [(), ("b", "c"), ("x",)])
@each("none_of", [(), ("c",), ("x", "a")])
@each("is_old", [False, True])
def test_a_filter_takes_the_sets_that_fit(
    all_of: tuple[str, ...], any_of: tuple[str, ...], none_of: tuple[str, ...], is_old: bool
) -> None:
    """Also of vectors of an earlier version, which stored the marks of single tags alone."""
    encoded = [encode_tags(tags, "") for tags in SETS]
    marks = np.array([number(mark) for mark, _ in encoded], np.uint64)
    known = {number(mark): text for (mark, text), tags in zip(encoded, SETS, strict=True) if tags}
    if is_old:
        known = {mark: text for mark, text in known.items() if b"," in text}
    told = fitting(marks, known, Filter(all=all_of, any=any_of, none=none_of))
    for tags, fits in zip(SETS, told, strict=True):
        wanted = all(one in tags for one in all_of) and not any(one in tags for one in none_of)
        assert fits == (wanted and (not any_of or any(one in tags for one in any_of)))
