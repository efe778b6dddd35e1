"""JSON: rows as lists or as {indices, values}, answers written straight from the arrays."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import orjson

from app.core.arrays import Array, row_blocks
from app.core.errors import InvalidInput
from app.formats.base import Answer, Matrix, OneHot, Posted, Reference
from app.formats.json_rows import called, dimension, pointer_to, rows, rows_or_reference, vectors_or_dataset

_NUMBERS_PER_PIECE = 1 << 16
# Bodies up to this length are parsed whatever they hold.
_TRUSTED_BYTES = 1 << 20
# Those of the body's object and of its members.
_OUTER_BRACKETS = 8
_INT64 = np.dtype(np.int64)


class Json:
    """`application/json`."""

    media_type = "application/json"

    def decode(self, body: bytes, width: int, wanted: str, optional: Sequence[str] = ()) -> Posted:
        """An object whose members are lists of rows, or name datasets."""
        if wanted == "vectors":
            return {wanted: self._vectors(body, width)}
        posted = members(body, [wanted], optional, bytes_per_list=bytes_per_row(width))
        return {name: rows_or_reference(value, width, f"/{name}") for name, value in posted.items()}

    @staticmethod
    def _vectors(body: bytes, width: int) -> Matrix | Reference:
        posted = members(body, [], ["vectors", "dataset", "rows", "seed"], bytes_per_list=bytes_per_row(width))
        if "seed" in posted and "dataset" not in posted:
            raise InvalidInput("seed is of the sample of a dataset, and no dataset came", "/seed")
        return vectors_or_dataset(posted, width)

    def matrix(self, body: bytes) -> Matrix:
        """An object of `vectors`, a list of rows, and `input_dim`, their length, which dense rows tell themselves."""
        posted = members(body, ["vectors"], ["input_dim"], bytes_per_list=bytes_per_row(1))
        width = dimension(posted["input_dim"]) if "input_dim" in posted else None
        return rows(posted["vectors"], width, "/vectors")

    def encode(self, answer: Answer) -> Iterator[bytes]:
        """One object with the arrays as members.

        A complex array is an object of `real` and `imag`, one-hot rows one of `indptr`, `indices` and `shape`.
        """
        return _object({name: _parts(array) for name, array in answer.items()})


def bytes_per_row(width: int) -> int:
    """The fewest bytes of JSON, commas included, that rows of vectors have for each list or object in them."""
    # Such as [0,0], or {"indices":[],"values":[]}, which is three of them.
    return min(2 * width + 2, 9)


def members(
    body: bytes, wanted: Sequence[str], optional: Sequence[str] = (), *, bytes_per_list: float
) -> dict[str, Any]:
    """The members of a JSON object: all wanted, some optional, no other.

    Args:
        body: the whole request body.
        wanted: names of members that must be there.
        optional: names of members that may be there too.
        bytes_per_list: the fewest bytes that a body has for each list or object in it. One with more of them is refused
            before it is parsed, because each costs a hundred bytes of memory then.
    """
    if len(body) > _TRUSTED_BYTES:
        brackets, most = body.count(b"[") + body.count(b"{"), int(len(body) / bytes_per_list) + _OUTER_BRACKETS
        if brackets > most:
            raise InvalidInput(
                f"the body has {brackets} opening brackets; rows such as this request takes have at most {most} in "
                f"{len(body)} bytes"
            )
    gc.disable()  # what is parsed holds no cycles, and looking for them takes longer than parsing
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"the body is not JSON: {error}") from error
    finally:
        gc.enable()
    if not isinstance(document, dict):
        raise InvalidInput(f"the body is {called(document)}; an object with {_listed(wanted or optional)} is wanted")
    for name in wanted:
        if name not in document:
            raise InvalidInput(f"the member {name} is missing", f"/{name}")
    for name in document:
        if name not in {*wanted, *optional}:
            allowed = _listed(list(dict.fromkeys([*wanted, *optional])))
            raise InvalidInput(f"{name[:80]!r} is no member of this request; it takes {allowed}", pointer_to(name[:80]))
    return document


def codes(value: Any, row: tuple[int, ...], dtype: np.dtype[Any], pointer: str) -> Array:
    """Rows of whole numbers in the shape of `row`, as int64, or as uint64 if the dtype is that."""
    wide = np.dtype(np.uint64 if dtype == np.uint64 else np.int64)
    wanted = f"rows of {row[0]} " + ("whole numbers" if len(row) == 1 else "pairs of whole numbers")
    if not isinstance(value, list):
        raise InvalidInput(f"{called(value)} came; {wanted} are wanted", pointer)
    if not value:
        return np.empty((0, *row), wide)
    numbers: Any = value
    for _ in row:
        if set(map(type, numbers)) - {list}:
            raise InvalidInput(f"something else than lists came; {wanted} are wanted", pointer)
        numbers = list(chain.from_iterable(numbers))
    if set(map(type, numbers)) - {int}:
        raise InvalidInput(f"something else than whole numbers came; {wanted} are wanted", pointer)
    try:
        array = np.array(value, wide)
    except ValueError:
        raise InvalidInput(f"rows of unequal length came; {wanted} are wanted", pointer) from None
    except OverflowError:
        raise InvalidInput(f"a number outside the range of {wide} came", pointer) from None
    if array.shape[1:] != row:
        raise InvalidInput(f"an array of shape {array.shape} came; {wanted} are wanted", pointer)
    return array


def csr_codes(value: dict[str, Any], s: int, n_columns: int, pointer: str) -> Array:
    """One-hot rows in CSR form, as `Json` writes them, as rows of s column indices."""
    if set(value) != {"indptr", "indices", "shape"}:
        raise InvalidInput("an object came whose members are not indptr, indices, shape", pointer)
    starts, indices, shape = (
        codes([value[k]], (_length(value[k]),), _INT64, f"{pointer}/{k}")[0] for k in ("indptr", "indices", "shape")
    )
    if not starts.size or starts[0] != 0 or starts[-1] != indices.size:
        raise InvalidInput(f"indptr must run from 0 to {indices.size}, the number of indices", f"{pointer}/indptr")
    lengths = np.diff(starts)
    wrong = np.flatnonzero(lengths != s)
    if wrong.size:
        row, came = int(wrong[0]), int(lengths[wrong[0]])
        marked = ": it was marked by on_zero=mark, as a row without a sample, and must be left out" if came == 0 else ""
        raise InvalidInput(f"row {row} has {came} codes, {s} are wanted{marked}", f"{pointer}/indptr/{row}")
    if shape.tolist() != [starts.size - 1, n_columns]:
        raise InvalidInput(f"shape must be [{starts.size - 1}, {n_columns}]", f"{pointer}/shape")
    columns: Array = indices.reshape(-1, s)
    return columns


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0


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
    """A list, some rows at a time."""
    if not array.size:
        yield orjson.dumps(array.tolist())
        return
    before = b"["
    for block in row_blocks(len(array), _NUMBERS_PER_PIECE // (array.size // len(array))):
        text = orjson.dumps(np.ascontiguousarray(array[block]), option=orjson.OPT_SERIALIZE_NUMPY)
        yield before + text[1:-1]
        before = b","
    yield b"]"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
