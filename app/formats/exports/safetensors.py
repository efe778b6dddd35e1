"""The safetensors format: a JSON header that says where each array lies, and the arrays."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from app.core.answers import RowBlocks
from app.core.arrays import Array
from app.core.maps.terms import TakenMap
from app.formats.base import Encoded
from app.formats.exports.base import MapFile, numbers

_DTYPES = {"float64": "F64", "float32": "F32", "int8": "I8", "uint8": "U8"}


class Safetensors(MapFile):
    """Arrays by name, with spec and digest in the metadata of the file. No code can hide in it."""

    media_type = "application/octet-stream"
    described = "safetensors: the arrays; spec, digest and the version of the hash stream are in its metadata."

    def write(self, taken: TakenMap) -> Encoded:
        """Write the header and then the arrays, those of the longest numbers first, so that all are aligned."""
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
        return Encoded(_pieces(header, arrays), len(header) + end)


def _pieces(header: bytes, arrays: Mapping[str, Array | RowBlocks]) -> Iterator[bytes | memoryview]:
    yield header
    for array in arrays.values():
        yield from numbers(array)
