"""JSON: rows are lists of numbers, or objects of indices and values; answers are written straight from arrays."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import orjson

from app.core.arrays import Answer, Array, OneHot, PostedRows, row_blocks
from app.core.errors import InvalidInput
from app.formats.base import Body, Format, Posted
from app.formats.json_body import bytes_per_row, dimension, members, rows, rows_or_reference, vectors_or_dataset

_NUMBERS_PER_PIECE = 1 << 16


class Json(Format):
    """`application/json`."""

    media_type = "application/json"

    def decode(self, body: Body, width: int, wanted: str, optional: Sequence[str] = ()) -> Posted:
        """Read an object whose members are lists of rows, or references to datasets."""
        if wanted != "vectors":
            posted = members(body.content, [wanted], optional, bytes_per_list=bytes_per_row(width))
            return {name: rows_or_reference(value, width, f"/{name}") for name, value in posted.items()}
        posted = members(body.content, [], ["vectors", "dataset", "rows", "seed"], bytes_per_list=bytes_per_row(width))
        if "seed" in posted and "dataset" not in posted:
            raise InvalidInput("seed is of the sample of a dataset, and no dataset came", "/seed")
        return {wanted: vectors_or_dataset(posted, width)}

    def matrix(self, body: Body) -> PostedRows:
        """Read an object of `vectors`, a list of rows, and `input_dim`, their length, which only sparse rows need."""
        posted = members(body.content, ["vectors"], ["input_dim"], bytes_per_list=bytes_per_row(1))
        width = dimension(posted["input_dim"]) if "input_dim" in posted else None
        return rows(posted["vectors"], width, "/vectors")

    def encode(self, answer: Answer) -> Iterator[bytes]:
        """Write one object with the arrays as members.

        A complex array becomes an object of `real` and `imag`, one-hot rows an object of `indptr`, `indices`, `shape`.
        """
        return _object({name: _parts(array) for name, array in answer.items()})


def _parts(array: Array | OneHot) -> Array | dict[str, Array]:
    if isinstance(array, OneHot):
        there = array.columns[:, 0] >= 0
        lengths = np.where(there, array.columns.shape[1], 0)
        return {
            "indptr": np.concatenate([[0], np.cumsum(lengths)]),
            "indices": (array.columns if there.all() else array.columns[there]).reshape(-1),
            "shape": np.array([len(lengths), array.n_columns]),
        }
    return {"real": array.real, "imag": array.imag} if np.iscomplexobj(array) else array


def _object(members: Mapping[str, Array | dict[str, Array]]) -> Iterator[bytes]:
    before = b"{"
    for name, value in members.items():
        yield before + orjson.dumps(name) + b":"
        before = b","
        yield from _object(value) if isinstance(value, dict) else _encoded(value)
    yield b"}"


def _encoded(array: Array) -> Iterator[bytes]:
    """Write an array as a list, some rows at a time."""
    if not array.size:
        yield orjson.dumps(array.tolist())
        return
    before = b"["
    for block in row_blocks(len(array), _NUMBERS_PER_PIECE // (array.size // len(array))):
        text = orjson.dumps(np.ascontiguousarray(array[block]), option=orjson.OPT_SERIALIZE_NUMPY)
        yield before + text[1:-1]
        before = b","
    yield b"]"
