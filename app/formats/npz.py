"""The .npz format: named arrays, with the names of the members in JSON, in a zip as NumPy saves it.

A zip is written piece by piece, and read without trust in the sizes that it states.
"""

import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from io import SEEK_CUR, SEEK_END, SEEK_SET
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from app.core.arrays import Answer, Array, NumberIds, OneHot, PostedRows, RowBlocks, TextIds, in_parts, octets
from app.core.errors import InvalidInput
from app.formats.base import Body, Buffer, Encoded, Format, Posted
from app.formats.npy import array_header, read


class Npz(Format):
    """`application/x-npz`: a zip of `.npy`, as written by `numpy.savez` and `numpy.savez_compressed`.

    Rows:
        A `.npz` of the members that JSON has, each an array as application/x-npy takes it; compressed or not,
        and never more than BOCHNER_MAX_BODY_BYTES in all.

    Answers:
        A `.npz` of the members that JSON has, uncompressed; codes one_hot as their column indices, ids of
        strings as `ids_text`, all of them in UTF-8, and `ids_ends`, where each ends.
    """

    media_type = "application/x-npz"
    has_members = True
    expands = True

    def decode(self, body: Body, width: int, wanted: str, optional: Sequence[str] = ()) -> Posted:
        """Read the `wanted` member, and the `optional` members that are present."""
        del width
        return {**members(body, [wanted], optional)}

    def matrix(self, body: Body) -> PostedRows:
        """Read the member `vectors`."""
        return members(body, ["vectors"])["vectors"]

    def encode(self, answer: Answer, dtype: np.dtype[Any] | None = None, warnings: Sequence[str] = ()) -> Encoded:
        """Write each array in its own dtype."""
        del dtype, warnings
        members: dict[str, Array | RowBlocks] = {}
        for name, one in answer.items():
            if isinstance(one, TextIds):  # an array of strings would use the length of the longest string for each
                members |= {f"{name}_ends": one.ends, f"{name}_text": one.text}
            elif isinstance(one, NumberIds):
                members[name] = one.numbers
            else:
                members[name] = one.columns if isinstance(one, OneHot) else one
        return Encoded(write_zip(members), length(members))


def members(
    body: Body, wanted: Sequence[str], optional: Sequence[str] = (), of_strings: Collection[str] = ()
) -> dict[str, Array]:
    """Return the arrays of a body: all of `wanted` must be present, and only `optional` ones beside them."""
    found = arrays(body.content, body.check_size, of_strings)
    for name in wanted:
        if name not in found:
            raise InvalidInput(f"the member {name} is missing in the .npz", f"/{name}")
    for name in found:
        if name not in {*wanted, *optional}:
            takes = ", ".join(dict.fromkeys([*wanted, *optional]))
            raise InvalidInput(f"{name[:80]!r} is no member of this request; it takes {takes}")
    return found


# The record at the end of a zip, and the size of the record before it in a zip of more than 4 GB (ZIP64).
_END, _LONG_END = struct.Struct("<4sHHHHIIH"), 20
_END_MARK, _LONG_MARK = b"PK\5\6", b"PK\6\7"
# Bytes before a member, after it, and for it in the list of members at the end, without its name.
_HEAD_BYTES = 30 + 16 + 46
# Below this size, zipfile uses no 64-bit fields.
_SHORT_BYTES = 2_000_000_000
# Limits on the list of members, which is read whole. No request has more than a few members.
_MOST_MEMBERS, _MOST_LIST_BYTES = 16, 1 << 14


class _Pieces:
    """Write-only file whose contents are taken away piece by piece."""

    def __init__(self) -> None:
        self._written: list[bytes | memoryview] = []

    def write(self, piece: bytes | memoryview) -> int:
        self._written.append(piece)
        return len(piece)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def take(self) -> list[bytes | memoryview]:
        """Return the pieces written since the last call."""
        pieces, self._written = self._written, []
        return pieces


class _Archive(ZipFile):
    """Zip that is left unfinished if its reader leaves."""

    def __del__(self) -> None:
        """Close nothing: within a member, which is collected at the same time, that would fail."""


