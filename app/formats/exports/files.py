"""Base class of export formats, and the formats that hold arrays: .npz and safetensors."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from app.core.arrays import Array, RowBlocks, in_parts, octets
from app.core.maps.terms import Gives, TakenMap
from app.formats.base import Encoded
from app.formats.npz import length, write_zip


class MapFile(ABC):
    """File format that holds a map."""

    media_type: ClassVar[str]
    needs: ClassVar[frozenset[Gives]] = frozenset()
    """Results of which a map must give one."""

    @abstractmethod
    def write(self, taken: TakenMap) -> Encoded:
        """Write a map, in pieces of which none is a copy of a large array.

        Raises:
            InvalidOption: the format cannot hold this map; the message names formats that can.
        """


def numbers(array: Array | RowBlocks) -> Iterator[memoryview]:
    """Return the bytes of an array, block by block; blocks are made when they are needed."""
    return map(octets, in_parts(array))


class Npz(MapFile):
    """Arrays by name, with the map's spec, digest and parameter stream as arrays of bytes.

    File:
        npz: the arrays; `spec`, `digest` and `parameter_stream` are members too, of bytes.
    """

    media_type = "application/zip"

    def write(self, taken: TakenMap) -> Encoded:
        """Write the arrays one after the other."""
        told = {name: np.array(text.encode()) for name, text in taken.told.items()}
        members = {**told, **taken.arrays}
        return Encoded(write_zip(members), length(members))


_DTYPES = {"float64": "F64", "float32": "F32", "int8": "I8", "uint8": "U8"}


class Safetensors(MapFile):
    """Arrays by name, with spec and digest in the metadata of the file. The format cannot contain code.

    File:
        safetensors: the arrays; spec, digest and the version of the hash stream are in its metadata.
    """

    media_type = "application/octet-stream"

    def write(self, taken: TakenMap) -> Encoded:
        """Write the header, then the arrays, those with the longest numbers first, so that all are aligned."""
        arrays = dict(sorted(taken.arrays.items(), key=lambda item: -item[1].dtype.itemsize))
        entries: dict[str, Any] = {"__metadata__": taken.told}
        end = 0
        for name, array in arrays.items():
            start, end = end, end + array.nbytes
            dtype = _DTYPES[array.dtype.name]
            entries[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [start, end]}
        header = json.dumps(entries, separators=(",", ":")).encode()
        header += b" " * (-len(header) % 8)
        header = len(header).to_bytes(8, "little") + header
        return Encoded(chain([header], *map(numbers, arrays.values())), len(header) + end)
