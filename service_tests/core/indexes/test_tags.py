import pytest

from app.core.errors import InvalidInput
from app.core.indexes.labels import UNTAGGED, mark, marks, number


def test_tags_have_marks_of_their_own_and_no_tag_has_one_too() -> None:
    found = marks(["a", "b", None, "", "a", "é" * 512], "/tags")
    assert found[0] == found[4] != found[1]
    assert found[2] == found[3] == UNTAGGED
    assert len({*found}) == 4
    assert {len(one) for one in found} == {8}
    assert int(number(found[0])).to_bytes(8, "little") == found[0]


def test_marks_stay_as_they_are_in_the_store() -> None:
    assert mark("letters", "/tag").hex() == "20e35e6e9c9ddab0"


@pytest.mark.parametrize("bad", [1, ["a"], "\ud800", "é" * 513])
def test_what_is_no_tag_is_refused_where_it_stands(bad: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        marks(["a", bad], "/tags")
    assert refused.value.pointer == "/tags/1"
