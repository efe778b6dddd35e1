"""The ONNX format: a Fourier map as a graph of operators, with which any runtime computes its features.

The graph computes what the service computes, in the same precision: first the preprocessing (`input`) of the map, in
float64; then rows, phases and columns in the map's dtype. The features of a row equal those of the service except for
the last digits of its phases, which depend on the order in which products are added. The phases of a structured map are
its Walsh–Hadamard matrices, as products of small matrices.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import count
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import hadamard

from app.core.arrays import Array, RowBlocks, row_blocks
from app.core.errors import InvalidOption
from app.core.hadamard import ROUNDS, padded_size
from app.core.input import Input
from app.core.maps.terms import BaseSpec, Form, Gives, TakenMap
from app.core.panels import DEPTH
from app.formats.base import Encoded
from app.formats.exports.files import MapFile, numbers

OPSET = 17  # in the docstring of `Onnx`, too
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


# No Protocol Buffers library reads longer messages.
_MOST_BYTES = (1 << 31) - 1


class Onnx(MapFile):
    """Graph with the input `vectors` and the output `features` or, if the form is complex, `real` and `imag`.

    File:
        onnx: a graph of opset 17, for maps with frequencies. Its input `vectors`, (rows, input_dim), is in the
        map's dtype, or float64 where the map has an `input`. Its output is `features`, (rows, n_output); of the
        form complex there are two, `real` and `imag`, (rows, n_frequencies). Spec and digest are in its
        metadata.
    """

    media_type = "application/octet-stream"
    needs = frozenset({Gives.frequencies})

    def write(self, taken: TakenMap) -> Encoded:
        """Write the graph; raise InvalidOption for a map without frequencies, or for more bytes than ONNX allows."""
        if "amplitudes" not in taken.arrays:
            raise InvalidOption(
                f"onnx is for maps with frequencies, not for sampler {taken.spec.sampler.kind}; npz holds every map",
                "format",
            )
        model = fourier_graph(taken.spec, taken.arrays).model(version("bochner"), taken.told)
        if model.nbytes > _MOST_BYTES:
            raise InvalidOption(
                f"onnx takes up to {_MOST_BYTES} bytes, this map has {model.nbytes}; npz holds every map", "format"
            )
        return Encoded(model.pieces(), model.nbytes)


Arrays = Mapping[str, Array | RowBlocks]

# Most matrix products of one graph, as a graph of thousands of operators is slow to open. Longer rows get more terms
# per product.
_MOST_PARTS = 256


def fourier_graph(spec: BaseSpec, arrays: Arrays) -> Graph:
    """Return the graph of a map with these arrays, which include its `derived_arrays`.

    The graph does not refuse rows that the service refuses: NaN, and numbers too large for the computation, result in
    NaN.
    """
    graph = Graph("features")
    rows = _rows(graph, spec)
    if "radii" in arrays:
        phases = rotation_phases(graph, rows, spec.input_dim, spec.numpy_dtype, arrays)
    else:
        phases = _products(graph, rows, graph.constant(arrays["frequencies"]), spec.input_dim)
    for name, columns, width in _columns(graph, spec, phases, arrays):
        graph.output(name, columns, spec.numpy_dtype, width)
    return graph


def _products(graph: Graph, rows: str, frequencies: str, input_dim: int) -> str:
    """Add products of rows with frequencies, (n, n_frequencies), whose terms are added in the order of `Panels`.

    Runtimes also add up to 128 terms one after the other, but more terms in other orders, which would differ by several
    spacings of a float32.
    """
    if input_dim <= DEPTH:
        return graph.node("Gemm", rows, frequencies, transB=1)
    depth = DEPTH * -(-input_dim // (DEPTH * _MOST_PARTS))
    lengths = [block.stop - block.start for block in row_blocks(input_dim, depth)]
    parts = zip(graph.split(rows, lengths), graph.split(frequencies, lengths), strict=True)
    found = graph.node("Gemm", *next(parts), transB=1)
    for some, of_frequencies in parts:
        found = graph.node("Gemm", some, of_frequencies, found, transB=1)
    return found


def _cast(graph: Graph, value: str, dtype: np.dtype[Any], of: np.dtype[Any]) -> str:
    """Cast a value from dtype `of` to `dtype`, if the two differ."""
    return value if dtype == of else graph.cast(value, dtype)


def _rows(graph: Graph, spec: BaseSpec) -> str:
    """Add the rows from which phases are computed, in the map's dtype."""
    dtype = spec.numpy_dtype
    if spec.input is None:
        rows = graph.input("vectors", dtype, spec.input_dim)
    else:
        wide = np.dtype(np.float64)
        rows = _cast(graph, _after_input(graph, spec.input, spec.input_dim), dtype, wide)
    return _unit_rows(graph, rows, dtype) if spec.kernel.compares_unit_rows else rows


def _after_input(graph: Graph, given: Input, input_dim: int) -> str:
    """Add float64 rows after the preprocessing (`input`) of the map."""
    came = graph.input("vectors", np.float64, input_dim)
    rows = graph.node("Sub", came, graph.constant(np.array(given.center, np.float64)))
    rows = graph.node("Div", rows, graph.constant(np.array(given.scale, np.float64)))
    if given.missing != "refuse":
        missing = np.array(given.missing, np.float64)
        if given.fill == "before":
            missing = (missing - np.array(given.center)) / np.array(given.scale)
        rows = graph.node("Where", graph.node("IsNaN", came), graph.constant(missing), rows)
    return _unit_rows(graph, rows, np.dtype(np.float64)) if given.unit_norm else rows


