"""Columns of the record batches of an Arrow stream: rows of numbers, and ids or tags beside the rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Identified, Ids, NumberIds, TextIds, check_lengths, check_text, gather_strings
from app.core.errors import InvalidInput
from app.formats.arrow_ipc.stream import Batch, read
from app.formats.base import Body
from app.formats.json.body import pointer_to
from bochner_client.tables import ID, Column, Field, Schema, Table, TableError

# What an id takes at most while it is read, beside its text; one of a dictionary counts as a string.
_BYTES_OF_NUMBER, _BYTES_OF_TEXT = 16, 40


def rows_of(body: Body, width: int | None = None) -> Array | Identified:
    """Return the rows of a stream, with ids if it has a column of ids; raise what `columns_of` raises."""
    rows, beside = columns_of(body, width, (ID,))
    return Identified(rows, beside[ID]) if ID in beside else rows


def columns_of(
    body: Body, width: int | None, beside: Sequence[str], check_count: Callable[[int], None] = lambda _: None
) -> tuple[Array, Mapping[str, Ids]]:
    """Return the rows of a stream, and its columns of ids or tags named in `beside`, by name.

    Missing numbers become NaN, missing tags become "". Columns of numbers become rows of the narrowest dtype that has
    room for all of their dtypes; it must hold every whole number exactly. If the stream has no rows, lists without a
    fixed length count as lists of `width` numbers. `check_count` receives the number of rows before any is made, and
    may raise.

    Raises:
        InvalidInput: the body is not a stream; columns are of other types, or too short; lists are of different
            lengths; a whole number would be rounded; or an id is missing.
        TooLarge: `body.check_rows` refuses the size of the rows, or of the columns beside them while they are read.
    """
    schema, batches = read(body)
    n = sum(batch.n for batch in batches if batch.dictionary is None)
    check_count(n)
    with _refuse_as_input():
        schema.check(schema.coordinates(beside), beside)
        split = [*_columns(schema, batches)]
        rows = Table(schema, split, beside=beside, width=width).rows(check=body.check_rows)
        others = [(place, field) for place, field in enumerate(schema.fields) if field.name in beside]
        numbers = sum(field.values is None and field.is_whole for _, field in others)
        body.check_rows(rows.nbytes + n * (_BYTES_OF_NUMBER * numbers + _BYTES_OF_TEXT * (len(others) - numbers)))
        return rows, {field.name: _beside(field, [one[place] for one in split], body) for place, field in others}


@contextmanager
def _refuse_as_input() -> Iterator[None]:
    """Convert a `TableError` raised within the block to InvalidInput."""
    try:
        yield
    except TableError as error:
        raise InvalidInput(str(error), "" if error.column is None else pointer_to(error.column[:80])) from error


def _columns(schema: Schema, batches: Sequence[Batch]) -> Iterator[list[Column]]:
    """Yield the columns of each batch; raise InvalidInput if a batch does not match the schema."""
    first, dictionaries = 0, _Dictionaries({}, {})
    for batch in batches:
        if batch.dictionary is not None:
            dictionaries.batches[batch.dictionary] = batch
            continue
        yield _of_batch(schema.fields, batch, dictionaries, first)
        first += batch.n


class _Dictionaries(NamedTuple):
    """Dictionaries of a stream, as defined at the current position in it."""

    batches: dict[int, Batch]
    """Latest values of each dictionary, by dictionary number."""
    columns: dict[tuple[int, Field], Column]
    """Decoded values, by batch identity and field; decoded once, as many record batches may use a dictionary."""


def _of_batch(fields: Sequence[Field], batch: Batch, dictionaries: _Dictionaries, first: int = 0) -> list[Column]:
    views = iter(batch.variadic)
    counts = [_n_buffers(field) + (next(views, 0) if field.format[0] == "v" else 0) for field in fields]
    nodes = len(fields) + sum(field.is_list for field in fields)
    if (nodes, sum(counts)) != (len(batch.lengths), len(batch.buffers)):
        came = f"{len(batch.lengths)} lengths and {len(batch.buffers)} buffers"
        raise InvalidInput(f"a record batch has {came}; its schema wants {nodes} and {sum(counts)}")
    lengths, buffers = iter(batch.lengths), iter(batch.buffers)
    return [
        _column(field, batch, dictionaries, lengths, [*islice(buffers, n)], first).part(0, batch.n)
        for field, n in zip(fields, counts, strict=True)
    ]


def _column(
    field: Field,
    batch: Batch,
    dictionaries: _Dictionaries,
    lengths: Iterator[list[int]],
    places: list[list[int]],
    first: int,
) -> Column:
    n, nulls = next(lengths)
    own = [partial(_buffer, batch, place) for place in places]
    item = dictionary = None
    if field.item is not None:
        item = _column(field.item, batch, dictionaries, lengths, places[1 if field.size is not None else 2 :], 0)
    if field.values is not None:
        known = dictionaries.batches.get(field.dictionary)
        if known is None:
            raise InvalidInput(f"{field.quoted} has a dictionary that is not in the stream", pointer_to(field.name))
        dictionary = dictionaries.columns.get((id(known), field.values))
        if dictionary is None:
            (dictionary,) = _of_batch([field.values], known, dictionaries)
            dictionaries.columns[id(known), field.values] = dictionary
    views = [_buffer(batch, place, place[1]) for place in places[2:]] if field.format == "vu" else ()
    return Column(field, n, nulls != 0, own, views, item, dictionary, first=first)


def _n_buffers(field: Field) -> int:
    """Count the buffers of a column and of its lists' items, without the variadic buffers of views."""
    if field.format == "n":
        return 0
    if field.is_list and field.item is not None:
        return (1 if field.size is not None else 2) + _n_buffers(field.item)
    if field.format[0] in "+?":
        raise InvalidInput(f"{field.quoted} is {field.called}, which is not read", pointer_to(field.name))
    return 3 if field.format in ("u", "U", "z", "Z") else 2


