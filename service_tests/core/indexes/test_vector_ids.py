import random

import pytest

from app.core.errors import InvalidInput
from app.core.indexes.labels import at, check_different, count, encode_id, encode_ids, every, read
from service_tests.cases import each

IDS = [0, -1, 7, "7", "...", (1 << 64) - 1, -(1 << 63), "i7", "s7", "é\0", "a" * 1024]


def test_ids_are_read_as_they_were_written_and_numbers_are_no_strings() -> None:
    kept = encode_ids(IDS, "/ids")
    assert [read(one) for one in kept] == IDS
    assert [type(read(one)) for one in kept] == [type(one) for one in IDS]
    assert len({*kept}) == len(IDS)


@each("bad", ["", ".", "..", "a" * 1025, "é" * 513, "\ud800", 1 << 64, -(1 << 63) - 1, True, 1.0, None, [1], b"a"])
def test_what_is_no_id_is_refused_where_it_stands(bad: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        encode_ids([1, bad], "/ids")
    assert refused.value.pointer == "/ids/1"
    with pytest.raises(InvalidInput):
        encode_id(bad, "")


def test_an_id_that_comes_twice_is_refused_at_its_second_place() -> None:
    check_different([b"i1", b"s1"], "/ids")
    with pytest.raises(InvalidInput, match="rows 1 and 3 have the same id 'b'") as refused:
        encode_ids(["a", "b", "c", "b"], "/ids")
    assert refused.value.pointer == "/ids/3"


def test_each_id_of_a_block_is_found() -> None:
    rng = random.Random(2)
    ids = [rng.randbytes(rng.randrange(1, 1026)) for _ in range(100)]
    block = b"".join(len(one).to_bytes(2, "little") + one for one in ids)
    assert [at(block, i) for i in range(100)] == ids
    assert [*every(block)] == ids
    assert [*every(b"")] == []
    assert count(block) == 100
    assert count(b"") == 0
    for broken in (block[:-1], block + b"\0", block[1:]):
        assert count(broken) == -1