def _unit_rows(graph: Graph, rows: str, dtype: np.dtype[Any]) -> str:
    """Scale rows of a dtype to unit L2 norm; rows that are all zero stay zero.

    Each row is first divided by its largest entry, so that no square leaves the range of the dtype.
    """
    top = graph.node("ReduceMax", graph.node("Abs", rows), axes=[1], keepdims=1)
    zero, one = (graph.constant(np.array(number, dtype)) for number in (0, 1))
    scaled = graph.node("Div", rows, graph.node("Where", graph.node("Equal", top, zero), one, top))
    # The norms are at least 1, except for rows that are all zero.
    return graph.node("Div", scaled, _norms(graph, scaled, dtype, least=1.0))


def _norms(graph: Graph, rows: str, dtype: np.dtype[Any], least: float = 0.0) -> str:
    """Return L2 norms of rows, (n, 1), but at least `least`; squares are added in float64."""
    wide = _cast(graph, rows, np.dtype(np.float64), dtype)
    squares = graph.node("ReduceSum", graph.node("Mul", wide, wide), graph.constant(np.array([1])), keepdims=1)
    norms = graph.node("Sqrt", graph.node("Max", squares, graph.constant(np.array(least))))
    return _cast(graph, norms, dtype, np.dtype(np.float64))


def _columns(graph: Graph, spec: BaseSpec, phases: str, arrays: Arrays) -> list[tuple[str, str, int]]:
    """Return the name, the value and the number of columns of each output."""
    amplitudes, s = graph.constant(arrays["amplitudes"]), arrays["amplitudes"].shape[0]

    def waves(kind: str, phases: str = phases) -> str:
        return graph.node("Mul", graph.node(kind, phases), amplitudes)

    if spec.form is Form.complex:
        return [("real", waves("Cos"), s), ("imag", graph.node("Neg", waves("Sin")), s)]
    if spec.form is Form.cos_sin:
        return [("features", graph.node("Concat", waves("Cos"), waves("Sin"), axis=1), 2 * s)]
    cosines = waves("Cos", graph.node("Add", phases, graph.constant(arrays["offsets"])))
    if spec.normalize:
        cosines = graph.node("Div", cosines, _norms(graph, cosines, spec.numpy_dtype))
    return [("features", cosines, s)]


# Binary logarithm of the largest factor: a product with a 64 × 64 matrix is as fast as products with smaller ones.
_MOST_BITS = 6
# With up to this many frequencies, amplitudes are so large that the rounding of another order of addition would show.
# Such maps are rotated in float64.
_FEW = 32


def rotation_phases(
    graph: Graph, rows: str, input_dim: int, dtype: np.dtype[Any], arrays: Mapping[str, Array | RowBlocks]
) -> str:
    """Add the phases, (n, n_frequencies), of rows (n, input_dim) of a dtype, as `rotate` computes them.

    Signs and matrices are stored in the graph as bytes, and become numbers when the graph is opened.
    """
    signs = arrays["signs"]
    if not isinstance(signs, np.ndarray):
        raise TypeError("signs are read whole")
    blocks, size, s = len(signs), padded_size(input_dim), arrays["lengths"].shape[0]
    inside = np.dtype(np.float64) if s <= _FEW else dtype
    found = graph.cast(graph.node("Mul", rows, graph.constant(arrays["scales"])), inside)
    if size > input_dim:
        found = graph.node("Pad", found, graph.constant(np.array([0, 0, 0, size - input_dim])))
    found = graph.node("Reshape", found, graph.constant(np.array([-1, 1, size])))
    factors = {side: graph.cast(graph.constant(hadamard(side, np.int8)), inside) for side in _sides(size)}
    for turn in reversed(range(ROUNDS)):
        of_turn = 1 - 2 * np.unpackbits(signs[:, turn], axis=1).astype(np.int8)
        found = graph.node("Mul", found, graph.cast(graph.constant(of_turn), inside))
        found = _hadamard_products(graph, found, blocks, size, factors)
    found = graph.node("Reshape", found, graph.constant(np.array([-1, blocks * size])))
    if s < blocks * size:
        bounds = (graph.constant(np.array([number])) for number in (0, s, 1))
        found = graph.node("Slice", found, *bounds)
    lengths = graph.cast(graph.constant(arrays["lengths"]), inside)
    return graph.cast(graph.node("Mul", found, lengths), dtype)


def _hadamard_products(graph: Graph, found: str, blocks: int, size: int, factors: Mapping[int, str]) -> str:
    """Multiply vectors, (n, blocks, size), by the Hadamard matrix, one of its factors after the other.

    The matrix is the Kronecker product of its factors: a vector is reshaped to an array with one axis per factor, and
    each factor multiplies along its axis.
    """
    right = size
    for side in _sides(size):
        right //= side
        if right > 1:
            found = graph.node("Reshape", found, graph.constant(np.array([-1, side, right])))
            found = graph.node("MatMul", factors[side], found)
        else:
            found = graph.node("Reshape", found, graph.constant(np.array([-1, side])))
            found = graph.node("MatMul", found, factors[side])
    return graph.node("Reshape", found, graph.constant(np.array([-1, blocks, size])))


def _sides(size: int) -> list[int]:
    """Return powers of two of about equal size whose product is `size`, a power of two; larger ones first."""
    bits = size.bit_length() - 1
    parts = -(-bits // _MOST_BITS)
    return [1 << (bits // parts + (number < bits % parts)) for number in range(parts)]
