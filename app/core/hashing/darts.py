"""Samples of rows by darts, in a time that grows with entries plus hashes.

Darts land uniformly on the plane of weight w > 0 and rank y > 0 of each coordinate, one per unit of area on average.
Each carries one of n hashes. The sample (i*, t*) of a row and hash is the dart of the lowest rank with w < ũ_i* that
carries the hash; t* tells the darts of a coordinate apart. Two rows share a sample if the first dart below max(ũ, ṽ) is
below min(ũ, ṽ) too: with probability Σ min/Σ max. So darts of all hashes are drawn together, and only where they may be
first (Christiani, 2020, DartMinHash: Fast sketching for weighted sets).

Below the rank limit of its row, an entry meets only a few of the cells into which the plane is cut. The infinitely many
octaves below its own need one or two cells, visited as long as they hold a dart with a probability above 2^−48. A cell
that several rows of one call meet is drawn once for all of them. The cells and their darts are a frozen stream.

The plane of weight and rank is cut into cells that follow the scale of entries, so that rows of any norm take the same
time. Octave o holds the weights in [2^o, 2^(o+1)); a dart's rank is given in the unit 2^−o of its own octave. Cells are

- single octaves, with ranks from 9/32 on: layer l has those from 9/32 + 2l to 9/32 + 2(l + 1),
- blocks of 8 octaves, with ranks from 1/32 to 9/32,
- blocks of 64 octaves, with ranks below 1/32.

So each cell has the area 2 and a Poisson number of darts of mean 2. A block of random words holds two darts. The spare
bits of a cell's first block determine its number of darts; for two of three cells this block is enough.
"""

from decimal import Decimal, localcontext
from math import e, factorial, log, log2

import numpy as np

from app.core.arrays import Matrix, Whole, row_blocks
from app.core.compiled import jit
from app.core.hashing.encodings import Samples
from app.core.hashing.parameter_stream import Word, Words, philox
from app.core.hashing.sampling import Entries, Load, SampleSource
from app.core.progress import Pause, no_pause
from app.core.threads import for_each

STREAM_VERSION = 1
# The version and "dart" in ASCII, which makes this stream differ from that of GCWS.
_STREAM = np.uint64(0x64617274 << 32 | STREAM_VERSION)

KINDS, AREA = 3, 2
# A cell spans 2^(3·kind) octaves. For each kind: lowest rank, and height of a cell in ranks.
SHIFT = 3
FROM = np.array([9 / 32, 1 / 32, 0.0])
_HEIGHTS = np.array([2.0, 1 / 4, 1 / 32])
# The name of a cell packs its block of octaves, kind and layer into one number; these are the bits of the last two.
KIND_BITS, LAYER_BITS = 2, 24
# Cells drawn at a time: enough for vector units, and few enough for the cache.
CELLS = 512
_SPARE, _SPARE_BITS = np.uint64(12), np.uint64(0xFFF)
_UNIFORM_BITS = np.uint64(52)
_UNIFORM = np.uint64((1 << 52) - 1)


def _counts() -> Words:
    """Return the values of 48 random bits from which on a cell has more than 0, 1, … darts, equal on any machine."""
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

DartArrays = tuple[Words, Whole, Matrix]
"""t and a second word of n darts, (2, n), octave and hash, (2, n), and place in the octave and rank, (2, n)."""


@jit
def draw(key: tuple[Word, int], cells: Whole, darts: DartArrays, n_hashes: int) -> None:
    """Draw the darts of cells with coordinates cells[0] and names cells[1]; write the darts' offsets to cells[2]."""
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
    # Each cell writes two darts; the next cell overwrites those that it does not have. A branch would be mispredicted,
    # as counts are random. So the darts beyond two are written first.
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


@jit
def _count(key: tuple[Word, int], cells: Whole, cell: int, number: int, counter: Words) -> None:
    """Write the counter of block `number` of a cell's random words."""
    counter[0], counter[1] = np.uint64(cells[0, cell]), np.uint64(key[1])
    counter[2], counter[3] = np.uint64(cells[1, cell]), np.uint64(number)


@jit
def _write(block: Words, at: int, name: int, raw: Words, whole: Whole) -> None:
    """Write the two darts of a block: for each, two words and the name of the cell."""
    raw[0, at], raw[1, at], whole[0, at] = block[0], block[1], name
    raw[0, at + 1], raw[1, at + 1], whole[0, at + 1] = block[2], block[3], name


