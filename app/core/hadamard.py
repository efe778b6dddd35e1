"""Random rotations of many vectors at once by Walsh–Hadamard matrices, in one compiled loop.

A tile holds `width` vectors of D entries, D a power of two: entry j of vector i is at j·width + i. Butterflies of all
vectors at once are then loops over contiguous memory, which compilers vectorise. Each entry goes through the same
operations in the same order for every width: the result for a vector does not depend, bit for bit, on the vectors
beside it.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Floats, row_blocks
from app.core.compiled import jit
from app.core.panels import side_by_side
from app.core.progress import Pause, between, no_pause
from app.core.tiles import VECTOR_BYTES, write_transposed

Bits = NDArray[np.uint8]

ROUNDS = 3
"""Number of products with a Hadamard matrix in one rotation."""
NOTHING_KEPT = -1
"""Number of no block, for the first call of `rotate`."""
# Largest width of a tile, and its largest size: it must stay in the cache.
_MOST_WIDTH, _TILE_BYTES = 32, 1 << 19


def padded_size(d: int) -> int:
    """Return the smallest power of two that is at least d."""
    return 1 << (d - 1).bit_length()


def gain(size: int) -> float:
    """Return the factor by which products with `ROUNDS` matrices H of ±1, in `size` dimensions, lengthen a vector."""
    return math.pow(size, ROUNDS / 2)


def tile_width(n: int, d: int, itemsize: int) -> int:
    """Return how many of n vectors of d entries are rotated together: a power of two."""
    fitting = max(1, _TILE_BYTES // (padded_size(d) * itemsize))
    return min(_MOST_WIDTH, fitting, padded_size(max(1, n)))


def tiles_of(rows: Floats) -> Floats:
    """Return the rows, (n, d), as tiles (tiles, D, width), padded with zeros behind each row and the last row."""
    n, d = rows.shape
    return side_by_side(rows, tile_width(n, d, rows.itemsize), padded_size(d))


def frequencies_of(signs: Bits, radii: Floats, scales: Floats, dtype: np.dtype[Any], pause: Pause = no_pause) -> Array:
    """Return frequencies, (n_frequencies, d), computed in float64: columns are rotated unit vectors, times `scales`."""
    d, s, lengths = len(scales), len(radii), radii.astype(np.float64) / gain(8 * signs.shape[2])
    frequencies = np.empty((s, d), dtype)
    for block in between(row_blocks(d, _MOST_WIDTH), pause):
        columns = np.empty((block.stop - block.start, s))
        tiles = tiles_of(np.eye(len(columns), d, block.start) * scales)
        rotate(tiles, np.empty_like(tiles[:1]), NOTHING_KEPT, signs, lengths, 0, s, columns)
        frequencies[:, block] = columns.T
    return frequencies


@jit
def rotate(
    tiles: Floats, kept: Floats, block_kept: int, signs: Bits, lengths: Floats, first: int, last: int, out: Floats
) -> int:
    """Write the products of n rows with rows `first` to `last` (excluded) of the rotations to the columns of `out`.

    Rows D·b to D·(b + 1) of the rotations are the matrix S H D₁ H D₂ H D₃. H is the Hadamard matrix of ±1, in
    Sylvester's order. D_i is diagonal with the signs of the bits of `signs`, (blocks, 3, D/8), the highest bit of a
    byte first, −1 for a set bit. S is diagonal with the entries of `lengths`, which include the division by `gain`.
    `tiles` holds the n rows as `tiles_of` returns them. `out` has n rows and is C-contiguous.

    The rotated tiles of the last block are left in `kept`, (tiles, D, width), and its number is returned. Passed as
    `block_kept` with the same tiles, it saves the rotation. If `kept` has room for one of several tiles, (1, D, width),
    nothing is kept.
    """
    _, size, width = tiles.shape
    for number in range(len(tiles)):
        rows = out[number * width : (number + 1) * width]
        work = kept[number % len(kept)].reshape(size * width)
        for block in range(first // size, (last + size - 1) // size):
            if block != block_kept:
                for j in range(size):
                    for i in range(width):
                        work[j * width + i] = tiles[number, j, i]
                for turn in range(ROUNDS - 1, -1, -1):
                    _transform(work, signs[block, turn], width)
            begin, end = max(first, block * size), min(last, (block + 1) * size)
            _write(work, (begin - block * size) * width, width, lengths[begin:end], rows, begin - first)
    return (last - 1) // size if len(kept) == len(tiles) else NOTHING_KEPT


@jit
def _write(tile: Floats, at: int, width: int, lengths: Floats, out: Floats, first: int) -> None:
    """Write the entries of a tile's vectors, times `lengths`, to the rows of `out`, from column `first` on."""
    square = VECTOR_BYTES // tile.itemsize
    for j in range(0, len(lengths), square):
        for i in range(0, len(out), square):
            if j + square <= len(lengths) and i + square <= len(out):
                write_transposed(tile, at + j * width + i, width, lengths, j, out, i, first + j)
            else:
                for m in range(i, min(i + square, len(out))):
                    for k in range(j, min(j + square, len(lengths))):
                        out[m, first + k] = tile[at + k * width + m] * lengths[k]


@jit
def _sign(bits: Bits, j: int, one: Any) -> Any:
    return -one if (bits[j >> 3] >> (7 - (j & 7))) & 1 else one


@jit
def _transform(tile: Floats, bits: Bits, width: int) -> None:
    """Flip the signs of the entries whose bit is set, then multiply by H, both in place.

    Uses radix-4 butterflies, and radix-2 ones at the end if D is not a power of four.
    """
    one, part = tile.dtype.type(1), len(tile) // 4
    quarter = part // width
    for j in range(quarter):
        by_a, by_b = _sign(bits, j, one), _sign(bits, j + quarter, one)
        by_c, by_d = _sign(bits, j + 2 * quarter, one), _sign(bits, j + 3 * quarter, one)
        start, end = j * width, (j + 1) * width
        a, b = tile[start:end], tile[part + start : part + end]
        c, d = tile[2 * part + start : 2 * part + end], tile[3 * part + start : 3 * part + end]
        for i in range(width):
            sum_1, difference_1 = by_a * a[i] + by_b * b[i], by_a * a[i] - by_b * b[i]
            sum_2, difference_2 = by_c * c[i] + by_d * d[i], by_c * c[i] - by_d * d[i]
            a[i], b[i] = sum_1 + sum_2, difference_1 + difference_2
            c[i], d[i] = sum_1 - sum_2, difference_1 - difference_2
    while part >= 4 * width:
        span = part // 4
        for start in range(0, len(tile), part):
            a, b = tile[start : start + span], tile[start + span : start + 2 * span]
            c, d = tile[start + 2 * span : start + 3 * span], tile[start + 3 * span : start + part]
            for i in range(span):
                sum_1, difference_1 = a[i] + b[i], a[i] - b[i]
                sum_2, difference_2 = c[i] + d[i], c[i] - d[i]
                a[i], b[i] = sum_1 + sum_2, difference_1 + difference_2
                c[i], d[i] = sum_1 - sum_2, difference_1 - difference_2
        part = span
    if part == 2 * width:
        for start in range(0, len(tile), part):
            a, b = tile[start : start + width], tile[start + width : start + part]
            for i in range(width):
                a[i], b[i] = a[i] + b[i], a[i] - b[i]
