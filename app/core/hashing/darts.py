"""The compiled inner loops of weighted minhash by darts, whose time grows with entries plus hashes.

On the plane of weight w > 0 and rank y > 0 of each coordinate darts land evenly, one on a unit of area, and each
carries one of n hashes. The sample (i*, t*) of a row and hash is the dart of the lowest rank with w < ũ_i* that carries
the hash; t* tells the darts of a coordinate apart. Two rows share it if the first dart below max(ũ, ṽ) is below
min(ũ, ṽ) too: with probability Σ min/Σ max. So darts of all hashes are drawn together, and only where they may be first
(Christiani, 2020, DartMinHash: Fast sketching for weighted sets).

The plane is cut into cells that follow the scale of entries, so that rows of any norm take the same time. Octave o
holds the weights in [2^o, 2^(o+1)); a dart's rank is told in the unit 2^−o of its own octave. Cells are

- of single octaves, with ranks from 9/32 on: layer l those from 9/32 + 2l to 9/32 + 2(l + 1),
- of blocks of 8 octaves, with ranks from 1/32 to 9/32,
- of blocks of 64 octaves, with ranks below 1/32.

So each has the area 2, and its number of darts the law of Poisson of mean 2. What an entry meets below a row's limit
are few cells: the octaves below its own, of which there is no end, are in a cell or two. They are looked at as long as
there is a dart in them more often than 2^−48 times. A cell that several rows meet is drawn once for all that come
together.
"""

from decimal import Decimal, localcontext
from math import e, factorial, log, log2

import numpy as np

from app.core.arrays import Matrix, Whole
from app.core.compiled import compiled
from app.core.hashing.parameter_stream import Word, Words, philox

STREAM_VERSION = 1
# Beside the version, what tells this stream from that of GCWS: "dart" in ASCII.
_STREAM = np.uint64(0x64617274 << 32 | STREAM_VERSION)

_KINDS = 3
_AREA = 2.0
_SHIFTS = np.array([0, 3, 6])
_FROM = np.array([9 / 32, 1 / 32, 0.0])
_HEIGHTS = _AREA / 2.0**_SHIFTS
# The name of a cell is its block of octaves, kind and layer in one number: so many bits are for the latter two.
_KIND_BITS, _LAYER_BITS = 2, 24
_RAREST = 2.0**-48
_POWERS = 2.0 ** np.arange(256)
_FARTHEST = 120
_LOG2_E = log2(e)
# Of 2^x = 1 + Σ (x ln 2)^k/k!, the last first: for x < 1 they leave 1e-19.
_TERMS = np.array([log(2) ** k / factorial(k) for k in range(19, 0, -1)])

# Cells that are drawn at a time: enough for vector units, and all in the cache.
_CELLS = 512
_VISITS = 4 * _CELLS
_SLOT_BITS = np.uint64(64 - 10)
_MIXER = np.uint64(0x9E3779B97F4A7C15)
_SPARE, _SPARE_BITS = np.uint64(12), np.uint64(0xFFF)
_UNIFORM_BITS = np.uint64(52)
_UNIFORM = np.uint64((1 << 52) - 1)


def _counts() -> Words:
    """Of 48 random bits, the numbers from which on a cell has more than 0, 1, … darts; to the same bits everywhere."""
    with localcontext(prec=50):
        chance = below = (-Decimal(int(_AREA))).exp()
        found = []
        while (least := round(below * 2**48)) < 2**48:
            found.append(least)
            chance *= Decimal(int(_AREA)) / len(found)
            below += chance
    return np.array(found, np.uint64)


_COUNTS = _counts()
_MOST = len(_COUNTS)


@compiled
def binary_weights(logs: Matrix, octaves: Whole, parts: Matrix) -> None:
    """Write e^logs, (n,), as 2^octave (1 + part), parts in [0, 1], to the same bits on every machine."""
    for k in range(logs.shape[0]):
        power = logs[k] * _LOG2_E
        whole = np.floor(power)
        octaves[k] = np.int64(whole)
        rest = power - whole
        series = 0.0
        for term in range(_TERMS.shape[0]):
            series = (series + _TERMS[term]) * rest
        parts[k] = min(series, 1.0)


@compiled
def scales(indptr: Whole, octaves: Whole, parts: Matrix, tops: Whole, sums: Matrix) -> None:
    """Of each row, its highest octave and the sum of its weights in units of 2^that; 0 of a row without entries."""
    for row in range(tops.shape[0]):
        top = octaves[indptr[row]] if indptr[row] < indptr[row + 1] else 0
        for entry in range(indptr[row], indptr[row + 1]):
            top = max(top, octaves[entry])
        total = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            down = top - octaves[entry]
            if down < _FARTHEST:
                total += (1.0 + parts[entry]) / _POWERS[down]
        tops[row], sums[row] = top, total


