"""The graph of a Fourier map. It does what the service does, in the same precision.

First the input of the map, in float64; then rows, phases and columns in the map's dtype. So a row has the features that
the service gives it, but for the last digits of its phases, which hang on the order in which products are added.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.core.answers import RowBlocks
from app.core.arrays import Array, row_blocks
from app.core.input import Input
from app.core.maps.terms import BaseSpec, Form
from app.core.panel_products import DEPTH
from app.formats.exports.onnx_graph import Graph
from app.formats.exports.rotation_graph import rotated

Arrays = Mapping[str, Array | RowBlocks]

# Of longer rows more terms are added at a time: a graph of thousands of operators is slow to open.
_MOST_PARTS = 256


def fourier_graph(spec: BaseSpec, arrays: Arrays) -> Graph:
    """The graph of a map of these arrays, those of `derived` among them.

    What the service refuses in rows it does not refuse: NaN, and what a number is too large for, come out as NaN.
    """
    graph = Graph("features")
    rows = _rows(graph, spec)
    if "radii" in arrays:
        phases = rotated(graph, rows, spec.input_dim, spec.numpy_dtype, arrays)
    else:
        phases = _products(graph, rows, graph.constant(arrays["frequencies"]), spec.input_dim)
    for name, columns, width in _columns(graph, spec, phases, arrays):
        graph.output(name, columns, spec.numpy_dtype, width)
    return graph


def _products(graph: Graph, rows: str, frequencies: str, input_dim: int) -> str:
    """Products of rows with frequencies, (n, n_frequencies), whose terms are added in the order of `Panels`.

    Runtimes add up to 128 terms one after the other as well, but more of them in other ways, which would differ by
    several spacings of a float32.
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
    """A value of a dtype in another one, which may be the same."""
    return value if dtype == of else graph.cast(value, dtype)


def _rows(graph: Graph, spec: BaseSpec) -> str:
    """The rows as phases are made of them, in the map's dtype."""
    dtype = spec.numpy_dtype
    if spec.input is None:
        rows = graph.input("vectors", dtype, spec.input_dim)
    else:
        wide = np.dtype(np.float64)
        rows = _cast(graph, _after_input(graph, spec.input, spec.input_dim), dtype, wide)
    return _unit_rows(graph, rows, dtype) if spec.kernel.compares_unit_rows else rows


def _after_input(graph: Graph, given: Input, input_dim: int) -> str:
    """Rows of float64 after the input of the map."""
    rows = graph.input("vectors", np.float64, input_dim)
    if given.missing != "refuse":
        rows = graph.node("Where", graph.node("IsNaN", rows), graph.constant(np.array(given.missing, np.float64)), rows)
    rows = graph.node("Sub", rows, graph.constant(np.array(given.center, np.float64)))
    rows = graph.node("Div", rows, graph.constant(np.array(given.scale, np.float64)))
    return _unit_rows(graph, rows, np.dtype(np.float64)) if given.unit_norm else rows


def _unit_rows(graph: Graph, rows: str, dtype: np.dtype[Any]) -> str:
    """Rows of a dtype scaled to unit L2 norm; a row that is all zero stays so.

    Divided by its largest entry first, a row has no squares that leave the range of the dtype.
    """
    top = graph.node("ReduceMax", graph.node("Abs", rows), axes=[1], keepdims=1)
    zero, one = (graph.constant(np.array(number, dtype)) for number in (0, 1))
    scaled = graph.node("Div", rows, graph.node("Where", graph.node("Equal", top, zero), one, top))
    # At least 1, but for a row that is all zero.
    return graph.node("Div", scaled, _norms(graph, scaled, dtype, least=1.0))


def _norms(graph: Graph, rows: str, dtype: np.dtype[Any], least: float = 0.0) -> str:
    """L2 norms of rows of a dtype, (n, 1), or this number where they are less; their squares are added in float64."""
    wide = _cast(graph, rows, np.dtype(np.float64), dtype)
    squares = graph.node("ReduceSum", graph.node("Mul", wide, wide), graph.constant(np.array([1])), keepdims=1)
    norms = graph.node("Sqrt", graph.node("Max", squares, graph.constant(np.array(least))))
    return _cast(graph, norms, dtype, np.dtype(np.float64))


def _columns(graph: Graph, spec: BaseSpec, phases: str, arrays: Arrays) -> list[tuple[str, str, int]]:
    """The outputs, each with its name and its number of columns."""
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
