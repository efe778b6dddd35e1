"""Scans of JSON text without parsing it, outside the interpreter lock.

They find the outermost lists and long strings, and member names that occur twice in one object, which is an error here.
RFC 8259 does not say what duplicate names mean, and parsers keep the last. A client that sends one by mistake would get
another result than it asked for, without notice.
"""

from collections.abc import Callable, Collection, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.compiled import jit
from app.core.errors import InvalidInput

_QUOTE, _BACKSLASH, _COMMA, _SPACE = b'"'[0], b"\\"[0], b","[0], b" "[0]
_LIST, _LIST_END, _OBJECT, _OBJECT_END = b"["[0], b"]"[0], b"{"[0], b"}"[0]
# Most lists outside all other lists, and long strings, in a body: no request has as many.
_MOST_LISTS = 64
# Most brackets inside lists, and most bytes outside lists: pydantic reads as many in a fifth of a second. It takes a
# microsecond and a hundred bytes for each list, and for each member name, of which options have few.
_MOST_BRACKETS, _MOST_REST = 1 << 17, 1 << 16
_UNBALANCED, _TOO_MANY_LISTS = -1, -2
# Length that no string reaches.
_ANY = 1 << 62
# Stored instead of the number of items if the span is a string.
_IS_STRING = -1
# Most members of an object, and most objects nested in each other: no request has as many.
_MOST_MEMBERS, _MOST_OBJECTS = 256, 64
# Most lists and objects nested in each other: parsers refuse as many.
_DEEPEST = 2048
_NONE, _TWICE, _ESCAPED, _TOO_MANY_MEMBERS, _TOO_DEEP = 0, 1, 2, 3, 4
# Constants of FNV-1a, a hash that takes one multiplication per character.
_BASIS, _PRIME = np.int64(1469598103934665603), np.int64(1099511628211)


class Span(NamedTuple):
    """Outermost list of a JSON text, or a long string outside all lists."""

    bounds: list[int]
    """Positions of the opening bracket, the commas between parts and the closing bracket; or of the quotation marks."""
    n_items: int
    """Number of items of the list."""
    n_brackets: int
    """Number of lists and objects that begin inside."""
    n_commas: int
    """Number of commas inside, at all depths."""

    @property
    def is_string(self) -> bool:
        """Whether the span is a string."""
        return self.n_items == _IS_STRING


