"""Incremental JSON parser: long lists and strings stay text until they are needed."""

import gc
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import orjson

from app.core.errors import InvalidInput
from app.core.json_text import Span, spans

PART_BYTES = 1 << 16
"""Bytes of text parsed at a time, in some two milliseconds of the interpreter. Shorter bodies are parsed whole."""
# Items of lists up to this length in bytes are parsed whole.
_WHOLE_ITEM = 1 << 20
_BACKSLASH = b"\\"[0]
Text = bytes | bytearray | memoryview


class Part:
    """Long list or string in a JSON text."""

    def __init__(self, text: memoryview, span: Span) -> None:
        self._text, self.span = text, span

    @property
    def nbytes(self) -> int:
        """Length of the text, including brackets or quotation marks."""
        return self.span.bounds[-1] + 1 - self.span.bounds[0]

    def whole(self) -> Any:
        """Return the parsed list or string."""
        return loads(self._text[self.span.bounds[0] : self.span.bounds[-1] + 1])


class LongList(Part):
    """List in a JSON text. Iteration holds the items of one part at a time in memory."""

    def __len__(self) -> int:
        return self.span.n_items

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.parts())

    def parts(self) -> Iterator[list[Any]]:
        """Yield the items as consecutive lists; none of these is empty unless the whole list is.

        Raises:
            InvalidInput: the text is not JSON.
        """
        for before, end in pairwise(self.span.bounds):
            piece = self._text[before + 1 : end]
            # A part this long is a single item.
            items = [document(piece, _check_item)] if len(piece) > _WHOLE_ITEM else loads(b"".join((b"[", piece, b"]")))
            if not items and self.span.n_items:
                raise InvalidInput("the body is not JSON: an item of a list is missing")
            yield items


class LongText(Part):
    """Long string in a JSON text."""

    def characters(self) -> memoryview:
        """Return the string in UTF-8, copied only if it contains escapes; raise InvalidInput if it is not JSON."""
        inner = self._text[self.span.bounds[0] + 1 : self.span.bounds[-1]]
        has_escapes = (np.frombuffer(inner, np.uint8) == _BACKSLASH).any()
        return memoryview(self.whole().encode()) if has_escapes else inner


JsonList = list[Any] | LongList


def describe(value: Any) -> str:
    """Describe a JSON value for an error message: by its type, or by its value if it is a number, boolean or null."""
    if isinstance(value, bool):
        return str(value).lower()
    kinds = {dict: "an object", list: "a list", LongList: "a list", str: "a string", LongText: "a string"}
    if value is None:
        return "null"
    return kinds.get(type(value)) or f"the number {value}"


def is_list(value: Any) -> bool:
    """Whether a JSON value is a list."""
    return isinstance(value, list | LongList)


def parts_of(value: JsonList) -> Iterator[tuple[int, list[Any]]]:
    """Yield the items of a list, part by part, each part after the index of its first item."""
    first = 0
    for part in [value] if isinstance(value, list) else value.parts():
        yield first, part
        first += len(part)


def document(text: Text, check_rest: Callable[[int], None]) -> Any:
    """Return the value of a JSON text, in which each outermost list is a `LongList`.

    Long strings outside lists are `LongText`s. `check_rest` receives the length of the text around all of these before
    that text is parsed, and may raise.

    Raises:
        InvalidInput: the text is not JSON, as far as can be seen without parsing the lists.
    """
    whole, at, rest = memoryview(text), 0, list[Text]()
    found: list[Part] = []
    for number, span in enumerate(spans(text, PART_BYTES, PART_BYTES)):
        found.append(LongText(whole, span) if span.is_string else LongList(whole, span))
        rest += [whole[at : span.bounds[0]], b"[%d]" % number]
        at = span.bounds[-1] + 1
    check_rest(len(whole) - sum(one.nbytes for one in found))
    return _fill_in(loads(b"".join([*rest, whole[at:]])), found)


def loads(text: Text) -> Any:
    """Return the value of a JSON text; raise InvalidInput if it is not JSON."""
    gc.disable()  # JSON has no cycles, and the search for cycles takes longer than parsing
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"the body is not JSON: {error}") from error
    finally:
        gc.enable()


def _fill_in(value: Any, lists: Sequence[Part]) -> Any:
    """Replace each list, which holds a single index, by the long list or string at that index; return the value."""
    if isinstance(value, list):
        return lists[value[0]]
    objects = [value] if isinstance(value, dict) else []
    while objects:
        members = objects.pop()
        for name, member in members.items():
            if isinstance(member, dict):
                objects.append(member)
            elif isinstance(member, list):
                members[name] = lists[member[0]]
    return value


def _check_item(nbytes: int) -> None:
    if nbytes > _WHOLE_ITEM:
        raise InvalidInput(f"an item of a list has {nbytes} bytes beside the lists in it; {_WHOLE_ITEM} are the most")
