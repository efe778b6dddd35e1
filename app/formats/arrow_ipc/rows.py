"""Rows, and what stands beside them, from the columns of an Arrow stream."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.core.arrays import Array, row_blocks
from app.core.errors import InvalidInput
from app.core.ids import Identified, Ids, NumberIds, TextIds, check_text
from app.formats.arrow_ipc.columns import Column, check_exact, columns
from app.formats.arrow_ipc.stream import read
from app.formats.arrow_ipc.types import FIXED_LIST, NULL, TEXTS, Field
from app.formats.base import Body

ID, TAG = "id", "tag"
"""Names of the columns of ids and of tags."""
_WANTED = "one column of lists of numbers, or columns of numbers, are wanted, beside ids in a column `id`"
# Numbers of one column that are put into rows at a time.
_AT_A_TIME = 1 << 10


def rows_of(body: Body, width: int | None = None) -> Array | Identified:
    """The rows of a stream, with their ids where it has a column of these; raises what `columns_of` raises."""
    rows, beside = columns_of(body, width, (ID,))
    return Identified(rows, beside[ID]) if ID in beside else rows


def columns_of(body: Body, width: int | None, beside: Sequence[str]) -> tuple[Array, Mapping[str, Ids]]:
    """The rows of a stream, and its columns of these names, which are ids, or tags of strings.

    Numbers that are missing are NaN, tags that are missing are "". Columns of numbers become rows of the narrowest
    dtype that has room for all of their dtypes, which must round no whole number. Where there are none, lists of no
    stated length are of `width`.

    Raises:
        InvalidInput: the body is no stream; columns are of other types, or too short; lists are of different lengths; a
            whole number would be rounded; or an id is missing.
    """
    fields, batches = read(body)
    places = [place for place, field in enumerate(fields) if field.name not in beside]
    _check(fields, [fields[place] for place in places], beside)
    split = [*columns(fields, batches)]
    first = fields[places[0]]
    if first.item is None:
        rows = _side_by_side([[one[place] for one in split] for place in places], [fields[place] for place in places])
    else:
        rows = _joined([one[places[0]].lists() for one in split], first, width)
    others = {field.name: (field, place) for place, field in enumerate(fields) if place not in places}
    return rows, {name: _ids(field, [one[place] for one in split]) for name, (field, place) in others.items()}


def _check(fields: Sequence[Field], of_rows: Sequence[Field], beside: Sequence[str]) -> None:
    """Raise InvalidInput for columns that are no rows, those `of_rows`, and for all others that are not fit."""
    if not of_rows:
        names = " and ".join(map(repr, beside))
        raise InvalidInput(f"the Arrow stream has {len(fields)} columns, and none beside {names}; {_WANTED}")
    for name in beside:
        if (n := sum(field.name == name for field in fields)) > 1:
            raise InvalidInput(f"{n} columns are called {name!r}; one is wanted", f"/{name}")
    for field in fields:
        if field.name not in beside:
            _check_numbers(field, alone=len(of_rows) == 1)
        elif not _are_ids(field) if field.name == ID else field.code not in (*TEXTS, NULL):
            wanted = "whole numbers or strings" if field.name == ID else "strings"
            raise InvalidInput(f"{field.quoted} is {field.called}; {wanted} are wanted", field.pointer)


def _are_ids(field: Field) -> bool:
    return field.code in TEXTS or (field.dtype is not None and field.dtype.kind in "iu")


def _check_numbers(field: Field, alone: bool) -> None:
    """Raise InvalidInput for a column that can be no part of rows."""
    if field.dtype is not None or (alone and field.item is not None and field.item.dtype is not None):
        return
    of = f" of {field.item.called}" if field.item is not None else ""
    beside = "" if alone else ", and not the only one"
    raise InvalidInput(f"{field.quoted} is {field.called}{of}{beside}; {_WANTED}", field.pointer)


def _joined(parts: list[Array], field: Field, width: int | None) -> Array:
    """Rows of all batches, one after the other; those of a batch alone are not copied."""
    parts = [part for part in parts if len(part)]
    if not parts:
        size = field.size if field.code == FIXED_LIST else width or 0
        return np.empty((0, max(0, size)), field.item and field.item.dtype)
    sizes = [part.shape[1] for part in parts]
    if len({*sizes}) > 1:
        odd = next(place for place, size in enumerate(sizes) if size != sizes[0])
        row = sum(map(len, parts[:odd]))
        detail = f"row {row} has {sizes[odd]} entries; {sizes[0]} are wanted, as in those before it"
        raise InvalidInput(detail, field.pointer)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _side_by_side(found: list[list[Column]], fields: Sequence[Field]) -> Array:
    """The rows that columns of numbers make together; each is given by its parts, one of each batch."""
    parts = [[column.numbers() for column in one] for one in found]
    dtype = _common(parts, fields)
    n = sum(len(part) for part in parts[0])
    rows = np.empty((n, len(parts)), dtype)
    begun = 0
    for batch in zip(*parts, strict=True):
        for field, part in zip(fields, batch, strict=True):
            check_exact(part, dtype, field, begun)
        for block in row_blocks(len(batch[0]), _AT_A_TIME):
            for place, part in enumerate(batch):
                rows[begun + block.start : begun + block.stop, place] = part[block]
        begun += len(batch[0])
    return rows


def _common(parts: Sequence[Sequence[Array]], fields: Sequence[Field]) -> np.dtype[Any]:
    """The narrowest dtype with room for all columns; a column without parts has that of its field."""
    every = {part.dtype for one in parts for part in one} or {
        field.dtype for field in fields if field.dtype is not None
    }
    return np.result_type(*every)


def _ids(field: Field, parts: Sequence[Column]) -> Ids:
    """The ids of all batches, or their tags, one after the other."""
    every = [part.ids() if field.name == ID else part.texts() for part in parts]
    if field.code in (*TEXTS, NULL):
        texts = [one for one in every if isinstance(one, TextIds)]
        begun = np.cumsum([0, *(one.text.size for one in texts)])
        ends = [one.ends + start for one, start in zip(texts, begun, strict=False)]
        ids = TextIds(
            _concatenated(ends, np.dtype(np.int64)), _concatenated([one.text for one in texts], np.dtype(np.uint8))
        )
        check_text(ids, field.name)
        return ids
    numbers = [one.numbers for one in every if isinstance(one, NumberIds)]
    return NumberIds(_concatenated(numbers, np.dtype(np.int64)))


def _concatenated(parts: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    return np.concatenate(parts) if parts else np.empty(0, dtype)
