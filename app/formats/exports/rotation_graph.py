"""The phases of a structured map in a graph: its Walsh–Hadamard matrices as products of small ones."""

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from app.core.answers import RowBlocks
from app.core.arrays import Array
from app.core.hadamard import ROUNDS, padded
from app.formats.exports.onnx_graph import Graph

# Binary logarithm of the largest factor: a product with a matrix of 64 × 64 is as fast as one with smaller ones.
_MOST_BITS = 6
# Up to so many frequencies have amplitudes so large that the rounding of two ways to add would show: they are rotated
# in float64.
_FEW = 32


def rotated(
    graph: Graph, rows: str, input_dim: int, dtype: np.dtype[Any], arrays: Mapping[str, Array | RowBlocks]
) -> str:
    """The phases, (n, n_frequencies), of rows (n, input_dim) of a dtype, as `rotate` makes them.

    Signs and matrices are in the graph as bytes, and become numbers when it is opened.
    """
    signs = arrays["signs"]
    if not isinstance(signs, np.ndarray):
        raise TypeError("signs are read whole")
    blocks, size, s = len(signs), padded(input_dim), arrays["lengths"].shape[0]
    inside = np.dtype(np.float64) if s <= _FEW else dtype
    found = graph.cast(graph.node("Mul", rows, graph.constant(arrays["scales"])), inside)
    if size > input_dim:
        found = graph.node("Pad", found, graph.constant(np.array([0, 0, 0, size - input_dim])))
    found = graph.node("Reshape", found, graph.constant(np.array([-1, 1, size])))
    factors = {side: graph.cast(graph.constant(_matrix(side)), inside) for side in _sides(size)}
    for turn in reversed(range(ROUNDS)):
        of_turn = 1 - 2 * np.unpackbits(signs[:, turn], axis=1).astype(np.int8)
        found = graph.node("Mul", found, graph.cast(graph.constant(of_turn), inside))
        found = _transformed(graph, found, blocks, size, factors)
    found = graph.node("Reshape", found, graph.constant(np.array([-1, blocks * size])))
    if s < blocks * size:
        bounds = (graph.constant(np.array([number])) for number in (0, s, 1))
        found = graph.node("Slice", found, *bounds)
    lengths = graph.cast(graph.constant(arrays["lengths"]), inside)
    return graph.cast(graph.node("Mul", found, lengths), dtype)


def _transformed(graph: Graph, found: str, blocks: int, size: int, factors: Mapping[int, str]) -> str:
    """Products of vectors, (n, blocks, size), with the Hadamard matrix, a factor of it after the other.

    The matrix is the Kronecker product of its factors: as an array with a side for each, a vector is multiplied along
    one side by one factor.
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
    """Powers of two whose product a power of two is, about equal, the larger ones first."""
    bits = size.bit_length() - 1
    parts = -(-bits // _MOST_BITS)
    return [1 << (bits // parts + (number < bits % parts)) for number in range(parts)]


def _matrix(side: int) -> Array:
    """The Hadamard matrix of ±1, in Sylvester's order."""
    two = np.array([[1, 1], [1, -1]], np.int8)
    found: Array = reduce(np.kron, [two] * (side.bit_length() - 1))
    return found
