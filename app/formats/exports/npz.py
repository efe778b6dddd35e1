"""The .npz format: a zip of arrays as NumPy saves them, which NumPy alone reads."""

from collections.abc import Iterator, Mapping
from zipfile import ZipFile, ZipInfo

import numpy as np

from app.core.answers import RowBlocks
from app.core.arrays import Array
from app.core.maps.taken_map import TakenMap
from app.formats.base import Encoded
from app.formats.exports.base import MapFile, numbers
from app.formats.npy import array_header


class Npz(MapFile):
    """Arrays by name, and as arrays of bytes what is told of the map beside them."""

    media_type = "application/zip"
    described = "npz: the arrays; `spec`, `digest` and `parameter_stream` are members too, of bytes."

    def write(self, taken: TakenMap) -> Encoded:
        """Write the arrays uncompressed, one after the other: random numbers do not get shorter."""
        told = {name: np.array(text.encode()) for name, text in taken.told.items()}
        return Encoded(_zipped({**told, **taken.arrays}))


class _Pieces:
    """A file that is written to, from which what was written is taken away piece by piece."""

    def __init__(self) -> None:
        self._written: list[bytes | memoryview] = []

    def write(self, piece: bytes | memoryview) -> int:
        self._written.append(piece)
        return len(piece)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def taken(self) -> list[bytes | memoryview]:
        """What was written since it was last asked for."""
        pieces, self._written = self._written, []
        return pieces


def _zipped(members: Mapping[str, Array | RowBlocks]) -> Iterator[bytes | memoryview]:
    """The pieces of a zip; the check-sum of each member stands behind it, as it is not known before."""
    file = _Pieces()
    with ZipFile(file, "w") as archive:
        for name, array in members.items():
            start = array_header(array.shape, array.dtype)
            member = ZipInfo(f"{name}.npy")
            member.file_size = len(start) + array.nbytes  # whether it takes the form for more than 4 GB
            with archive.open(member, "w") as out:
                out.write(start)
                for part in numbers(array):
                    out.write(part)
                    yield from file.taken()
    yield from file.taken()