@jit
def _read(n: int, darts: DartArrays, n_hashes: int) -> None:
    """Turn the words of n darts and the names of their cells into the numbers of `DartArrays`."""
    raw, whole, real = darts
    t, second, octave, h, place, rank = raw[0], raw[1], whole[0], whole[1], real[0], real[1]
    n_all = np.uint64(n_hashes)
    for k in range(n):
        name = octave[k]
        kind, layer = name >> LAYER_BITS & 3, name & ((1 << LAYER_BITS) - 1)
        shift = SHIFT * kind
        t[k] >>= _SPARE
        # 52 bits times n: the bits above the 52nd are the hash, those below the place of the rank in the cell.
        product = (second[k] >> _SPARE) * n_all
        octave[k] = (name >> (LAYER_BITS + KIND_BITS) << shift) + np.int64(t[k] >> np.uint64(52 - shift))
        h[k] = np.int64(product >> _UNIFORM_BITS)
        place[k] = (np.float64(np.int64(t[k] << np.uint64(shift) & _UNIFORM)) + 0.5) * 2.0**-52
        along = np.float64(layer) + (np.float64(np.int64(product & _UNIFORM)) + 0.5) * 2.0**-52
        rank[k] = FROM[kind] + _HEIGHTS[kind] * along


_RAREST = 2.0**-48
_POWERS = 2.0 ** np.arange(256)
# Added to the rank of a dart outside of a row, and of a dart inside.
_OUTSIDE = np.array([np.inf, 0.0])
_FARTHEST = 120
_LOG2_E = log2(e)
# Coefficients of 2^x = 1 + Σ (x ln 2)^k/k!, the last first: for x < 1 the rest is below 1e-19.
_TERMS = np.array([log(2) ** k / factorial(k) for k in range(19, 0, -1)])

# Visits of entries to cells that are collected before the cells are drawn.
_VISITS = 2048
_SLOTS = 1 << 10
_TO_SLOT, _MIXER = np.uint64(64 - 10), np.uint64(0x9E3779B97F4A7C15)


@jit
def binary_weights(logs: Matrix, octaves: Whole, parts: Matrix) -> None:
    """Write e^logs, (n,), as 2^octave (1 + part), parts in [0, 1], with the same bits on every machine."""
    for k in range(logs.shape[0]):
        power = logs[k] * _LOG2_E
        whole = np.floor(power)
        octaves[k] = np.int64(whole)
        rest = power - whole
        series = 0.0
        for term in range(_TERMS.shape[0]):
            series = (series + _TERMS[term]) * rest
        parts[k] = min(series, 1.0)


@jit
def scales(indptr: Whole, octaves: Whole, parts: Matrix, tops: Whole, sums: Matrix) -> None:
    """Write each row's highest octave, and the sum of its weights in units of 2^octave; 0 for a row without entries."""
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


@jit
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
    """Update `samples`, (all rows, n, 2), with more darts of some entries.

    Args:
        key: the seed, and the number of the group of n hashes.
        entries: numbers of the entries; those of one coordinate are adjacent, so that its cells are drawn once.
        rows: row of each of `entries`.
        weights: coordinate, octave and part of all entries.
        tops: highest octave of all rows.
        ranks: previous and present limits of the ranks of darts to look at, for all rows, in units of 2^−top.
        lowest: rank of each sample, (all rows, n), in units of 2^−top; the present limit where there is no sample yet.
        samples: coordinate and t of each sample, −1 where there is none yet.
    """
    coordinates, octaves = weights[0], weights[1]
    cells, visits = np.empty((3, CELLS + 1), np.int64), np.empty((3, _VISITS), np.int64)
    slots = np.zeros(_SLOTS, np.int64)
    darts = np.empty((2, MOST_DARTS), np.uint64), np.empty((2, MOST_DARTS), np.int64), np.empty((2, MOST_DARTS))
    n_cells = n_visits = 0
    for k in range(entries.shape[0]):
        i, top, row = coordinates[entries[k]], octaves[entries[k]], rows[k]
        down = tops[row] - top
        part = 1 / _POWERS[down] if down < _FARTHEST else 0.0
        for kind in range(KINDS):
            block, scale = top >> SHIFT * kind, part
            while ranks[1][row] * scale > max(FROM[kind], _RAREST):
                # Cells of several octaves are visited again: darts of their lower octaves were past the limit.
                layer = _layer(ranks[0][row] * scale) if kind == 0 else 0
                while layer == 0 or (kind == 0 and FROM[0] + AREA * layer < ranks[1][row] * scale):
                    if n_cells == CELLS or n_visits == _VISITS:
                        draw(key, cells[:, : n_cells + 1], darts, lowest.shape[1])
                        _take(visits[:, :n_visits], cells[2], darts, entries, rows, weights, tops, lowest, samples)
                        n_cells = n_visits = 0
                    name = (block << KIND_BITS | kind) << LAYER_BITS | layer
                    slot = np.int64(np.uint64(name) * _MIXER >> _TO_SLOT)
                    cell = slots[slot]
                    # If two cells have one slot, the later one takes it, and the other is drawn again when it is met.
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


