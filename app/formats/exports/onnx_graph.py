"""Graphs of ONNX, put together node by node. Numbers of fields are those of the format's own onnx.proto."""

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from app.core.answers import RowBlocks
from app.core.arrays import Array
from app.formats.exports.protobuf import Message

OPSET = 17
"""Version of the operators. Runtimes know it since 2022; none of ours has become another since."""
_IR_VERSION = 8
_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7, "bool": 9, "float64": 11}
_INT, _INTS = 2, 7


class Graph:
    """A graph. What is added to it is named; the names are what further nodes take as their inputs."""

    def __init__(self, name: str) -> None:
        self._graph = Message().text(2, name)
        self._numbers = count()

    def input(self, name: str, dtype: DTypeLike, columns: int) -> str:
        """Add an input of any number of rows."""
        self._graph.message(11, _value(name, dtype, columns))
        return name

    def output(self, name: str, value: str, dtype: DTypeLike, columns: int) -> None:
        """Make a value an output of this name."""
        self._graph.message(1, _node("Identity", [value], [name], {})).message(12, _value(name, dtype, columns))

    def constant(self, array: Array | RowBlocks) -> str:
        """Add an array."""
        name = f"array_{next(self._numbers)}"
        tensor = Message().number(1, *array.shape).number(2, _TYPES[array.dtype.name]).text(8, name)
        self._graph.message(5, tensor.numbers(9, array))
        return name

    def node(self, kind: str, *inputs: str, **attributes: int | Sequence[int]) -> str:
        """Add an operator; gives the name of its only output."""
        name = f"{kind}_{next(self._numbers)}"
        self._graph.message(1, _node(kind, inputs, [name], attributes))
        return name

    def split(self, value: str, lengths: Sequence[int]) -> list[str]:
        """Add the cutting of a matrix into some columns after the other; gives the names of the parts."""
        names = [f"Split_{next(self._numbers)}" for _ in lengths]
        inputs = [value, self.constant(np.array(lengths, np.int64))]
        self._graph.message(1, _node("Split", inputs, names, {"axis": 1}))
        return names

    def cast(self, value: str, dtype: DTypeLike) -> str:
        """Add the change to another dtype."""
        return self.node("Cast", value, to=_TYPES[np.dtype(dtype).name])

    def model(self, version: str, told: dict[str, str]) -> Message:
        """The whole file; `told` stands in it for whoever asks for the metadata."""
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
    """A matrix of any number of rows."""
    shape = Message().message(1, Message().text(2, "rows"), Message().number(1, columns))
    tensor = Message().number(1, _TYPES[np.dtype(dtype).name]).message(2, shape)
    return Message().text(1, name).message(2, Message().message(1, tensor))
