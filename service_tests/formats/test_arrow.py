"""Arrow streams: as the service writes and reads them, and damaged ones. api/test_arrow_packages.py has those of others."""

# ruff: noqa: E501 - a stream is a line

from collections.abc import Callable
from struct import pack
from typing import Any

import numpy as np
import pytest

from app.core.arrays import Identified, NumberIds, TextIds
from app.core.errors import InvalidInput, TooLarge
from app.formats.arrow import Arrow
from app.formats.arrow_ipc.stream import (
    CONTINUES,
    END,
    FIXED_LIST,
    LARGE_UTF8,
    Number,
    Structs,
    Written,
    batch_message,
    field,
    number_field,
    schema_message,
)
from app.formats.arrow_ipc.stream import write_message as flatbuffer
from app.formats.base import Body
from service_tests.cases import each
from service_tests.checks import arrow
from service_tests.formats.damaged import refusals

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
WORDS = TextIds(np.array([1, 3, 3, 6]), np.frombuffer("aéxyz".encode(), np.uint8))
NUMBERS = NumberIds(np.array([7, -1, 7, 1 << 60]))
FLOATS = np.dtype("f4")


def read(content: bytes | bytearray, width: int = 3) -> Any:
    return Arrow().decode(Body(content), width, "vectors")["vectors"]


def written(fields: list[Written], n: int, lengths: list[int], *buffers: bytes) -> bytes:
    """A stream of one batch, whatever it says."""
    body = b"".join(buffer + bytes(-len(buffer) % 8) for buffer in buffers)
    return schema_message(fields) + batch_message(n, lengths, [*map(len, buffers)]) + body + END


@each("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
@each("n", [0, 1, 4])
def test_lists_are_read_as_they_are_written(dtype: str, n: int) -> None:
    found = read(arrow(v=ROWS[:n].astype(dtype)))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, ROWS[:n])


@pytest.mark.parametrize("ids", [WORDS, NUMBERS, NumberIds(np.array([1 << 63], np.uint64))])
def test_ids_come_beside_rows(ids: TextIds | NumberIds) -> None:
    found = read(arrow(v=ROWS[: len(ids)], ids=ids))
    assert isinstance(found, Identified)
    assert type(found.ids) is type(ids)
    assert found.ids.to_list() == ids.to_list()
    np.testing.assert_array_equal(found.rows, ROWS[: len(ids)])
    assert read(arrow(v=ROWS[:0], ids=ids.take(slice(0, 0)))).ids.to_list() == []


def test_columns_of_numbers_are_the_row_together_in_a_dtype_with_room_for_all() -> None:
    found = read(arrow(a=np.array([1, -2], np.int8), b=np.array([0.5, 2.5], np.float32)))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[1, 0.5], [-2, 2.5]])
    found = read(arrow(a=np.array([1 << 53, -2]), b=np.array([0.5, 2.5], np.float32)))
    assert found.dtype == np.float64
    assert read(arrow(a=np.array([1, 2], np.uint8), b=np.array([3, 4], np.int16))).dtype == np.int16
    assert read(arrow(a=np.zeros(0, np.uint8), b=np.zeros(0))).shape == (0, 2)
    with pytest.raises(InvalidInput, match=r"^column 'a' has 9007199254740993 in row 1, which float64 would round$"):
        read(arrow(a=np.array([1, (1 << 53) + 1]), b=np.zeros(2)))


def test_what_is_null_is_missing() -> None:
    numbers = np.array([1, 2, 3], "<i4").tobytes()
    content = written([number_field("a", np.dtype("i4"))], 3, [3], b"\x05", numbers)
    assert read(content).dtype == np.int32, "no nulls are told, so that nobody looks for them"
    nulls = content.replace(pack("<qq", 3, 0), pack("<qq", 3, 1), 1)
    assert read(nulls).dtype == np.float64
    np.testing.assert_array_equal(read(nulls), [[1], [np.nan], [3]])
    ids = written(
        [number_field("id", np.dtype("i4")), number_field("b", FLOATS)], 3, [3, 3], b"\x05", numbers, b"", numbers
    )
    with pytest.raises(InvalidInput, match=r"^row 1 has no id$"):
        read(ids.replace(pack("<qq", 3, 0), pack("<qq", 3, 1), 1))


