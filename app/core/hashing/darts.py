"""The compiled inner loops of weighted minhash by darts, whose time grows with entries plus hashes.

On the plane of weight w > 0 and rank y > 0 of each coordinate darts land evenly, one on a unit of area, and each
carries one of n hashes. The sample (i*, t*) of a row and hash is the dart of the lowest rank with w < ũ_i* that carries
the hash; t* tells the darts of a coordinate apart. Two rows share it if the first dart below max(ũ, ṽ) is below
min(ũ, ṽ) too: with probability Σ min/Σ max. So darts of all hashes are drawn together, and only while they may be first
(Christiani, 2020, DartMinHash: Fast sketching for weighted sets).

The plane is cut into cells that follow the scale of entries, so that rows of any norm take the same time. Octave o
holds the weights in [2^o, 2^(o+1)); in a block of octaves, a dart's rank is told in the unit 2^−o of its own octave.
Cells are

- of single octaves, with ranks from ¼ on: of layer 0 those below 16, of layer k those from 16k to 16(k + 1),
- of blocks of 4 octaves, with ranks from 1/64 to ¼,
- of blocks of 64 octaves, with ranks below 1/64.

Darts of a cell come in the order of their ranks, at the gaps of a Poisson process. What an entry meets below a row's
limit are few cells: the octaves below its own, of which there is no end, are in a cell or two. They are looked at as
long as there is a dart in them more often than 2^−48 times.
"""

from math import e, factorial, log, log2

import numpy as np

from app.core.arrays import Matrix, Whole
from app.core.compiled import compiled
from app.core.hashing.parameter_stream import Word, Words, philox, scaled_logarithms

STREAM_VERSION = 1
# Beside the version, what tells this stream from that of GCWS: "dart" in ASCII.
_STREAM = np.uint64(0x64617274 << 32 | STREAM_VERSION)

# Cells whose darts are drawn at a time, one of each: enough for vector units, and all in the cache.
_LANES = 512
_KINDS = 3
_SHIFTS = np.array([0, 2, 6])
_FROM = np.array([1 / 4, 1 / 64, 0.0])
_TO = np.array([np.inf, 1 / 4, 1 / 64])
_UNITS = np.array([1.0, 1 / 4, 1 / 64])
_LAYER = 16
_RAREST = 2.0**-48
_POWERS = 2.0 ** np.arange(256)
_FARTHEST = 120
_LOG2_E = log2(e)
# Of 2^x = 1 + Σ (x ln 2)^k/k!, the last first: for x < 1 they leave 1e-19.
_TERMS = np.array([log(2) ** k / factorial(k) for k in range(19, 0, -1)])
_SPARE, _HALF = np.uint64(12), np.uint64(32)


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
    rows: Whole,
    begins: Whole,
    ends: Whole,
    weights: tuple[Whole, Whole, Matrix],
    tops: Whole,
    ranks: tuple[Matrix, Matrix],
    lowest: Matrix,
    samples: Whole,
) -> None:
    """Bring `samples`, (all rows, n, 2), up to what they are with more darts of some entries.

    Args:
        key: the seed, and the number of the group of n hashes.
        rows: numbers of the rows.
        begins: number of the first of the weights that belongs to each of these rows.
        ends: number of the first weight beyond them.
        weights: coordinate, octave and part of each entry.
        tops: highest octave of each of all rows.
        ranks: of all rows, in units of 2^−top, up to which darts were looked at before, and up to which they are now.
        lowest: the rank of each sample, (all rows, n), in that unit; the latter of these where there is none yet.
        samples: coordinate and t of each, −1 where there is none yet.
    """
    coordinates, octaves, parts = weights
    words = np.empty(4 * _LANES, np.uint64)
    whole, real = np.empty((8, _LANES), np.int64), np.empty((5, _LANES))
    free = np.arange(_LANES)
    n_free = _LANES
    for k in range(rows.shape[0]):
        row = rows[k]
        for entry in range(begins[k], ends[k]):
            top = octaves[entry]
            down = tops[row] - top
            part = 1 / _POWERS[down] if down < _FARTHEST else 0.0
            for kind in range(_KINDS):
                block, scale = top >> _SHIFTS[kind], part
                while ranks[1][row] * scale > max(_FROM[kind], _RAREST):
                    # Darts of several octaves are looked at again: those of the lower ones were past the limit.
                    layer = np.int64(ranks[0][row] * scale) // _LAYER if kind == 0 else 0
                    first, end = max(_FROM[kind], np.float64(layer * _LAYER)), min(ranks[1][row] * scale, _TO[kind])
                    while first < end:
                        while n_free == 0:
                            n_free = _draw(key[0], _LANES, words, whole, real, free, lowest, samples)
                        n_free -= 1
                        lane = free[n_free]
                        whole[0, lane] = coordinates[entry]
                        whole[1, lane] = key[1] << 2 | kind
                        whole[2, lane] = block << _SHIFTS[kind]
                        whole[3, lane] = layer << 32
                        whole[4, lane] = row
                        whole[5, lane] = top
                        whole[6, lane] = down
                        whole[7, lane] = (1 << _SHIFTS[kind]) - 1
                        layer += 1
                        real[0, lane] = first
                        first = np.float64(layer * _LAYER)
                        real[1, lane] = min(first, end)
                        real[2, lane] = _UNITS[kind]
                        real[3, lane] = parts[entry]
                    block -= 1
                    scale = part / _POWERS[top - ((block + 1) << _SHIFTS[kind]) + 1]
    held = _LANES
    while held:
        held = _compact(held, n_free, whole, real, free)
        n_free = _draw(key[0], held, words, whole, real, free, lowest, samples)