@compiled
def throw(
    key: tuple[Word, int],
    entries: Whole,
    rows: Whole,
    weights: tuple[Whole, Whole, Matrix],
    tops: Whole,
    ranks: tuple[Matrix, Matrix],
    lowest: Matrix,
    samples: Whole,
) -> None:
    """Bring `samples`, (all rows, n, 2), up to what they are with more darts of some entries.

    Args:
        key: the seed, and the number of the group of n hashes.
        entries: numbers of the entries; those of one coordinate stand together.
        rows: row of each of these.
        weights: coordinate, octave and part of each of all entries.
        tops: highest octave of each of all rows.
        ranks: of all rows, in units of 2^−top, up to which darts were looked at before, and up to which they are now.
        lowest: the rank of each sample, (all rows, n), in that unit; the latter of these where there is none yet.
        samples: coordinate and t of each, −1 where there is none yet.
    """
    coordinates, octaves, parts = weights
    cells, slots = np.empty((3, _CELLS + 1), np.int64), np.zeros(1 << 10, np.int64)
    visits = np.empty((3, _VISITS), np.int64)
    words = np.empty(4 * _CELLS, np.uint64), np.empty(2 * _CELLS * _MOST, np.uint64)
    more_of = np.empty((3, _CELLS * _MOST), np.int64)
    darts = np.empty((2, _CELLS * _MOST + 2), np.uint64), np.empty((2, _CELLS * _MOST + 2), np.int64), np.empty((2, _CELLS * _MOST + 2))
    n_cells = n_visits = 0
    for k in range(entries.shape[0]):
        i, top, row = coordinates[entries[k]], octaves[entries[k]], rows[k]
        down = tops[row] - top
        part = 1 / _POWERS[down] if down < _FARTHEST else 0.0
        for kind in range(_KINDS):
            block, scale = top >> _SHIFTS[kind], part
            while ranks[1][row] * scale > max(_FROM[kind], _RAREST):
                # Darts of several octaves are looked at again: those of the lower ones were past the limit.
                layer, end = 0, 1
                if kind == 0:
                    layer = max(0, np.int64(np.floor((ranks[0][row] * scale - _FROM[0]) / _AREA)))
                    end = np.int64(np.ceil((ranks[1][row] * scale - _FROM[0]) / _AREA))
                while layer < end:
                    if n_cells == _CELLS or n_visits == _VISITS:
                        _draw(key, cells[:, : n_cells + 1], words, more_of, darts, lowest.shape[1])
                        _apply(visits[:, :n_visits], cells, darts, entries, rows, weights, tops, lowest, samples)
                        n_cells = n_visits = 0
                    name = (block << _KIND_BITS | kind) << _LAYER_BITS | layer
                    slot = np.int64(np.uint64(name) * _MIXER >> _SLOT_BITS)
                    cell = slots[slot]
                    if cell >= n_cells or cells[0, cell] != i or cells[1, cell] != name:
                        cell = slots[slot] = n_cells
                        cells[0, cell], cells[1, cell] = i, name
                        n_cells += 1
                    if n_visits and visits[0, n_visits - 1] == k and visits[2, n_visits - 1] == cell:
                        visits[2, n_visits - 1] += 1
                    else:
                        visits[0, n_visits], visits[1, n_visits], visits[2, n_visits] = k, cell, cell + 1
                        n_visits += 1
                    layer += 1
                block -= 1
                scale = part / _POWERS[top - ((block + 1) << _SHIFTS[kind]) + 1]
    _draw(key, cells[:, : n_cells + 1], words, more_of, darts, lowest.shape[1])
    _apply(visits[:, :n_visits], cells, darts, entries, rows, weights, tops, lowest, samples)