@each(
    ("fields", "complaint"),
    [
        ([field("name", LARGE_UTF8, {})], "column 'name' is large_utf8; expected one column of lists.*; leave it out, or make it columns of 0 and 1"),
        ([number_field("id", FLOATS), number_field("x", FLOATS)], "column 'id' is float32; expected whole numbers or strings"),
        ([field("id", LARGE_UTF8, {}), field("id", LARGE_UTF8, {}), number_field("x", FLOATS)], "2 columns are called 'id'"),
        ([field("v", FIXED_LIST, {0: Number("i", 3)}, [number_field("item", FLOATS)]), number_field("x", FLOATS)], "and not the only one"),
        ([{**number_field("v", FLOATS), 4: {}}], "column 'v' is dictionary of float32; expected"),
        ([{0: "v", 2: Number("B", 200)}], "column 'v' is type 200;"),
    ],
)  # fmt: skip
def test_other_columns_are_refused_by_name(fields: list[Written], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        read(schema_message(fields) + END)


@each(
    ("content", "complaint"),
    [
        (lambda: b"", "it has no schema"),
        (lambda: b"ARROW1\0\0" + arrow(v=ROWS), "got an Arrow file"),
        (lambda: arrow(v=ROWS) + b"more", "4 bytes follow the end"),
        (lambda: arrow(v=ROWS)[:-20], "the Arrow stream announces buffers"),
        (lambda: batch_message(0, [], []), "a schema first"),
        (lambda: written([number_field("a", FLOATS)], 2, [2], b"", b"1234"), "a buffer has 4 bytes; expected 8"),
        (lambda: written([number_field("a", FLOATS)], 2, [2, 2], b"", b"12345678"), "2 lengths and 2 buffers"),
        (lambda: written([field("a", FIXED_LIST, {0: Number("i", -3)}, [number_field("item", FLOATS)])], 2, [2, 2], b"", b"", bytes(8)), "lists of -3"),
        (lambda: written([field("a", FIXED_LIST, {0: Number("i", 0)}, [number_field("item", FLOATS)])], 1 << 62, [1 << 62, 0], b"", b"", b""), "lists of 0"),
        (lambda: written([field("id", LARGE_UTF8, {}), number_field("a", FLOATS)], 2, [2, 2], b"", pack("<3q", 0, 5, 3), b"abcde", b"", bytes(8)), "do not increase"),
    ],
)  # fmt: skip
def test_what_a_stream_does_not_hold_is_refused(content: Callable[[], bytes], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        read(content())


def test_columns_that_share_their_numbers_are_refused() -> None:
    """A body of a few bytes would be rows of any number of gigabytes."""
    numbers = ROWS[:4, 0].tobytes()
    fields = [number_field("a", FLOATS), number_field("b", FLOATS)]
    apart = written(fields, 2, [2, 2], b"", numbers[:8], b"", numbers[8:])
    places = pack("<4q", 0, 0, 0, 8), pack("<4q", 8, 0, 8, 8)
    assert apart.count(b"".join(places)) == 1
    assert read(apart).shape == (2, 2)
    shared = pack("<4q", 0, 0, 0, 16)
    with pytest.raises(InvalidInput, match="buffers of a record batch overlap: they have 32 bytes, and its body 16"):
        read(apart.replace(b"".join(places), shared * 2))


@each("kind", ["a column", "lists"])
def test_numbers_that_are_all_missing_take_no_memory_before_they_are_counted(kind: str) -> None:
    nothing: Written = {0: "x", 1: Number("B", 1), 2: Number("B", 1), 3: {}}
    n, lists = 1 << 40, field("x", FIXED_LIST, {0: Number("i", 1 << 30)}, [nothing])
    content = written([nothing], n, [n]) if kind == "a column" else written([lists], 1 << 10, [1 << 10, n], b"")

    def check(nbytes: int) -> None:
        raise TooLarge(f"{nbytes}", limit="max_dataset_bytes", allowed=1, value=nbytes)

    with pytest.raises(TooLarge, match=f"^{n * (8 if kind == 'a column' else 4)}$"):
        Arrow().decode(Body(content, check_rows=check), 1, "vectors")


def test_a_batch_of_no_rows_is_no_list_of_another_length() -> None:
    lists = field("x", 12, {}, [number_field("item", FLOATS)])

    def batch(n: int) -> bytes:
        offsets, numbers = pack(f"<{n + 1}i", *range(0, 3 * n + 1, 3)), bytes(12 * n)
        buffers = [b"", offsets, b"", numbers]
        body = b"".join(one + bytes(-len(one) % 8) for one in buffers)
        return batch_message(n, [n, 3 * n], [*map(len, buffers)]) + body

    assert read(schema_message([lists]) + batch(2) + batch(0) + batch(1) + END).shape == (3, 3)


def dictionary_of(text: bytes, *batches: int) -> bytes:
    """A stream of ids that are all the one string of a dictionary, beside a column of nothing."""
    encoded = {**field("id", LARGE_UTF8, {}), 4: {0: Number("q", 7), 1: {0: Number("i", 8), 1: Number("B", 1)}}}
    nothing: Written = {0: "x", 1: Number("B", 1), 2: Number("B", 1), 3: {}}
    buffers = [b"", pack("<2q", 0, len(text)), text]
    body = b"".join(one + bytes(-len(one) % 8) for one in buffers)
    places = b"".join(pack("<2q", *one) for one in ((0, 0), (0, 16), (16, len(text))))
    table: Written = {0: Number("q", 1), 1: Structs(pack("<2q", 1, 0), 1), 2: Structs(places, 3)}
    header: Written = {0: Number("q", 7), 1: table}
    message = flatbuffer({0: Number("h", 4), 1: Number("B", 2), 2: header, 3: Number("q", len(body))})
    message += bytes(-len(message) % 8)
    head = schema_message([encoded, nothing]) + CONTINUES + len(message).to_bytes(4, "little") + message + body
    return head + b"".join(batch_message(n, [n, n], [0, n]) + bytes(n + -n % 8) for n in batches) + END


def test_strings_of_a_dictionary_count_for_each_row_of_all_batches() -> None:
    found = read(dictionary_of(b"same", 3, 0, 2), 1)
    assert found.ids.to_list() == ["same"] * 5

    def check(nbytes: int) -> None:
        if nbytes > 4000:
            raise TooLarge(f"{nbytes}", limit="max_dataset_bytes", allowed=4000, value=nbytes)

    content = dictionary_of(b"x" * 100, *[8] * 6)
    with pytest.raises(TooLarge, match=r"^4800$"):
        Arrow().decode(Body(content, check_rows=check), 1, "vectors")


def test_ids_count_with_the_rows_before_they_are_made() -> None:
    said: list[int] = []
    Arrow().decode(Body(dictionary_of(b"x", 3, 2), check_rows=said.append), 1, "vectors")
    assert 5 * (8 + 40) in said
    Arrow().decode(Body(arrow(v=np.ones((5, 1)), ids=NumberIds(np.arange(5))), check_rows=said.append), 1, "vectors")
    assert said[-1] == 5 * (8 + 16)


def test_ids_of_a_dictionary_lie_within_it() -> None:
    encoded = {**field("id", LARGE_UTF8, {}), 4: {0: Number("q", 7), 1: {0: Number("i", 8), 1: Number("B", 1)}}}
    content = written([encoded, number_field("a", FLOATS)], 1, [1, 1], b"", b"\3", b"", bytes(4))
    with pytest.raises(InvalidInput, match="column 'id' has a dictionary that is not in the stream"):
        read(content, 1)


def test_tables_that_many_others_lead_to_are_not_read_again_and_again() -> None:
    columns = 100_000
    schema = bytearray(schema_message([number_field("a" * 2000, FLOATS)] * 2))
    vector = schema.index(pack("<I", 2), 60)
    schema[vector : vector + 4] = pack("<I", columns)
    with pytest.raises(InvalidInput, match=r"100000 tables in a message of \d+ bytes"):
        read(bytes(schema))


@pytest.mark.parametrize("good", [arrow(v=ROWS, ids=WORDS), arrow(a=np.arange(4), b=np.zeros(4), ids=NUMBERS)])
def test_damaged_streams_are_refused_or_read_but_never_fail(good: bytes) -> None:
    refused = 0
    for length in range(len(good) - len(END)):
        try:
            read(good[:length])
        except InvalidInput:
            refused += 1
    assert refused >= len(good) - len(END) - 3, "it may end between two messages"
    assert refusals(read, good, 3000) > 1200