def write_zip(members: Mapping[str, Array | RowBlocks]) -> Iterator[bytes | memoryview]:
    """Yield the pieces of a zip; each member's checksum follows its data, as it is not known before.

    Nothing is compressed: random numbers do not get shorter.
    """
    file = _Pieces()
    with _Archive(file, "w") as archive:
        for name, array in members.items():
            start = array_header(array.shape, array.dtype)
            member = ZipInfo(f"{name}.npy")
            member.file_size = len(start) + array.nbytes  # decides whether the member needs the form for more than 4 GB
            with archive.open(member, "w") as out:
                out.write(start)
                for part in in_parts(array):
                    out.write(octets(part))
                    yield from file.take()
    yield from file.take()


def length(members: Mapping[str, Array | RowBlocks]) -> int | None:
    """Return the length in bytes of what `write_zip` yields, or None if the zip could need the 64-bit form (ZIP64)."""
    total = _END.size
    for name, array in members.items():
        heads = _HEAD_BYTES + 2 * len(f"{name}.npy".encode())  # the name is written in two places
        total += heads + len(array_header(array.shape, array.dtype)) + array.nbytes
    return total if total < _SHORT_BYTES else None


class _View:
    """Readable file that shares the memory of a buffer."""

    def __init__(self, content: Buffer) -> None:
        self._view, self._at = memoryview(content), 0

    def read(self, length: int = -1) -> bytes:
        end = len(self._view) if length < 0 else min(len(self._view), self._at + length)
        piece = bytes(self._view[self._at : end])
        self._at += len(piece)
        return piece

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        self._at = max(0, offset + {SEEK_SET: 0, SEEK_CUR: self._at, SEEK_END: len(self._view)}[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def seekable(self) -> bool:
        return True


def arrays(content: Buffer, check_size: Callable[[int], None], of_strings: Collection[str] = ()) -> dict[str, Array]:
    """Return the arrays of a zip by name; `check_size` receives their total size before any array is read.

    Arrays named in `of_strings` may have strings.

    Raises:
        InvalidInput: the content is not such a zip, or holds more than arrays of plain numbers.
        TooLarge: `check_size` refuses the total size.
    """
    _check_end(content)
    try:
        archive = ZipFile(_View(content))
        members = archive.infolist()
    except Exception as error:  # the content may be anything, and so may the library's exceptions
        raise InvalidInput(f"the body is not a .npz: {str(error)[:200]}") from error
    check_size(sum(member.file_size for member in members))
    found: dict[str, Array] = {}
    for member in members:
        name = member.filename.removesuffix(".npy")
        if name == member.filename or name in found:
            wanted = "arrays, each under a name of its own"
            raise InvalidInput(f"expected {wanted}, got {member.filename[:80]!r} in the .npz")
        found[name] = read(_content(archive, member), name in of_strings)
    return found


def _check_end(content: Buffer) -> None:
    """Raise InvalidInput if the end is not that of a zip with few members, before the list of members is read."""
    end = bytes(content[-_END.size :])
    if len(end) < _END.size or not end.startswith(_END_MARK):
        raise InvalidInput("the body is not a .npz: it does not end as a zip does")
    _, _, _, _, n_members, list_bytes, _, n_comment = _END.unpack(end)
    is_long = bytes(content[-_END.size - _LONG_END :][:4]) == _LONG_MARK
    if is_long or n_comment or n_members > _MOST_MEMBERS or list_bytes > _MOST_LIST_BYTES:
        raise InvalidInput(f"the .npz lists {n_members} members in {list_bytes} bytes; {_MOST_MEMBERS} are the most")


def _content(archive: ZipFile, member: ZipInfo) -> bytes:
    """Return the contents of a member; never more bytes than its stated size."""
    name = member.filename[:80]
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or member.flag_bits & 1:
        raise InvalidInput(f"{name!r} in the .npz is encrypted, or compressed otherwise than NumPy does")
    try:
        with archive.open(member) as file:
            content = file.read(member.file_size)
    except Exception as error:  # as above, the library may raise anything
        raise InvalidInput(f"{name!r} in the .npz cannot be read: {str(error)[:200]}") from error
    if len(content) != member.file_size:
        raise InvalidInput(f"{name!r} in the .npz ends after {len(content)} of {member.file_size} bytes")
    return content
