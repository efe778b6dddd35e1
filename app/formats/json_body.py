"""JSON bodies: objects parsed within a bound on memory, and rows in them, or a dataset named in the place of rows.

Rows are lists of numbers, or objects of indices and values.
"""

import gc
import re
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from operator import itemgetter
from types import NoneType
from typing import Any, NoReturn

import numpy as np
import orjson
from scipy import sparse

from app.core.arrays import MAX_DIM, Array, PostedRows
from app.core.datasets import Reference
from app.core.errors import InvalidInput
from app.core.model import NAME_PATTERN
from app.formats.base import Buffer

# Shorter bodies are parsed whatever they hold.
_TRUSTED_BYTES = 1 << 20
# Brackets that are not those of rows: of the body's object and its members.
_OUTER_BRACKETS = 8
# Null, which is a missing number, becomes NaN.
_NUMBER_TYPES = {int, float, NoneType}
_SPARSE_MEMBERS = {"indices", "values"}
_REFERENCE = ("dataset", "rows", "seed")


def bytes_per_row(width: int) -> int:
    """The fewest bytes of JSON for each list or object in rows of vectors, commas included."""
    # The shortest rows are [0,0], or {"indices":[],"values":[]}, which is an object and two lists.
    return min(2 * width + 2, 9)


def members(
    body: Buffer, wanted: Sequence[str], optional: Sequence[str] = (), *, bytes_per_list: float
) -> dict[str, Any]:
    """The members of a JSON object, which must have those that are wanted and no others but the optional.

    A sensible body has at least `bytes_per_list` bytes for each list or object in it. One with more lists and objects
    is refused before it is parsed, because each costs a hundred bytes of memory then.
    """
    if len(body) > _TRUSTED_BYTES:
        brackets, most = body.count(b"[") + body.count(b"{"), int(len(body) / bytes_per_list) + _OUTER_BRACKETS
        if brackets > most:
            raise InvalidInput(
                f"the body has {brackets} opening brackets; rows such as this request takes have at most {most} in "
                f"{len(body)} bytes"
            )
    gc.disable()  # JSON has no cycles, and looking for them takes longer than parsing
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"the body is not JSON: {error}") from error
    finally:
        gc.enable()
    if not isinstance(document, dict):
        raise InvalidInput(f"the body is {called(document)}; an object with {', '.join(wanted or optional)} is wanted")
    for name in wanted:
        if name not in document:
            raise InvalidInput(f"the member {name} is missing", f"/{name}")
    for name in document:
        if name not in {*wanted, *optional}:
            allowed = ", ".join(dict.fromkeys([*wanted, *optional]))
            raise InvalidInput(f"{name[:80]!r} is no member of this request; it takes {allowed}", pointer_to(name[:80]))
    return document


def vectors_or_dataset(document: Mapping[str, Any], width: int | None = None) -> PostedRows | Reference:
    """The rows of a body that has `vectors`, or `dataset` with optional `rows` and `seed`; `width` as in `rows`."""
    if ("vectors" in document) == ("dataset" in document):
        came = "both came" if "vectors" in document else "neither came"
        raise InvalidInput(f"{came}; vectors or dataset is wanted", "/vectors")
    if "dataset" in document:
        return _reference({name: document[name] for name in _REFERENCE if name in document}, "")
    if "rows" in document:
        raise InvalidInput("rows is the size of a sample of a dataset, and vectors came", "/rows")
    return rows_or_reference(document["vectors"], width, "/vectors")


def rows_or_reference(value: Any, width: int | None, pointer: str) -> PostedRows | Reference:
    """Read a list of rows, or an object that names a dataset."""
    return _reference(value, pointer) if isinstance(value, dict) else rows(value, width, pointer)


def rows(value: Any, width: int | None, pointer: str) -> PostedRows:
    """A list of rows, all dense or all sparse, which stands at `pointer`, as one matrix of float64.

    Rows have `width` entries; None stands for as many as the first row has, which sparse rows do not tell.
    """
    if not isinstance(value, list):
        raise InvalidInput(f"{called(value)} came; a list of rows is wanted", pointer)
    if value and isinstance(value[0], dict):
        if width is None:
            raise InvalidInput("sparse rows do not tell their length: input_dim is missing", "/input_dim")
        return _sparse_rows(value, width, pointer)
    if width is None:
        width = len(value[0]) if value and isinstance(value[0], list) else 0
    return _dense(value, width, pointer)


def dimension(value: Any) -> int:
    """The member `input_dim` of a body."""
    return _whole(value, 1, MAX_DIM, "/input_dim")


def called(value: Any) -> str:
    """The words of a refusal for a JSON value: its type, or the value itself if it is a number."""
    if isinstance(value, bool):
        return str(value).lower()
    kinds = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return kinds.get(type(value)) or f"the number {value}"


