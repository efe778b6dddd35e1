"""Names of the members of JSON objects: one that comes twice in an object is refused.

RFC 8259 leaves open what it means, and parsers take the last: whoever has put it there by mistake would get something
else than they wrote, and never know.
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.compiled import compiled
from app.core.errors import InvalidInput
from app.core.json_spans import string_end

_QUOTE, _BACKSLASH, _COMMA = b'"'[0], b"\\"[0], b","[0]
_LIST, _LIST_END, _OBJECT, _OBJECT_END = b"["[0], b"]"[0], b"{"[0], b"}"[0]
# Of the members of an object, and of objects in each other: no request has as many.
_MOST_MEMBERS, _MOST_OBJECTS = 256, 64
# Of lists and objects in each other: parsers refuse as many.
_DEEPEST = 2048
# Texts in which names may be escaped.
_SHORT = 1 << 16
_NONE, _TWICE, _ESCAPED, _TOO_MANY, _TOO_DEEP = 0, 1, 2, 3, 4
# Of FNV-1a, a hash that takes a multiplication for each character.
_BASIS, _PRIME = np.int64(1469598103934665603), np.int64(1099511628211)


def check_names(text: bytes | bytearray | memoryview) -> None:
    """Raise InvalidInput for the first name that comes twice in one object of a JSON text.

    So it is for an object with more than 256 members, or in more than 63 others. What is no JSON is left to a parser.
    """
    characters = np.frombuffer(text, np.uint8)
    characters.flags.writeable = False
    names = np.empty((_MOST_OBJECTS, _MOST_MEMBERS), np.int64)
    found, start, end, depth = _look(characters, np.empty(_DEEPEST, np.bool_), names)
    if found == _TWICE:
        _refuse(_decoded(text[start + 1 : end]), depth == 1)
    if found == _TOO_MANY:
        raise InvalidInput(f"an object has more than {_MOST_MEMBERS} members; no request has as many")
    if found == _TOO_DEEP:
        raise InvalidInput(f"more than {_MOST_OBJECTS} objects stand in each other; no request has as many")
    if found == _ESCAPED:
        if len(text) > _SHORT:
            name = _decoded(text[start + 1 : end][:80])
            raise InvalidInput(f'the name "{name}" is written with a backslash; write it as it is')
        _check_read(bytes(text))


def _refuse(name: str, is_outermost: bool) -> None:
    pointer = "/" + name[:80].replace("~", "~0").replace("/", "~1") if is_outermost else ""
    raise InvalidInput(f"the member {name[:80]!r} came twice in one object", pointer)


def _decoded(name: bytes | bytearray | memoryview) -> str:
    return bytes(name).decode(errors="replace")


def _check_read(text: bytes) -> None:
    """The same for a short text, as names that are escaped have to be read."""

    def check(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                _refuse(name, False)

    try:
        json.loads(text, object_pairs_hook=check)
    except (ValueError, RecursionError):  # it is left to a parser
        return


@compiled
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
            end = string_end(text, i)
            if awaits_name and end < len(text):
                found = _noted(text[i + 1 : end], names[n_objects - 1], counts[n_objects - 1])
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


@compiled
def _noted(name: NDArray[np.uint8], names: NDArray[np.int64], n: int) -> int:
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
        return _TOO_MANY
    names[n] = found
    return _NONE
