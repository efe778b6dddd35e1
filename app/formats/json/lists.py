"""JSON parsed some of it at a time: its long lists and strings stay text until they are wanted."""

import gc
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import orjson

from app.core.errors import InvalidInput
from app.core.json_text import Span, spans

PART_BYTES = 1 << 16
"""Text that is parsed at a time, some two milliseconds of the interpreter. Shorter bodies are parsed whole."""
# Items of lists are parsed whole up to this length.
_WHOLE_ITEM = 1 << 20
_BACKSLASH = b"\\"[0]
Text = bytes | bytearray | memoryview


class Part:
    """A long list or string of a JSON text."""

    def __init__(self, text: memoryview, span: Span) -> None:
        self._text, self.span = text, span

    @property
    def nbytes(self) -> int:
        """Length of its text, brackets or quotation marks included."""
        return self.span.bounds[-1] + 1 - self.span.bounds[0]

    def whole(self) -> Any:
        """It as a list or a string like any other."""
        return loads(self._text[self.span.bounds[0] : self.span.bounds[-1] + 1])


class LongList(Part):
    """A list of a JSON text. Whoever walks through it holds the items of one part at a time."""

    def __len__(self) -> int:
        return self.span.n_items

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.parts())

    def parts(self) -> Iterator[list[Any]]:
        """Its items, some at a time, none of which is an empty list unless it is the only one.

        Raises:
            InvalidInput: it is not JSON.
        """
        for before, end in pairwise(self.span.bounds):
            piece = self._text[before + 1 : end]
            # An item so long stands alone.
            items = [document(piece, _check_item)] if len(piece) > _WHOLE_ITEM else loads(b"".join((b"[", piece, b"]")))
            if not items and self.span.n_items:
                raise InvalidInput("the body is not JSON: an item of a list is missing")
            yield items


class LongText(Part):
    """A long string of a JSON text."""

    def characters(self) -> memoryview:
        """The string in UTF-8, without a copy unless it has something escaped; InvalidInput if it is not JSON."""
        inner = self._text[self.span.bounds[0] + 1 : self.span.bounds[-1]]
        has_escapes = (np.frombuffer(inner, np.uint8) == _BACKSLASH).any()
        return memoryview(self.whole().encode()) if has_escapes else inner


JsonList = list[Any] | LongList


def describe(value: Any) -> str:
    """The words of a refusal for a JSON value: its type, or the value itself if it is a number."""
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
    """The items of a list, some at a time, each time after the number of the first."""
    first = 0
    for part in [value] if isinstance(value, list) else value.parts():
        yield first, part
        first += len(part)


def document(text: Text, check_rest: Callable[[int], None]) -> Any:
    """The value of a JSON text, in which all lists that stand in no other list are `LongList`s.

    Long strings that stand in no list are `LongText`s. `check_rest` is told how long the text around all of these is
    before that is parsed, and may raise.

    Raises:
        InvalidInput: it is not JSON, as far as can be seen without parsing the lists.
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
    """The value of a JSON text; InvalidInput if it is not JSON."""
    gc.disable()  # JSON has no cycles, and looking for them takes longer than parsing
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"the body is not JSON: {error}") from error
    finally:
        gc.enable()


def _fill_in(value: Any, lists: Sequence[Part]) -> Any:
    """A value in which each list, which has a number, is that one of these lists and strings."""
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