def pointer_to(name: str) -> str:
    """The JSON pointer (RFC 6901) to a member of an object."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _reference(value: dict[str, Any], pointer: str) -> Reference:
    if "dataset" not in value:
        wanted = "a list of rows is wanted, or an object that names a dataset"
        raise InvalidInput(f"an object without the member dataset came; {wanted}", pointer)
    for name in value:
        if name not in _REFERENCE:
            takes = ", ".join(_REFERENCE)
            detail = f"{name[:80]!r} is no member of a reference to a dataset; it takes {takes}"
            raise InvalidInput(detail, pointer + pointer_to(name[:80]))
    dataset = value["dataset"]
    if not isinstance(dataset, str) or not re.fullmatch(NAME_PATTERN, dataset):
        came = repr(dataset[:80]) if isinstance(dataset, str) else called(dataset)
        raise InvalidInput(f"{came} came; the name of a dataset is wanted", f"{pointer}/dataset")
    count = _whole(value["rows"], 1, (1 << 63) - 1, f"{pointer}/rows") if "rows" in value else None
    seed = _whole(value.get("seed", 0), 0, (1 << 64) - 1, f"{pointer}/seed")
    return Reference(dataset, count, seed, pointer)


def _whole(value: Any, least: int, most: int, pointer: str) -> int:
    if type(value) is not int or not least <= value <= most:
        raise InvalidInput(f"{called(value)} came; a whole number from {least} to {most} is wanted", pointer)
    return value


def _dense(value: list[Any], width: int, pointer: str) -> Array:
    # All rows are looked at together: one step of Python for each row of a large body takes a minute.
    if not (
        set(map(type, value)) <= {list}
        and set(map(len, value)) <= {width}
        and set(map(type, chain.from_iterable(value))) <= _NUMBER_TYPES
    ):
        _refuse(value, width, pointer)
    return np.fromiter(chain.from_iterable(value), np.float64, len(value) * width).reshape(len(value), width)


def _refuse(value: list[Any], width: int, pointer: str) -> NoReturn:
    """Name the first thing that is wrong with rows that are not all lists of so many numbers."""
    for i, row in enumerate(value):
        if not isinstance(row, list):
            raise InvalidInput(f"row {i} is {called(row)}; a list of {width} numbers is wanted", f"{pointer}/{i}")
        if len(row) != width:
            raise InvalidInput(f"row {i} has {len(row)} entries; {width} are wanted", f"{pointer}/{i}")
        _check_numbers(row, f"{pointer}/{i}")
    raise AssertionError("nothing is wrong with these rows")


def _sparse_rows(value: list[Any], width: int, pointer: str) -> sparse.csr_array:
    # All rows are looked at together, as above.
    if not (set(map(type, value)) <= {dict} and all(row.keys() == _SPARSE_MEMBERS for row in value)):
        _refuse_sparse(value, width, pointer)
    indices, values = (list(map(itemgetter(name), value)) for name in ("indices", "values"))
    if not (
        set(map(type, chain(indices, values))) <= {list}
        and set(map(type, chain.from_iterable(indices))) <= {int}
        and set(map(type, chain.from_iterable(values))) <= _NUMBER_TYPES
    ):
        _refuse_sparse(value, width, pointer)
    lengths = np.fromiter(map(len, indices), np.int64, len(value))
    ends = np.concatenate([[0], np.cumsum(lengths)])
    try:
        columns = np.fromiter(chain.from_iterable(indices), np.int64, ends[-1])
    except OverflowError:
        _refuse_sparse(value, width, pointer)
    # An index is larger than the one before it, unless it is the first of its row.
    rises = np.diff(columns, prepend=-1) > 0
    rises[ends[:-1][lengths > 0]] = True
    inside = columns.size == 0 or 0 <= columns.min() <= columns.max() < width
    if not (inside and rises.all() and (lengths == np.fromiter(map(len, values), np.int64, len(value))).all()):
        _refuse_sparse(value, width, pointer)
    numbers = np.fromiter(chain.from_iterable(values), np.float64, ends[-1])
    return sparse.csr_array((numbers, columns, ends), shape=(len(value), width))


def _refuse_sparse(value: list[Any], width: int, pointer: str) -> NoReturn:
    """Name the first thing that is wrong with rows that are not all objects of indices and values."""
    for i, row in enumerate(value):
        at = f"{pointer}/{i}"
        if not isinstance(row, dict) or row.keys() != _SPARSE_MEMBERS:
            raise InvalidInput(f"row {i} is no object of indices and values, as the rows before it", at)
        index, numbers = row["indices"], row["values"]
        _check_indices(index, width, at)
        if not isinstance(numbers, list):
            raise InvalidInput(f"{called(numbers)} came; a list of numbers is wanted", f"{at}/values")
        _check_numbers(numbers, f"{at}/values")
        if len(index) != len(numbers):
            raise InvalidInput(f"row {i} has {len(index)} indices and {len(numbers)} values", at)
    raise AssertionError("nothing is wrong with these rows")


def _check_indices(value: Any, width: int, pointer: str) -> None:
    if not isinstance(value, list) or set(map(type, value)) - {int}:
        raise InvalidInput("indices must be a list of whole numbers", f"{pointer}/indices")
    if value and not 0 <= min(value) <= max(value) < width:
        raise InvalidInput(f"indices must lie from 0 to {width - 1}", f"{pointer}/indices")
    if any(second <= first for first, second in pairwise(value)):
        raise InvalidInput("indices must increase, each standing once", f"{pointer}/indices")


def _check_numbers(value: list[Any], pointer: str) -> None:
    if set(map(type, value)) - _NUMBER_TYPES:
        column = next(j for j, number in enumerate(value) if type(number) not in _NUMBER_TYPES)
        raise InvalidInput(f"{called(value[column])} came; a number is wanted", f"{pointer}/{column}")
