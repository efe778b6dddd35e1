"""Zips of arrays: what NumPy writes is read, and nothing that somebody made up costs or fails."""

import io
import struct
import zipfile
from typing import Any

import numpy as np
import pytest

from app.core.answers import OneHot, RowBlocks
from app.core.errors import InvalidInput, TooLarge
from app.core.ids import NumberIds, TextIds
from app.formats import Body
from app.formats import zipped as zips
from app.formats.npz import Npz, members
from app.formats.zipped import arrays
from service_tests.cases import each
from service_tests.checks import npy

X, Y = np.arange(6.0).reshape(2, 3), np.array([[1, 2, 3]], np.float32)


def npz(compressed: bool = False, **named: Any) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **named)
    return stream.getvalue()


def zipped(*files: tuple[str, bytes], compression: int = zipfile.ZIP_STORED, comment: bytes = b"") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in files:
            archive.writestr(name, content)
        archive.comment = comment
    return stream.getvalue()


def at_most(most: int) -> Any:
    def check(nbytes: int) -> None:
        if nbytes > most:
            raise TooLarge(f"{nbytes} bytes", limit="max_body_bytes", allowed=most, value=nbytes)

    return check


def read(content: bytes, most: int = 1 << 20) -> dict[str, Any]:
    return arrays(bytearray(content), at_most(most))


def test_the_length_of_a_zip_is_known_before_it_is_written() -> None:
    for given in (
        {},
        {"x": X},
        {"x": X, "a-longer-name": Y, "empty": np.empty((0, 5), np.uint8), "text": np.array(b"spec")},
        {f"column{i}": np.zeros((i, 7), np.complex128) for i in range(40)},
    ):
        assert zips.length(given) == sum(map(len, zips.written(given)))


def test_a_zip_that_needs_long_numbers_has_no_length_before_it_is_written() -> None:
    blocks = RowBlocks((1 << 19, 1 << 10), np.dtype(np.float64), [], lambda _: np.empty((0, 1 << 10)))
    assert zips.length({"features": blocks}) is None


@pytest.mark.parametrize("compressed", [False, True])
def test_what_numpy_saves_is_read(compressed: bool) -> None:
    found = read(npz(compressed, x=X, y=Y, z=np.asfortranarray(X)))
    assert set(found) == {"x", "y", "z"}
    for name, array in {"x": X, "y": Y, "z": X}.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_what_is_written_numpy_reads() -> None:
    hot = OneHot(np.array([[0, 5], [1, 4]]), 8, np.array([True, True]))
    encoded = Npz().encode({"features": X + 1j, "signature": Y, "codes": hot})
    found = np.load(io.BytesIO(b"".join(encoded.pieces)), allow_pickle=False)
    np.testing.assert_array_equal(found["features"], X + 1j)
    np.testing.assert_array_equal(found["signature"], Y)
    np.testing.assert_array_equal(found["codes"], hot.columns)


def test_ids_go_with_their_rows() -> None:
    numbers, text = NumberIds(np.array([7, 9])), TextIds(np.array([1, 4]), np.frombuffer(b"a\xc3\xa9b", np.uint8))
    for ids in (numbers, text):
        found = np.load(io.BytesIO(b"".join(Npz().encode({"features": X, "ids": ids}).pieces)))
        if ids is numbers:
            assert found["ids"].tolist() == [7, 9]
        else:
            ends, every = found["ids_ends"], found["ids_text"].tobytes()
            assert [piece.decode() for piece in (every[: ends[0]], every[ends[0] : ends[1]])] == text.listed()


def test_members_are_those_of_the_request() -> None:
    assert set(members(Body(npz(x=X)), ["x"], ["y"])) == {"x"}
    assert set(members(Body(npz(x=X, y=Y)), ["x"], ["y"])) == {"x", "y"}
    with pytest.raises(InvalidInput, match="x is missing") as refused:
        members(Body(npz(y=Y)), ["x"], ["y"])
    assert refused.value.pointer == "/x"
    with pytest.raises(InvalidInput, match="'z' is no member of this request; it takes x, y"):
        members(Body(npz(x=X, z=Y)), ["x"], ["y"])


def test_what_is_longer_than_may_be_is_not_unpacked() -> None:
    bomb = npz(compressed=True, x=np.zeros((1000, 1000)))
    assert len(bomb) < 20_000
    with pytest.raises(TooLarge):
        read(bomb)


def test_a_member_that_is_longer_than_it_says_is_not_unpacked() -> None:
    """Both places where a zip tells a length say little."""
    content = zipped(("x.npy", npy(np.zeros((1000, 1000)))), compression=zipfile.ZIP_DEFLATED)
    length = struct.pack("<I", 8_000_128)
    assert content.count(length) == 2
    with pytest.raises(InvalidInput, match="cannot be read: Bad CRC"):
        read(content.replace(length, struct.pack("<I", 200)))


@each(
    ("content", "said"),
    [
        (b"", "does not end as a zip does"),
        (b"PK\5\6", "does not end as a zip does"),
        (npy(X), "does not end as a zip does"),
        (npz(x=X)[:-1], "does not end as a zip does"),
        (npz(x=X) + b"\0", "does not end as a zip does"),
        (zipped(("x.npy", npy(X)), comment=b"c"), "does not end as a zip does"),
        (zipped(("x.npy", npy(X)), comment=b"PK\5\6" + bytes(16) + b"\1\0"), "are the most"),
        (zipped(*((f"{i}.npy", b"") for i in range(17))), "lists 17 members"),
        (zipped(("x" * 60_000, b"")), "60046 bytes"),
        (zipped(("x", npy(X))), "'x' came in the .npz"),
        (zipped(("x.npy", npy(np.array([{}])))), "plain float32, float64 or whole numbers"),
        (zipped(("x.npy", b"cos\nsystem\n(S'true'\ntR.")), "is not a .npy array"),
        (zipped(("x.npy", npy(X)), compression=zipfile.ZIP_BZIP2), "compressed otherwise"),
        (zipped(("x.npy", npy(X)), compression=zipfile.ZIP_LZMA), "compressed otherwise"),
    ],
)
def test_what_is_no_zip_of_arrays_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(content)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="name of its own"):
        read(zipped(("x.npy", npy(X)), ("x.npy", npy(Y))))


def test_an_end_for_more_than_four_gigabytes_is_refused() -> None:
    content = npz(x=X)
    end = struct.pack("<4sIQI", b"PK\6\7", 0, 0, 1)
    with pytest.raises(InvalidInput, match="are the most"):
        read(content[:-22] + end + content[-22:])


@pytest.mark.parametrize("compressed", [False, True])
def test_damaged_zips_are_refused_or_read_but_never_fail(compressed: bool) -> None:
    good = npz(compressed, x=X)
    for length in range(len(good)):
        with pytest.raises(InvalidInput):
            read(good[:length])
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(3000):
        bad = bytearray(good)
        for place in rng.integers(0, len(good), rng.integers(1, 4)):
            bad[place] = rng.integers(256)
        try:
            read(bytes(bad))
        except (InvalidInput, TooLarge):
            refused += 1
    assert refused > 2000
