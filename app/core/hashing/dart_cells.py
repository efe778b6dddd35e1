"""The cells in which darts lie, and the drawing of them: a frozen stream.

The plane of weight and rank is cut into cells that follow the scale of entries, so that rows of any norm take the same
time. Octave o holds the weights in [2^o, 2^(o+1)); a dart's rank is told in the unit 2^−o of its own octave. Cells are

- of single octaves, with ranks from 9/32 on: layer l those from 9/32 + 2l to 9/32 + 2(l + 1),
- of blocks of 8 octaves, with ranks from 1/32 to 9/32,
- of blocks of 64 octaves, with ranks below 1/32.

So each has the area 2, and its number of darts the law of Poisson of mean 2. A block of random words holds two darts,
and in the first block of a cell, what bits these leave tell how many it has: with two of three cells it is enough.
"""

from decimal import Decimal, localcontext

import numpy as np

from app.core.arrays import Matrix, Whole
from app.core.compiled import compiled
from app.core.hashing.parameter_stream import Word, Words, philox

STREAM_VERSION = 1
# Beside the version, what tells this stream from that of GCWS: "dart" in ASCII.
_STREAM = np.uint64(0x64617274 << 32 | STREAM_VERSION)

KINDS, AREA = 3, 2
# Blocks of octaves are of 2^(3·kind); of each kind the least rank, and how many ranks.
SHIFT = 3
FROM = np.array([9 / 32, 1 / 32, 0.0])
_HEIGHTS = np.array([2.0, 1 / 4, 1 / 32])
# The name of a cell is its block of octaves, kind and layer in one number: so many bits are for the latter two.
KIND_BITS, LAYER_BITS = 2, 24
# Cells that are drawn at a time: enough for vector units, and all in the cache.
CELLS = 512
_SPARE, _SPARE_BITS = np.uint64(12), np.uint64(0xFFF)
_UNIFORM_BITS = np.uint64(52)
_UNIFORM = np.uint64((1 << 52) - 1)


def _counts() -> Words:
    """Of 48 random bits, the numbers from which on a cell has more than 0, 1, … darts; to the same bits everywhere."""
    with localcontext(prec=50):
        chance = below = (-Decimal(AREA)).exp()
        found = []
        while (least := round(below * 2**48)) < 2**48:
            found.append(least)
            chance *= Decimal(AREA) / len(found)
            below += chance
    return np.array(found, np.uint64)


_COUNTS = _counts()
MOST = len(_COUNTS)
MOST_DARTS = MOST * CELLS + 2

Darts = tuple[Words, Whole, Matrix]
"""Of darts t and a second word, (2, n), octave and hash, (2, n), and place in the octave and rank, (2, n)."""


@compiled
def draw(key: tuple[Word, int], cells: Whole, darts: Darts, n_hashes: int) -> None:
    """Draw the darts of cells of given coordinates and names; write where those of each begin, and the last end."""
    raw, whole = darts[0], darts[1]
    n = cells.shape[1] - 1
    names, begins = cells[1], cells[2]
    blocks = np.empty(4 * n, np.uint64).reshape(4, n)
    for k in range(n):
        _count(key, cells, k, 0, blocks[:, k])
    philox((key[0], _STREAM), 0, blocks)
    begins[0] = 0
    for k in range(n):
        spare = np.uint64(0)
        for word in range(4):
            spare = spare << _SPARE | (blocks[word, k] & _SPARE_BITS)
        found = 0
        for least in range(MOST):
            found += spare >= _COUNTS[least]
        begins[k + 1] = found
    full = np.empty(n, np.int64)
    n_full = n_more = 0
    for k in range(n):
        full[n_full] = k
        n_full += begins[k + 1] > 2
        n_more += max(0, (begins[k + 1] - 1) >> 1)
        begins[k + 1] += begins[k]
    # Each cell writes two darts, and later ones write over those that it has not: without a branch, as counts cannot
    # be foreseen. So the darts beyond two come first.
    more, owners = np.empty(4 * n_more, np.uint64).reshape(4, n_more), np.empty((2, n_more), np.int64)
    place = 0
    for k in full[:n_full]:
        for number in range(1, (begins[k + 1] - begins[k] + 1) >> 1):
            owners[0, place], owners[1, place] = k, begins[k] + 2 * number
            _count(key, cells, k, number, more[:, place])
            place += 1
    philox((key[0], _STREAM), 0, more)
    for k in range(n_more):
        _write(more[:, k], owners[1, k], names[owners[0, k]], raw, whole)
    for k in range(n):
        _write(blocks[:, k], begins[k], names[k], raw, whole)
    _read(begins[n], darts, n_hashes)


@compiled
def _count(key: tuple[Word, int], cells: Whole, cell: int, number: int, counter: Words) -> None:
    """Write the counter of a block of random words of a cell."""
    counter[0], counter[1] = np.uint64(cells[0, cell]), np.uint64(key[1])
    counter[2], counter[3] = np.uint64(cells[1, cell]), np.uint64(number)


@compiled
def _write(block: Words, at: int, name: int, raw: Words, whole: Whole) -> None:
    """Write the two darts of a block, two words and the name of the cell each."""
    raw[0, at], raw[1, at], whole[0, at] = block[0], block[1], name
    raw[0, at + 1], raw[1, at + 1], whole[0, at + 1] = block[2], block[3], name


@compiled
def _read(n: int, darts: Darts, n_hashes: int) -> None:
    """Turn the words of n darts and the names of their cells into numbers."""
    raw, whole, real = darts
    t, second, octave, h, place, rank = raw[0], raw[1], whole[0], whole[1], real[0], real[1]
    n_all = np.uint64(n_hashes)
    for k in range(n):
        name = octave[k]
        kind, layer = name >> LAYER_BITS & 3, name & ((1 << LAYER_BITS) - 1)
        shift = SHIFT * kind
        t[k] >>= _SPARE
        # 52 bits times n: above the 52nd the hash, below it where in the cell the rank is.
        product = (second[k] >> _SPARE) * n_all
        octave[k] = (name >> (LAYER_BITS + KIND_BITS) << shift) + np.int64(t[k] >> np.uint64(52 - shift))
        h[k] = np.int64(product >> _UNIFORM_BITS)
        place[k] = (np.float64(np.int64(t[k] << np.uint64(shift) & _UNIFORM)) + 0.5) * 2.0**-52
        along = np.float64(layer) + (np.float64(np.int64(product & _UNIFORM)) + 0.5) * 2.0**-52
        rank[k] = FROM[kind] + _HEIGHTS[kind] * along
