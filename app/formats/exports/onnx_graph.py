"""ONNX graphs, built node by node. Numbers of fields are those of the format's own onnx.proto."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from app.core.arrays import Array, RowBlocks
from app.formats.exports.files import numbers

OPSET = 17
"""Version of the operators. Runtimes have known it since 2022; no operator used here has changed since."""
_IR_VERSION = 8
_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7, "bool": 9, "float64": 11}
_INT, _INTS = 2, 7
# Wire types of the fields of a message.
_NUMBER, _BYTES = 0, 2


class Message:
    """Protocol Buffers message, with its fields in the order in which they were added.

    The message is written in pieces: large arrays in it are neither held nor copied. A field is its number and wire
    type, then its value: a whole number in groups of seven bits, the lowest group first, or bytes after their count. A
    nested message is such bytes.
    """

    def __init__(self) -> None:
        self.nbytes = 0
        """Length of the message in bytes."""
        self._parts: list[bytes | Message | Array | RowBlocks] = []

    def number(self, field: int, *values: int) -> Self:
        """Add whole numbers, none below 0."""
        for value in values:
            self._add(_varint(field << 3 | _NUMBER) + _varint(value))
        return self

    def text(self, field: int, *values: str) -> Self:
        """Add strings, in UTF-8."""
        for value in values:
            encoded = value.encode()
            self._add(_start(field, len(encoded)) + encoded)
        return self

    def message(self, field: int, *values: "Message") -> Self:
        """Add nested messages, which must not change afterwards."""
        for value in values:
            self._add(_start(field, value.nbytes), value)
        return self

    def numbers(self, field: int, array: Array | RowBlocks) -> Self:
        """Add the numbers of an array, as bytes in C order, little-endian."""
        self._add(_start(field, array.nbytes), array)
        return self

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes of the message, one piece after the other."""
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
            elif isinstance(part, Message):
                yield from part.pieces()
            else:
                yield from numbers(part)

    def _add(self, *parts: "bytes | Message | Array | RowBlocks") -> None:
        self._parts += parts
        self.nbytes += sum(len(part) if isinstance(part, bytes) else part.nbytes for part in parts)


class Graph:
    """Graph of operators. Each added value has a name, by which later nodes take it as an input."""

    def __init__(self, name: str) -> None:
        self._graph = Message().text(2, name)
        self._numbers = count()

    def input(self, name: str, dtype: DTypeLike, columns: int) -> str:
        """Add an input with any number of rows."""
        self._graph.message(11, _value(name, dtype, columns))
        return name

    def output(self, name: str, value: str, dtype: DTypeLike, columns: int) -> None:
        """Make a value an output with this name."""
        self._graph.message(1, _node("Identity", [value], [name], {})).message(12, _value(name, dtype, columns))

    def constant(self, array: Array | RowBlocks) -> str:
        """Add a constant array; return its name."""
        name = f"array_{next(self._numbers)}"
        tensor = Message().number(1, *array.shape).number(2, _TYPES[array.dtype.name]).text(8, name)
        self._graph.message(5, tensor.numbers(9, array))
        return name

    def node(self, kind: str, *inputs: str, **attributes: int | Sequence[int]) -> str:
        """Add an operator; return the name of its only output."""
        name = f"{kind}_{next(self._numbers)}"
        self._graph.message(1, _node(kind, inputs, [name], attributes))
        return name

    def split(self, value: str, lengths: Sequence[int]) -> list[str]:
        """Split a matrix into groups of consecutive columns; return the names of the parts."""
        names = [f"Split_{next(self._numbers)}" for _ in lengths]
        inputs = [value, self.constant(np.array(lengths, np.int64))]
        self._graph.message(1, _node("Split", inputs, names, {"axis": 1}))
        return names

    def cast(self, value: str, dtype: DTypeLike) -> str:
        """Add a cast to another dtype; return the name of the result."""
        return self.node("Cast", value, to=_TYPES[np.dtype(dtype).name])

    def model(self, version: str, told: dict[str, str]) -> Message:
        """Return the whole file, with these keys and values as its metadata."""
        operators = Message().text(1, "").number(2, OPSET)
        properties = [Message().text(1, key).text(2, value) for key, value in told.items()]
        head = Message().number(1, _IR_VERSION).text(2, "bochner").text(3, version)
        return head.message(7, self._graph).message(8, operators).message(14, *properties)


def _node(kind: str, inputs: Sequence[str], outputs: Sequence[str], attributes: dict[str, Any]) -> Message:
    node = Message().text(1, *inputs).text(2, *outputs).text(3, outputs[0]).text(4, kind)
    return node.message(5, *(_attribute(*item) for item in attributes.items()))


def _attribute(name: str, value: int | Sequence[int]) -> Message:
    attribute = Message().text(1, name)
    if isinstance(value, int):
        return attribute.number(3, value).number(20, _INT)
    return attribute.number(8, *value).number(20, _INTS)


def _value(name: str, dtype: DTypeLike, columns: int) -> Message:
    """Return the description of a matrix with any number of rows."""
    shape = Message().message(1, Message().text(2, "rows"), Message().number(1, columns))
    tensor = Message().number(1, _TYPES[np.dtype(dtype).name]).message(2, shape)
    return Message().text(1, name).message(2, Message().message(1, tensor))


def _start(field: int, nbytes: int) -> bytes:
    """Return the key and the length that precede `nbytes` bytes."""
    return _varint(field << 3 | _BYTES) + _varint(nbytes)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