def spans(text: bytes | bytearray | memoryview, part_bytes: int, string_bytes: int = _ANY) -> Iterator[Span]:
    """Yield the outermost lists of a JSON text, divided at commas into parts of `part_bytes` to twice as many bytes.

    A longer item is a part of its own. Strings of more than `string_bytes` outside all lists are yielded too. Only
    strings and brackets are examined; all other errors are found when the parts, and the text around them, are parsed.

    Raises:
        InvalidInput: brackets do not match, a string does not end, or there are more than 64 lists and long strings.
    """
    characters = np.frombuffer(text, np.uint8)
    characters.flags.writeable = False
    lists = np.empty((_MOST_LISTS + 1, 4), np.int64)  # of each its first bound, its items, brackets and commas
    bounds = np.empty(2 * (len(characters) // part_bytes) + 4 * _MOST_LISTS, np.int64)
    n = _find(characters, part_bytes, string_bytes, lists, bounds)
    if n == _TOO_MANY_LISTS:
        raise InvalidInput(f"the body has more than {_MOST_LISTS} lists that stand in no other, and long strings")
    if n == _UNBALANCED:
        raise InvalidInput("the body is not JSON: a bracket or a quotation mark is missing")
    for (first, *counts), (end, *_) in pairwise(lists[: n + 1].tolist()):
        yield Span(bounds[first:end].tolist(), *counts)


CheckSize = Callable[[int, int], None]
"""Function that receives the bytes of options and the commas in their lists before parsing; may raise TooLarge."""


def check_options(text: bytes | bytearray, check_size: CheckSize, most_brackets: int = _MOST_BRACKETS) -> None:
    """Raise if reading the text of options as models would take too much time or memory.

    Raises:
        InvalidInput: the text is not JSON, or has too many bytes outside its lists, or too many lists and objects
            inside them.
        TooLarge: raised by `check_size`.
    """
    if len(text) <= _MOST_REST:
        return
    at, rest, lists = 0, b"", list(spans(text, len(text)))
    for one in lists:
        rest += text[at : one.bounds[0]]
        at = one.bounds[-1] + 1
    n_rest = len((rest + text[at:]).translate(None, b" \t\r\n"))
    if n_rest > _MOST_REST:
        raise InvalidInput(f"expected up to {_MOST_REST} bytes beside lists in options, got {n_rest}")
    check_lists(len(text), lists, check_size, most_brackets)


def check_lists(
    nbytes: int, lists: Collection[Span], check_size: CheckSize, most_brackets: int = _MOST_BRACKETS
) -> None:
    """Raise as `check_options` does, for options of `nbytes` bytes with these lists."""
    check_size(nbytes, sum(one.n_commas for one in lists))
    n_brackets = sum(one.n_brackets for one in lists)
    if n_brackets > most_brackets:
        raise InvalidInput(f"expected up to {most_brackets} lists and objects in lists of options, got {n_brackets}")


@jit
def _find(
    text: NDArray[np.uint8], part_bytes: int, string_bytes: int, lists: NDArray[np.int64], bounds: NDArray[np.int64]
) -> int:
    """Return the number of spans, whose counts are written to `lists` and whose bounds are written to `bounds`.

    A row of `lists` has the index of the span's first bound, and its numbers of items, brackets and commas. The bounds
    of a span end where those of the next begin, so that one extra row holds the end of the last. Return a negative
    error code if brackets do not match or there are too many spans.
    """
    n_lists, n_bounds, depth, i = 0, 0, 0, 0
    while i < len(text):
        if text[i] == _QUOTE:
            start, i = i, _string_end(text, i)
            if i - start > string_bytes and i < len(text):
                if n_lists == len(lists) - 1:
                    return _TOO_MANY_LISTS
                lists[n_lists, 0], lists[n_lists, 1] = n_bounds, _IS_STRING
                lists[n_lists, 2] = lists[n_lists, 3] = 0
                bounds[n_bounds], bounds[n_bounds + 1] = start, i
                n_bounds += 2
                n_lists += 1
        elif text[i] == _LIST:
            if n_lists == len(lists) - 1:
                return _TOO_MANY_LISTS
            lists[n_lists, 0] = n_bounds
            i, n_bounds = _list_end(text, i, part_bytes, bounds, n_bounds, lists[n_lists, 1:])
            n_lists += 1
        elif text[i] == _OBJECT:
            depth += 1
        elif text[i] == _OBJECT_END:
            depth -= 1
        i += 1
    lists[n_lists, 0] = n_bounds
    return n_lists if depth == 0 and i == len(text) else _UNBALANCED


@jit
def _list_end(
    text: NDArray[np.uint8],
    start: int,
    part_bytes: int,
    bounds: NDArray[np.int64],
    n_bounds: int,
    counts: NDArray[np.int64],
) -> tuple[int, int]:
    """Return the end of the list that begins at `start`, and the number of bounds written so far.

    The end is the length of the text if the list does not end. Write the list's numbers of items, of brackets that open
    in it, and of commas to `counts`.
    """
    depth, filled, i = 0, 0, start + 1
    counts[0] = counts[1] = counts[2] = 0
    last_bound, last_comma = start, start
    bounds[n_bounds] = start
    n_bounds += 1
    while i < len(text):
        character = text[i]
        counts[2] += character == _COMMA
        if character == _QUOTE:
            i = _string_end(text, i)
        elif character in (_LIST, _OBJECT):
            depth += 1
            counts[1] += 1
        elif character in (_LIST_END, _OBJECT_END):
            depth -= 1
        if depth < 0 or (depth == 0 and character == _COMMA):
            counts[0] += 1
            # A long item is a part of its own.
            if i - last_comma > part_bytes and last_comma > last_bound:
                bounds[n_bounds] = last_bound = last_comma
                n_bounds += 1
            if depth < 0 or i - last_bound > part_bytes:
                bounds[n_bounds] = last_bound = i
                n_bounds += 1
            last_comma = i
        if depth < 0:
            counts[0] *= filled
            return i if character == _LIST_END else len(text), n_bounds
        if character > _SPACE:
            filled = 1
        i += 1
    return len(text), n_bounds


@jit
def _string_end(text: NDArray[np.uint8], start: int) -> int:
    """Return the end of the string that begins at `start`, or the length of the text if it has no end."""
    i = start + 1
    while i < len(text) and text[i] != _QUOTE:
        i += 2 if text[i] == _BACKSLASH else 1
    return min(i, len(text))


def check_names(text: bytes | bytearray | memoryview) -> None:
    """Raise InvalidInput for the first name that occurs twice in one object of a JSON text.

    Also raise it for an object with more than 256 members, or nested in more than 63 others. Text that is not JSON is
    left to the parser.
    """
    characters = np.frombuffer(text, np.uint8)
    characters.flags.writeable = False
    names = np.empty((_MOST_OBJECTS, _MOST_MEMBERS), np.int64)
    found, start, end, depth = _look(characters, np.empty(_DEEPEST, np.bool_), names)
    if found == _TOO_MANY_MEMBERS:
        raise InvalidInput(f"an object has more than {_MOST_MEMBERS} members; no request has as many")
    if found == _TOO_DEEP:
        raise InvalidInput(f"more than {_MOST_OBJECTS} objects stand in each other; no request has as many")
    name = bytes(text[start + 1 : end]).decode(errors="replace")[:80]
    if found == _TWICE:
        pointer = "/" + name.replace("~", "~0").replace("/", "~1") if depth == 1 else ""
        raise InvalidInput(f"the member {name!r} came twice in one object", pointer)
    if found == _ESCAPED:
        raise InvalidInput(f'the name "{name}" is written with a backslash; write it as it is')


@jit
def _look(text: NDArray[np.uint8], is_object: NDArray[np.bool_], names: NDArray[np.int64]) -> tuple[int, int, int, int]:
    """Return an error code, where the offending name begins and ends, and how many lists and objects enclose it.

    `is_object` holds, for each open list or object, whether it is an object; `names` holds the hashes of the names of
    each open object.
    """
    counts = np.zeros(len(names), np.int64)
    depth, n_objects, awaits_name, i = 0, 0, False, 0
    while i < len(text):
        character = text[i]
        if character == _QUOTE:
            end = _string_end(text, i)
            if awaits_name and end < len(text):
                found = _record_name(text[i + 1 : end], names[n_objects - 1], counts[n_objects - 1])
                if found != _NONE:
                    return found, i, end, depth
                counts[n_objects - 1] += 1
                awaits_name = False
            i = end
        elif character in (_LIST, _OBJECT):
            awaits_name = character == _OBJECT
            if depth == len(is_object) or (awaits_name and n_objects == len(names)):
                return _TOO_DEEP if awaits_name else _NONE, 0, 0, 0
            is_object[depth] = awaits_name
            depth += 1
            if awaits_name:
                counts[n_objects] = 0
                n_objects += 1
        elif character in (_LIST_END, _OBJECT_END) and depth > 0:
            depth -= 1
            n_objects -= is_object[depth]
            awaits_name = False
        elif character == _COMMA:
            awaits_name = depth > 0 and is_object[depth - 1]
        i += 1
    return _NONE, 0, 0, 0


@jit
def _record_name(name: NDArray[np.uint8], names: NDArray[np.int64], n: int) -> int:
    """Append the hash of a name to those of n others, and return an error code, `_NONE` if there is no error."""
    found = _BASIS
    for character in name:
        if character == _BACKSLASH:
            return _ESCAPED
        found = (found ^ np.int64(character)) * _PRIME
    for j in range(n):
        if names[j] == found:
            return _TWICE
    if n == len(names):
        return _TOO_MANY_MEMBERS
    names[n] = found
    return _NONE