@jit
def _layer(rank: float) -> int:
    """Return the layer of single octaves that contains a rank; 0 below all layers."""
    return int(max(0.0, np.floor((rank - FROM[0]) / AREA)))


@jit
def _take(
    visits: Whole,
    begins: Whole,
    darts: DartArrays,
    entries: Whole,
    rows: Whole,
    weights: tuple[Whole, Whole, Matrix],
    tops: Whole,
    lowest: Matrix,
    samples: Whole,
) -> None:
    """Update samples with the darts of visited cells; a visit is the entry, its first cell, and one past its last."""
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
                # Of equal ranks, the lowest coordinate wins, then the lowest t, so that the order does not matter.
                n_first = _keep(i, first[:n_first], raw, whole, found)
                t = np.int64(raw[0, dart])
                if i < found[h, 0] or (i == found[h, 0] and t < found[h, 1]):
                    found[h, 0], found[h, 1] = i, t
            # Without a branch, which would be mispredicted.
            ranks[h] = rank if rank < before else before
            first[n_first] = dart
            n_first += rank < before
        _keep(i, first[:n_first], raw, whole, found)


@jit
def _keep(i: int, first: Whole, raw: Words, whole: Whole, found: Whole) -> int:
    """Write the collected darts of coordinate i, each first when it was met; return 0, the number left to write."""
    for dart in first:
        found[whole[1, dart], 0], found[whole[1, dart], 1] = i, np.int64(raw[0, dart])
    return 0


Part = tuple[Whole, Whole, Whole]
"""Numbers of rows, and where the entries to look at begin and end in each row."""

GROUP = 4096
"""Number of hashes whose darts are drawn together; it bounds the memory for a row."""

# The first limit of a row is chosen for n(log n + _SURPLUS) expected darts: in one row of twenty some hash has none.
# Then limits rise by n·_MORE darts until every hash has one: again, in one of twenty such rows some hash has none.
_SURPLUS, _MORE = 3.0, 3.0
# Work of one thread at a time, in entries or hashes: enough rows to share cells, and few enough to cache their ranks.
_STEPS_PER_PART = 1 << 16
_MOST_ENTRIES_PER_PART = 1 << 20