def _buffer(batch: Batch, place: list[int], n: int) -> NDArray[np.uint8]:
    """Return the first n bytes of a buffer, without a copy."""
    start, nbytes = place
    if n > nbytes:
        raise InvalidInput(f"a buffer has {nbytes} bytes; expected {n}")
    return np.frombuffer(batch.body, np.uint8, n, start) if n else np.empty(0, np.uint8)


def _beside(field: Field, parts: Sequence[Column], body: Body) -> Ids:
    """Concatenate the ids or tags of all batches."""
    for part in parts if field.name == ID else ():
        if (missing := part.missing()).size:
            raise TableError(f"has no {ID}", ID, part.first + int(missing[0]))
    if not (field.values or field).is_whole:
        return _texts(parts, field.name, body)
    numbers = [part.whole() for part in parts]
    return NumberIds(np.concatenate(numbers) if numbers else np.empty(0, np.int64))


def _texts(parts: Sequence[Column], name: str, body: Body) -> TextIds:
    found, total = list[TextIds](), 0
    for part in parts:
        text, starts, lengths = part.texts()
        check_lengths(lengths, part.first, name)
        total += int(lengths.sum())
        body.check_rows(total)  # a dictionary may have few strings for any number of rows
        stops = starts + lengths
        if len(stops) and (starts[1:] == stops[:-1]).all():  # the usual case: strings follow one another without gaps
            found.append(TextIds(stops - starts[0], text[starts[0] : stops[-1]]))
        else:
            found.append(gather_strings(text, starts, lengths))
    begun = np.cumsum([0, *(one.text.size for one in found)])
    ends = [one.ends + start for one, start in zip(found, begun, strict=False)]
    whole = [one.text for one in found]
    ids = TextIds(np.concatenate([np.empty(0, np.int64), *ends]), np.concatenate([np.empty(0, np.uint8), *whole]))
    check_text(ids, name)
    return ids