@compiled
def _draw(
    key: tuple[Word, int], cells: Whole, words: tuple[Words, Words], more_of: Whole, darts: tuple[Words, Whole, Matrix], n_hashes: int
) -> None:
    """Draw the darts of cells, whose coordinates and names are given; write where those of each begin and end."""
    raw, whole, real = darts
    n = cells.shape[1] - 1
    coordinates, names, begins = cells[0], cells[1], cells[2]
    full, owners, blocks = more_of[0], more_of[1], more_of[2]
    first = words[0][: 4 * n].reshape(4, n)
    for k in range(n):
        first[0, k], first[1, k] = np.uint64(coordinates[k]), np.uint64(key[1])
        first[2, k], first[3, k] = np.uint64(names[k]), np.uint64(0)
    philox((key[0], _STREAM), 0, first)
    w0, w1, w2, w3 = first[0], first[1], first[2], first[3]
    begins[0] = 0
    for k in range(n):
        spare = ((w0[k] & _SPARE_BITS) << _SPARE | (w1[k] & _SPARE_BITS)) << _SPARE | (w2[k] & _SPARE_BITS)
        spare = spare << _SPARE | (w3[k] & _SPARE_BITS)
        count = 0
        for least in range(_MOST):
            count += spare >= _COUNTS[least]
        begins[k + 1] = count
    for k in range(n):
        begins[k + 1] += begins[k]
    # Each cell writes two darts, one or both of which a later cell writes over if it has fewer: without a branch, as
    # counts cannot be foreseen. So the darts beyond two come first.
    n_full = n_more = 0
    for k in range(n):
        full[n_full] = k
        n_full += begins[k + 1] - begins[k] > 2
    for number in range(n_full):
        k = full[number]
        for block in range(1, (begins[k + 1] - begins[k] + 1) >> 1):
            owners[n_more], blocks[n_more] = k, block
            n_more += 1
    more = words[1][: 4 * n_more].reshape(4, n_more)
    for k in range(n_more):
        more[0, k], more[1, k] = np.uint64(coordinates[owners[k]]), np.uint64(key[1])
        more[2, k], more[3, k] = np.uint64(names[owners[k]]), np.uint64(blocks[k])
    philox((key[0], _STREAM), 0, more)
    for k in range(n_more):
        _write(begins[owners[k]] + 2 * blocks[k], names[owners[k]], more[:, k], raw, whole)
    for k in range(n):
        _write(begins[k], names[k], first[:, k], raw, whole)
    of_hash = np.uint64(n_hashes)
    for dart in range(begins[n]):
        name = whole[0, dart]
        kind = name >> _LAYER_BITS & 3
        layer = name & ((1 << _LAYER_BITS) - 1)
        t = raw[0, dart] >> _SPARE
        both = (raw[1, dart] >> _SPARE) * of_hash
        octave_in = np.int64(t >> np.uint64(52 - _SHIFTS[kind]))
        whole[0, dart] = ((name >> (_LAYER_BITS + _KIND_BITS)) << _SHIFTS[kind]) + octave_in
        whole[1, dart] = np.int64(both >> _UNIFORM_BITS)
        real[0, dart] = (np.float64((t << np.uint64(_SHIFTS[kind])) & _UNIFORM) + 0.5) * 2.0**-52
        along = (np.float64(both & _UNIFORM) + 0.5) * 2.0**-52
        real[1, dart] = _FROM[kind] + _HEIGHTS[kind] * (along + np.float64(layer))


@compiled
def _write(at: int, name: int, of_block: Words, raw: Words, whole: Whole) -> None:
    """Write the words of the two darts of a block."""
    raw[0, at], raw[1, at], whole[0, at] = of_block[0], of_block[1], name
    raw[0, at + 1], raw[1, at + 1], whole[0, at + 1] = of_block[2], of_block[3], name


@compiled
def _apply(
    visits: Whole,
    cells: Whole,
    darts: tuple[Words, Whole, Matrix],
    entries: Whole,
    rows: Whole,
    weights: tuple[Whole, Whole, Matrix],
    tops: Whole,
    lowest: Matrix,
    samples: Whole,
) -> None:
    """Let the entries take the darts of the cells that they visit."""
    coordinates, octaves, parts = weights
    raw, whole, real = darts
    first = np.empty(_CELLS * _MOST, np.int64)
    for visit in range(visits.shape[1]):
        k, cell = visits[0, visit], visits[1, visit]
        row, entry = rows[k], entries[k]
        i, octave, part = coordinates[entry], octaves[entry], parts[entry]
        top = tops[row]
        of_row, found = lowest[row], samples[row]
        n_first = 0
        for dart in range(cells[2, cell], cells[2, visits[2, visit]]):
            of_dart, h = whole[0, dart], whole[1, dart]
            inside = (of_dart < octave) | ((of_dart == octave) & (real[0, dart] < part))
            rank = real[1, dart] * _POWERS[(top - of_dart) & 255] if inside else np.inf
            before = of_row[h]
            is_first = rank < before
            if rank == before:
                # Of darts with one rank the first coordinate, and there the first t: their order tells nothing.
                t = np.int64(raw[0, dart] >> _SPARE)
                is_first = i < found[h, 0] or (i == found[h, 0] and t < found[h, 1])
            of_row[h] = rank if is_first else before
            first[n_first] = dart
            n_first += is_first
        for number in range(n_first):
            dart = first[number]
            of_sample = found[whole[1, dart]]
            of_sample[0], of_sample[1] = i, np.int64(raw[0, dart] >> _SPARE)
