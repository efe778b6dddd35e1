"""JSON text looked at without parsing it and without the interpreter lock.

Where its lists and long strings lie; and whether the name of a member comes twice in an object, which is refused. RFC
8259 leaves open what that means, and parsers take the last: whoever has put it there by mistake would get something
else than they wrote, and never know.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.compiled import jit
from app.core.errors import InvalidInput

_QUOTE, _BACKSLASH, _COMMA, _SPACE = b'"'[0], b"\\"[0], b","[0], b" "[0]
_LIST, _LIST_END, _OBJECT, _OBJECT_END = b"["[0], b"]"[0], b"{"[0], b"}"[0]
# Lists that stand in no other list, and long strings: no request has as many.
_MOST_LISTS = 64
# What pydantic reads in a fifth of a second: it takes a microsecond and a hundred bytes for each list, and for each
# name of a member, of which options have few.
_MOST_BRACKETS, _MOST_REST = 1 << 17, 1 << 16
_UNBALANCED, _TOO_MANY_LISTS = -1, -2
# No string is longer.
_ANY = 1 << 62
# In the place of the number of items of a list.
_IS_STRING = -1
# Of the members of an object, and of objects in each other: no request has as many.
_MOST_MEMBERS, _MOST_OBJECTS = 256, 64
# Of lists and objects in each other: parsers refuse as many.
_DEEPEST = 2048
# Texts in which names may be escaped.
_SHORT = 1 << 16
_NONE, _TWICE, _ESCAPED, _TOO_MANY_MEMBERS, _TOO_DEEP = 0, 1, 2, 3, 4
# Of FNV-1a, a hash that takes a multiplication for each character.
_BASIS, _PRIME = np.int64(1469598103934665603), np.int64(1099511628211)


class Span(NamedTuple):
    """A list that stands in no other list, or a long string that stands in none."""

    bounds: list[int]
    """Places of its opening bracket, of commas between its items, and of its closing bracket; or of quotation marks."""
    n_items: int
    """How many items it has."""
    n_brackets: int
    """How many lists and objects begin in it."""
    n_commas: int
    """How many commas part the things in it."""

    @property
    def is_string(self) -> bool:
        """Whether it is a string."""
        return self.n_items == _IS_STRING


def spans(text: bytes | bytearray | memoryview, part_bytes: int, string_bytes: int = _ANY) -> Iterator[Span]:
    """The outermost lists of a JSON text, of items that commas part into `part_bytes` to twice as many.

    An item of more bytes stands alone. Strings of more than `string_bytes` that stand in no list are given likewise.
    Nothing but strings and brackets is looked at: whoever parses all parts, and the text around them, sees all else
    that is wrong.

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
"""Is told the bytes of options and the commas in their lists before they are parsed; raises TooLarge for too many."""


def check_options(text: bytes | bytearray, check_size: CheckSize) -> None:
    """Raise for the text of options, models of which would take too long or too much memory to read.

    Raises:
        InvalidInput: it is not JSON, has too much text around its lists, or too many lists and objects in these.
        TooLarge: `check_size` says so.
    """
    if len(text) <= _MOST_REST:
        return
    at, rest, lists = 0, b"", list(spans(text, len(text)))
    for one in lists:
        rest += text[at : one.bounds[0]]
        at = one.bounds[-1] + 1
    n_rest = len((rest + text[at:]).translate(None, b" \t\r\n"))
    if n_rest > _MOST_REST:
        raise InvalidInput(f"{n_rest} bytes came beside lists; {_MOST_REST} are the most that options have there")
    check_lists(len(text), lists, check_size)


def check_lists(nbytes: int, lists: Collection[Span], check_size: CheckSize) -> None:
    """Raise for options of so many bytes that have these lists; likewise."""
    check_size(nbytes, sum(one.n_commas for one in lists))
    n_brackets = sum(one.n_brackets for one in lists)
    if n_brackets > _MOST_BRACKETS:
        raise InvalidInput(f"{n_brackets} lists and objects came in lists; {_MOST_BRACKETS} are the most in options")


@jit
def _find(
    text: NDArray[np.uint8], part_bytes: int, string_bytes: int, lists: NDArray[np.int64], bounds: NDArray[np.int64]
) -> int:
    """Write of each list the number of its first bound, of its items, brackets and commas, and all bounds of all.

    Gives the number of lists.

    The last bound of a list is the one before the first of the next, which is written for one list more.
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
    """Where the list that starts here ends, the length of the text if nowhere; and the number of bounds.

    Its items are counted in `counts`, and the brackets that open in it, and commas.
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
            # An item that is long stands alone.
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
    """Where the string that starts here ends, the length of the text if nowhere."""
    i = start + 1
    while i < len(text) and text[i] != _QUOTE:
        i += 2 if text[i] == _BACKSLASH else 1
    return min(i, len(text))


def check_names(text: bytes | bytearray | memoryview) -> None:
    """Raise InvalidInput for the first name that comes twice in one object of a JSON text.

    So it is for an object with more than 256 members, or in more than 63 others. What is no JSON is left to a parser.
    """
    characters = np.frombuffer(text, np.uint8)
    characters.flags.writeable = False
    names = np.empty((_MOST_OBJECTS, _MOST_MEMBERS), np.int64)
    found, start, end, depth = _look(characters, np.empty(_DEEPEST, np.bool_), names)
    if found == _TWICE:
        _refuse(_decode(text[start + 1 : end]), depth == 1)
    if found == _TOO_MANY_MEMBERS:
        raise InvalidInput(f"an object has more than {_MOST_MEMBERS} members; no request has as many")
    if found == _TOO_DEEP:
        raise InvalidInput(f"more than {_MOST_OBJECTS} objects stand in each other; no request has as many")
    if found == _ESCAPED:
        if len(text) > _SHORT:
            name = _decode(text[start + 1 : end][:80])
            raise InvalidInput(f'the name "{name}" is written with a backslash; write it as it is')
        _check_read(bytes(text))


def _refuse(name: str, is_outermost: bool) -> None:
    pointer = "/" + name[:80].replace("~", "~0").replace("/", "~1") if is_outermost else ""
    raise InvalidInput(f"the member {name[:80]!r} came twice in one object", pointer)


def _decode(name: bytes | bytearray | memoryview) -> str:
    return bytes(name).decode(errors="replace")


def _check_read(text: bytes) -> None:
    """The same for a short text, as names that are escaped have to be read."""

    def check(pairs: list[tuple[str, Any]]) -> None:
        for name, n in Counter(name for name, _ in pairs).items():
            if n > 1:
                _refuse(name, False)

    with suppress(ValueError, RecursionError):  # it is left to a parser
        json.loads(text, object_pairs_hook=check)


@jit
def _look(text: NDArray[np.uint8], is_object: NDArray[np.bool_], names: NDArray[np.int64]) -> tuple[int, int, int, int]:
    """What is wrong with names, where that one begins and ends, and in how many lists and objects it stands.

    `is_object` tells of each list and object that is open what it is; `names` has the hashes of the names of each
    object that is open.
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
    """Write the hash of a name behind those of n others; gives what is wrong with it."""
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
