"""The compiled inner loops of weighted minhash by darts, whose time grows with entries plus hashes.

On the plane of weight w > 0 and rank y > 0 of each coordinate darts land evenly, one on a unit of area, and each
carries one of n hashes. The sample (i*, t*) of a row and hash is the dart of the lowest rank with w < ũ_i* that carries
the hash; t* tells the darts of a coordinate apart. Two rows share it if the first dart below max(ũ, ṽ) is below
min(ũ, ṽ) too: with probability Σ min/Σ max. So darts of all hashes are drawn together, and only where they may be first
(Christiani, 2020, DartMinHash: Fast sketching for weighted sets).

What an entry meets below a row's limit are few of the cells into which the plane is cut: the octaves below its own, of
which there is no end, are in a cell or two. They are looked at as long as there is a dart in them more often than 2^−48
times. A cell that several rows meet is drawn once for all that come together.
"""

from math import e, factorial, log, log2

import numpy as np

from app.core.arrays import Matrix, Whole
from app.core.compiled import compiled
from app.core.hashing.dart_cells import (
    AREA,
    CELLS,
    FROM,
    KIND_BITS,
    KINDS,
    LAYER_BITS,
    MOST,
    MOST_DARTS,
    SHIFT,
    Darts,
    draw,
)
from app.core.hashing.parameter_stream import Word, Words

_RAREST = 2.0**-48
_POWERS = 2.0 ** np.arange(256)
# What is added to the rank of a dart outside of a row, and inside.
_OUTSIDE = np.array([np.inf, 0.0])
_FARTHEST = 120
_LOG2_E = log2(e)
# Of 2^x = 1 + Σ (x ln 2)^k/k!, the last first: for x < 1 they leave 1e-19.
_TERMS = np.array([log(2) ** k / factorial(k) for k in range(19, 0, -1)])

# Visits of cells by entries that are kept at a time.
_VISITS = 2048
_SLOTS = 1 << 10
_TO_SLOT, _MIXER = np.uint64(64 - 10), np.uint64(0x9E3779B97F4A7C15)


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
        entries: numbers of the entries; those of one coordinate stand together, so that it is drawn once.
        rows: row of each of these.
        weights: coordinate, octave and part of each of all entries.
        tops: highest octave of each of all rows.
        ranks: of all rows, in units of 2^−top, up to which darts were looked at before, and up to which they are now.
        lowest: the rank of each sample, (all rows, n), in that unit; the latter of these where there is none yet.
        samples: coordinate and t of each, −1 where there is none yet.
    """
    coordinates, octaves = weights[0], weights[1]
    cells, slots, visits = (
        np.empty((3, CELLS + 1), np.int64),
        np.zeros(_SLOTS, np.int64),
        np.empty((3, _VISITS), np.int64),
    )
    darts = np.empty((2, MOST_DARTS), np.uint64), np.empty((2, MOST_DARTS), np.int64), np.empty((2, MOST_DARTS))
    n_cells = n_visits = 0
    for k in range(entries.shape[0]):
        i, top, row = coordinates[entries[k]], octaves[entries[k]], rows[k]
        down = tops[row] - top
        part = 1 / _POWERS[down] if down < _FARTHEST else 0.0
        for kind in range(KINDS):
            block, scale = top >> SHIFT * kind, part
            while ranks[1][row] * scale > max(FROM[kind], _RAREST):
                # Darts of several octaves are looked at again: those of the lower ones were past the limit.
                layer = _layer(ranks[0][row] * scale) if kind == 0 else 0
                while layer == 0 or (kind == 0 and FROM[0] + AREA * layer < ranks[1][row] * scale):
                    if n_cells == CELLS or n_visits == _VISITS:
                        draw(key, cells[:, : n_cells + 1], darts, lowest.shape[1])
                        _take(visits[:, :n_visits], cells[2], darts, entries, rows, weights, tops, lowest, samples)
                        n_cells = n_visits = 0
                    name = (block << KIND_BITS | kind) << LAYER_BITS | layer
                    slot = np.int64(np.uint64(name) * _MIXER >> _TO_SLOT)
                    cell = slots[slot]
                    # Where two cells have one slot, the later one takes it, and the other is drawn again.
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
                scale = part / _POWERS[top - ((block + 1) << SHIFT * kind) + 1]
    draw(key, cells[:, : n_cells + 1], darts, lowest.shape[1])
    _take(visits[:, :n_visits], cells[2], darts, entries, rows, weights, tops, lowest, samples)


@compiled
def _layer(rank: float) -> int:
    """The layer of single octaves in which a rank is; 0 below all."""
    return int(max(0.0, np.floor((rank - FROM[0]) / AREA)))


@compiled
def _take(
    visits: Whole,
    begins: Whole,
    darts: Darts,
    entries: Whole,
    rows: Whole,
    weights: tuple[Whole, Whole, Matrix],
    tops: Whole,
    lowest: Matrix,
    samples: Whole,
) -> None:
    """Let entries take darts of the cells that they meet: in each visit the entry, first cell and first beyond."""
    coordinates, octaves, parts = weights
    raw, whole, real = darts
    first = np.empty(begins.shape[0] * MOST, np.int64)
    for visit in range(visits.shape[1]):
        k = visits[0, visit]
        row, entry = rows[k], entries[k]
        i, octave, part, top = coordinates[entry], octaves[entry], parts[entry], tops[row]
        ranks, found = lowest[row], samples[row]
        n_first = 0
        for dart in range(begins[visits[1, visit]], begins[visits[2, visit]]):
            at, h = whole[0, dart], whole[1, dart]
            inside = (at < octave) | ((at == octave) & (real[0, dart] < part))
            rank = real[1, dart] * _POWERS[(top - at) & 255] + _OUTSIDE[np.int64(inside)]
            before = ranks[h]
            if rank == before:
                # Of darts with one rank the first coordinate, and there the first t: their order tells nothing.
                n_first = _keep(i, first[:n_first], raw, whole, found)
                t = np.int64(raw[0, dart])
                if i < found[h, 0] or (i == found[h, 0] and t < found[h, 1]):
                    found[h, 0], found[h, 1] = i, t
            # Without a branch, as it cannot be foreseen which dart is first.
            ranks[h] = rank if rank < before else before
            first[n_first] = dart
            n_first += rank < before
        _keep(i, first[:n_first], raw, whole, found)


@compiled
def _keep(i: int, first: Whole, raw: Words, whole: Whole, found: Whole) -> int:
    """Write those darts of coordinate i which were first when they came, and say how many are still to be written."""
    for dart in first:
        found[whole[1, dart], 0], found[whole[1, dart], 1] = i, np.int64(raw[0, dart])
    return 0
