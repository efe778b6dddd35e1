"""Zips of arrays: what NumPy writes is read, and nothing that somebody made up costs or fails."""

import io
import struct
import zipfile
from typing import Any

import numpy as np
import pytest

from app.core.arrays import OneHot
from app.core.errors import InvalidInput, TooLarge
from app.formats.npz import Npz, arrays, write_zip
from service_tests.cases import each
from service_tests.checks import npy
from service_tests.formats.damaged import refusals

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


def test_a_zip_that_nobody_reads_to_its_end_is_collected_without_a_failure() -> None:
    """In cycles of references, the zip may come before what writes it."""
    pieces: Any = write_zip({"features": np.zeros(3)})
    next(pieces)
    pieces.gi_frame.f_locals["archive"].__del__()


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
        (npy(X), "does not end as a zip does"),
        (zipped(("x.npy", npy(X)), comment=b"c"), "does not end as a zip does"),
        (zipped(("x.npy", npy(X)), comment=b"PK\5\6" + bytes(16) + b"\1\0"), "are the most"),
        (zipped(*((f"{i}.npy", b"") for i in range(17))), "lists 17 members"),
        (zipped(("x" * 60_000, b"")), "60046 bytes"),
        (zipped(("x.npy", npy(np.array([{}])))), "plain float32, float64 or whole numbers"),
        (zipped(("x.npy", b"cos\nsystem\n(S'true'\ntR.")), "is not a .npy array"),
        (zipped(("x.npy", npy(X)), compression=zipfile.ZIP_BZIP2), "compressed otherwise"),
    ],
)
def test_what_is_no_zip_of_arrays_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(content)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="name of its own"):
        read(zipped(("x.npy", npy(X)), ("x.npy", npy(Y))))


@pytest.mark.parametrize("compressed", [False, True])
def test_damaged_zips_are_refused_or_read_but_never_fail(compressed: bool) -> None:
    good = npz(compressed, x=X)
    for length in range(len(good)):
        with pytest.raises(InvalidInput):
            read(good[:length])
    assert refusals(read, good, 3000) > 2000