@compiled
def _compact(held: int, n_free: int, whole: Whole, real: Matrix, free: Whole) -> int:
    """Bring the lanes together that are not free, and say how many there are."""
    for k in range(n_free):
        whole[3, free[k]] = -1
    kept = 0
    for lane in range(held):
        if whole[3, lane] >= 0:
            for field in range(whole.shape[0]):
                whole[field, kept] = whole[field, lane]
            for field in range(real.shape[0]):
                real[field, kept] = real[field, lane]
            kept += 1
    return kept


@compiled
def _draw(
    seed: Word, held: int, words: Words, whole: Whole, real: Matrix, free: Whole, lowest: Matrix, samples: Whole
) -> int:
    """Draw the next dart of each of the first `held` lanes; list those that are at their end, and say how many."""
    n_hashes = np.uint64(lowest.shape[1])
    words = words[: 4 * held].reshape(4, held)
    w0, w1, w2, w3 = words[0], words[1], words[2], words[3]
    coordinates, kinds, blocks, counts, rows = whole[0], whole[1], whole[2], whole[3], whole[4]
    tops, downs, masks = whole[5], whole[6], whole[7]
    along, end, unit, parts, ranks = real[0], real[1], real[2], real[3], real[4]
    for k in range(held):
        w0[k] = np.uint64(coordinates[k])
        w1[k] = np.uint64(kinds[k])
        w2[k] = np.uint64(blocks[k])
        w3[k] = np.uint64(counts[k])
    philox((seed, _STREAM), 0, words)
    gaps = w0.view(np.float64)
    for k in range(held):
        gaps[k] = (np.float64(w0[k] >> _SPARE) + 0.5) * 2.0**-52
        ranks[k] = 0.0
        counts[k] += 1
    scaled_logarithms(gaps, ranks)
    for k in range(held):
        along[k] -= unit[k] * gaps[k]
        beyond = tops[k] - blocks[k] - (np.int64(w2[k]) & masks[k])
        place = (np.float64(w1[k] >> _SPARE) + 0.5) * 2.0**-52
        inside = (along[k] < end[k]) & ((beyond > 0) | ((beyond == 0) & (place < parts[k])))
        ranks[k] = along[k] * _POWERS[(downs[k] + beyond) & 255] if inside else np.inf
        w3[k] = ((w3[k] >> _HALF) * n_hashes) >> _HALF
    n_free = 0
    for k in range(held):
        free[n_free] = k
        n_free += along[k] >= end[k]
        row, h = rows[k], np.int64(w3[k])
        if ranks[k] <= lowest[row, h]:
            i, t = coordinates[k], np.int64(w1[k] >> _SPARE)
            of_row = samples[row, h]
            # Of darts with one rank the first coordinate, and there the first t: the order of darts tells nothing.
            if ranks[k] < lowest[row, h] or i < of_row[0] or (i == of_row[0] and t < of_row[1]):
                lowest[row, h] = ranks[k]
                of_row[0], of_row[1] = i, t
    return n_free