class Darts(SampleSource):
    """Source of samples from the darts of a seed; a dart is drawn again whenever a row meets it."""

    entries_per_block = 1 << 20
    samples_per_block = 1 << 19
    # Measured on rows chosen to be slow, where some hash finds its dart only at the sixth limit. Ordinary rows take a
    # third of the time.
    operations_per_row = 24_000
    """Cost of a row, whatever its entries, in multiplications of a matrix product."""
    operations_per_entry = 8000
    """Cost of an entry, whatever the number of hashes, in multiplications of a matrix product."""
    operations_per_dart = 600
    """Cost of a dart below the limit of a row, in multiplications of a matrix product."""
    blocks_at_once = 1
    nbytes = 0

    def __init__(self, seed: int, s: int, threads: int) -> None:
        self._seed, self._s, self._threads = np.uint64(seed), s, threads

    def sampled_with(self, hashes: slice) -> int:
        """Return how many hashes are in the groups that contain the given hashes."""
        return min(self._s, -(-int(hashes.stop) // GROUP) * GROUP) - int(hashes.start) // GROUP * GROUP

    def operations(self, load: Load, s: int) -> int:
        """Return the cost of each row, of some cells of each entry and of the darts of each row, over all groups."""
        found = 0.0
        for group in row_blocks(s, GROUP):
            of_row = self.operations_per_row + self.operations_per_dart * _limit(group.stop - group.start)
            found += self.operations_per_entry * load.n_entries + of_row * load.n_rows
        return int(found)

    def samples(self, entries: Entries, n_rows: int, hashes: slice, pause: Pause = no_pause) -> Samples:
        """Return (i*, t*) of every row and hash, row by row; threads share the rows."""
        octaves, parts = np.empty(entries.logs.shape, np.int64), np.empty(entries.logs.shape)
        binary_weights(entries.logs, octaves, parts)
        thrown = _Rows(entries.indptr, (entries.coordinate, octaves, parts), self._threads)
        samples = np.full((n_rows, hashes.stop - hashes.start, 2), -1)
        for number in range(hashes.start // GROUP, -(-hashes.stop // GROUP)):
            start, stop = number * GROUP, min(self._s, (number + 1) * GROUP)
            found = thrown.samples((self._seed, number), stop - start, pause)
            first, last = max(start, hashes.start), min(stop, hashes.stop)
            samples[:, first - hashes.start : last - hashes.start] = found[:, first - start : last - start]
        return samples


class _Rows:
    """Rows of weights; each entry is a coordinate, octave and part."""

    def __init__(self, indptr: Whole, weights: tuple[Whole, Whole, Matrix], threads: int) -> None:
        self._indptr, self._weights, self._threads = indptr, weights, threads
        self._tops, self._sums = np.empty(len(indptr) - 1, np.int64), np.empty(len(indptr) - 1)
        scales(indptr, weights[1], weights[2], self._tops, self._sums)

    def samples(self, key: tuple[np.uint64, int], n_hashes: int, pause: Pause) -> Samples:
        """Return (i*, t*) of the hashes of a group, (rows, n_hashes, 2); −1 for a row without entries."""
        samples = np.full((len(self._tops), n_hashes, 2), -1)
        left = np.flatnonzero(self._sums)
        seen, limits = np.zeros(len(self._tops)), np.zeros(len(self._tops))
        limits[left] = _limit(n_hashes) / self._sums[left]
        lowest = np.repeat(limits[:, None], n_hashes, axis=1)

        def work(part: Part) -> None:
            entries, rows = self._by_coordinate(part)
            throw(key, entries, rows, self._weights, self._tops, (seen, limits), lowest, samples)

        while left.size:
            together, alone = self._parts(left, n_hashes)
            for_each(work, together, self._threads, pause)
            for_each(work, alone, 1, pause)
            # Only hashes without a dart get a higher limit; samples found are final.
            without = samples[left, :, 0] < 0
            left, without = left[without.any(axis=1)], without[without.any(axis=1)]
            seen[left] = limits[left]
            limits[left] += _MORE * n_hashes / self._sums[left]
            lowest[left] = np.where(without, limits[left, None], lowest[left])
        return samples

    def _by_coordinate(self, part: Part) -> tuple[Whole, Whole]:
        """Return numbers of the entries of a part, coordinate by coordinate, and the row of each."""
        rows, begins, ends = part
        counts = ends - begins
        entries = np.arange(counts.sum()) + np.repeat(begins - np.cumsum(counts) + counts, counts)
        if len(rows) == 1:  # already in order
            return entries, np.repeat(rows, counts)
        order = np.argsort(self._weights[0][entries])
        return entries[order], np.repeat(rows, counts)[order]

    def _parts(self, rows: Whole, n_hashes: int) -> tuple[list[Part], list[Part]]:
        """Split the work into parts: of whole rows, for several threads; of pieces of long rows, done one by one."""
        begins, ends = self._indptr[rows], self._indptr[rows + 1]
        is_long = ends - begins > _MOST_ENTRIES_PER_PART
        alone = [
            (np.array([row]), np.array([piece.start]), np.array([piece.stop]))
            for row, begin, end in zip(rows[is_long], begins[is_long], ends[is_long], strict=True)
            for piece in row_blocks(end, _MOST_ENTRIES_PER_PART, begin)
        ]
        rows, begins, ends = rows[~is_long], begins[~is_long], ends[~is_long]
        steps = np.cumsum(ends - begins + 2 * n_hashes)
        most = max(1, min(_STEPS_PER_PART, -(-int(steps[-1]) // self._threads))) if len(steps) else 1
        starts = np.flatnonzero(np.diff(steps // most, prepend=-1))
        together = zip(*(np.split(array, starts[1:]) for array in (rows, begins, ends)), strict=True)
        return [part for part in together if len(part[0])], alone


def _limit(n_hashes: int) -> float:
    """Return the expected number of darts of a row that are looked at first."""
    return n_hashes * (log(n_hashes) + _SURPLUS)
