"""Sources of samples of rows, for blocks of bounded memory and several threads; and consistent weighted sampling.

Consistent weighted sampling (GMM paper, algorithm 1) computes, for each hash and each entry ũ_i > 0 of a row,
t = ⌊p log ũ_i · (1/r) + β⌋ and a = κ − r t, where κ = log c − r(1 − β). The sample (i*, t*) is that of the smallest a;
of equal a, that of the smallest i. The four numbers r, 1/r, κ and β of a coordinate and hash are held in tables of
shape (coordinates, 4, hashes), with the hash innermost and contiguous, or drawn when they are needed.
"""

from abc import ABC, abstractmethod
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Matrix, Rows, Whole, csr_parts, dense, name_rows, row_blocks
from app.core.compiled import jit
from app.core.errors import InvalidInput
from app.core.hashing.encodings import Codes, Samples
from app.core.hashing.parameter_stream import Word, logarithms, sampling_parameters
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.progress import Pause, no_pause
from app.core.threads import for_each

# All rows are sampled on this many coordinates and hashes before the next ones: half a megabyte of parameters, which
# stays in a core's cache. Many coordinates are split into _MOST_PARTS larger parts, as rows have few entries in each.
_COORDINATES = 32
_HASHES = 512
_MOST_PARTS = 64
# Parameters drawn at a time: few enough for the innermost cache, and enough to save starts of loops.
DRAWS = 1024


class Entries(NamedTuple):
    """Nonzero entries after the transform, ordered by row, and within a row by coordinate i."""

    indptr: Whole
    """Row k has the entries indptr[k] … indptr[k + 1] − 1."""
    coordinate: Whole
    logs: Matrix
    """p·log ũ_i of each entry."""


def entries(rows: Rows, kernel: GeneralizedMinMax) -> Entries:
    """Return the entries of checked rows (n, d); InvalidInput if one minus its centre leaves the range of float64."""
    if kernel.stays_sparse(rows):
        values, columns, ends = csr_parts(rows)
        ends = ends[1:]
    else:
        matrix = kernel.subtract_center(dense(rows))
        n, d = matrix.shape
        columns, values, ends = np.arange(d), matrix.reshape(-1), np.arange(1, n + 1) * d
    indptr = np.zeros(len(ends) + 1, np.int64)
    coordinate, logs = np.empty(values.shape, np.int64), np.empty(values.shape)
    _fill(columns, values, ends, indptr, coordinate, logs)
    found = logs[: indptr[-1]]
    logarithms(found, found)
    found *= kernel.p
    return Entries(indptr, coordinate[: indptr[-1]], found)


@jit
def _fill(columns: Whole, values: Matrix, ends: Whole, indptr: Whole, coordinate: Whole, magnitude: Matrix) -> None:
    """Compact the nonzero values of rows that are stored one after the other, each row up to its entry of `ends`.

    `columns` are those of all values, or of the first row only if all rows have the same. For each entry, `coordinate`
    receives 2·column, plus 1 for a negative value, and `magnitude` |value|; `indptr`, (rows + 1,), where rows begin.
    """
    found = 0
    k = 0
    same = columns.shape[0] < values.shape[0]
    for row in range(ends.shape[0]):
        start = k if same else 0
        while k < ends[row]:
            # Always written, and kept if not zero: a branch on random values would be mispredicted.
            coordinate[found] = 2 * columns[k - start] + (values[k] < 0)
            magnitude[found] = abs(values[k])
            found += values[k] != 0
            k += 1
        indptr[row + 1] = found


@jit
def _memory() -> Matrix:
    """Return memory for the numbers drawn at a time, (4·DRAWS,), aligned to a cache line: it saves a tenth of time."""
    spare = 64 // 8
    memory = np.empty(4 * DRAWS + spare)
    first = -(memory.ctypes.data // 8) % spare
    return memory[first : first + 4 * DRAWS]


@jit
def fill_table(seed: Word, coordinates: Whole, first_hash: int, table: Matrix) -> None:
    """Fill a table (coordinates, 4, hashes) with the parameters of the hashes from `first_hash` on."""
    n_hashes = table.shape[2]
    memory = _memory()
    width = min(DRAWS, n_hashes)
    for first in range(0, table.shape[0], DRAWS // width):
        those = coordinates[first : first + DRAWS // width]
        for start in range(0, n_hashes, width):
            n = min(width, n_hashes - start)
            drawn = memory[: 4 * those.shape[0] * n].reshape(4, those.shape[0], n)
            sampling_parameters(seed, those, first_hash + start, drawn)
            for k in range(those.shape[0]):
                place = table[first + k]
                for h in range(n):
                    r, beta = drawn[0, k, h], drawn[3, k, h]
                    place[0, start + h] = r
                    place[1, start + h] = drawn[1, k, h]
                    place[2, start + h] = drawn[2, k, h] - r * (1.0 - beta)
                    place[3, start + h] = beta


@jit
def sample_rows(indptr: Whole, coordinates: Whole, logs: Matrix, table: Matrix, first_hash: int, out: Whole) -> None:
    """Sample `Entries` with a table of the parameters of all coordinates and hashes.

    `out`, (rows, hashes, 2), receives (i*, t*) of the hashes from `first_hash` on, −1 for a row without entries.
    """
    n_rows, n_coordinates = out.shape[0], table.shape[0]
    width = min(_HASHES, out.shape[1])
    smallest, winner = np.empty((n_rows, width)), np.empty((n_rows, width), np.int64)
    met = np.empty(n_rows, np.int64)
    part = max(_COORDINATES, n_coordinates // _MOST_PARTS)
    for start in range(0, out.shape[1], width):
        n_hashes = min(width, out.shape[1] - start)
        hashes = slice(first_hash + start, first_hash + start + n_hashes)
        smallest[:] = np.inf
        for row in range(n_rows):
            met[row] = indptr[row]
        for end in range(part, n_coordinates + part, part):
            for row in range(n_rows):
                entry, last = met[row], indptr[row + 1]
                smallest_row, winner_row = smallest[row], winner[row]
                while entry < last and coordinates[entry] < end:
                    log_u = logs[entry]
                    of_entry = table[coordinates[entry]]
                    r, inverse = of_entry[0][hashes], of_entry[1][hashes]
                    kappa, beta = of_entry[2][hashes], of_entry[3][hashes]
                    for h in range(n_hashes):
                        a = kappa[h] - r[h] * np.floor(log_u * inverse[h] + beta[h])
                        nearer = a < smallest_row[h]
                        smallest_row[h] = a if nearer else smallest_row[h]
                        winner_row[h] = entry if nearer else winner_row[h]
                    entry += 1
                met[row] = entry
        for row in range(n_rows):
            if indptr[row] == indptr[row + 1]:
                out[row, start : start + n_hashes] = -1
                continue
            for h in range(n_hashes):
                entry = winner[row, h]
                i = coordinates[entry]
                out[row, start + h, 0] = i
                t = np.floor(logs[entry] * table[i, 1, hashes.start + h] + table[i, 3, hashes.start + h])
                out[row, start + h, 1] = np.int64(t)


@jit
def sample_columns(
    seed: Word,
    first_hash: int,
    coordinates: Whole,
    indptr: Whole,
    rows: Whole,
    logs: Matrix,
    index: Whole,
    level: Matrix,
) -> None:
    """Sample sparse rows coordinate by coordinate, drawing the parameters of each coordinate once.

    `coordinates` i increase; the k-th has the entries indptr[k] … indptr[k + 1] − 1, each with its row and p·log ũ_i.
    `index` and `level`, (rows, hashes) with at most DRAWS hashes, receive i* and t* of the hashes from `first_hash` on;
    they are left unchanged for a row without entries.
    """
    n_rows, n_hashes = index.shape
    smallest = np.full((n_rows, n_hashes), np.inf)
    memory = _memory()
    at_once = DRAWS // n_hashes
    for first in range(0, coordinates.shape[0], at_once):
        those = coordinates[first : first + at_once]
        drawn = memory[: 4 * those.shape[0] * n_hashes].reshape(4, those.shape[0], n_hashes)
        sampling_parameters(seed, those, first_hash, drawn)
        for k in range(those.shape[0]):
            i = those[k]
            r, inverse, kappa, beta = drawn[0, k], drawn[1, k], drawn[2, k], drawn[3, k]
            for h in range(n_hashes):
                kappa[h] -= r[h] * (1.0 - beta[h])
            for entry in range(indptr[first + k], indptr[first + k + 1]):
                log_u, row = logs[entry], rows[entry]
                smallest_row, index_row, level_row = smallest[row], index[row], level[row]
                for h in range(n_hashes):
                    t = np.floor(log_u * inverse[h] + beta[h])
                    a = kappa[h] - r[h] * t
                    nearer = a < smallest_row[h]
                    smallest_row[h] = a if nearer else smallest_row[h]
                    index_row[h] = i if nearer else index_row[h]
                    level_row[h] = t if nearer else level_row[h]


@jit
def count_collisions(x: Whole, y: Whole, out: Whole) -> None:
    """Add to out (n, m) the number of hashes whose samples in x (n, s, 2) and y (m, s, 2) agree."""
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            equal = 0
            for h in range(x.shape[1]):
                equal += (x[i, h, 0] == y[j, h, 0]) and (x[i, h, 1] == y[j, h, 1])
            out[i, j] += equal


class Load(NamedTuple):
    """The amount of work to sample rows."""

    n_rows: int
    n_entries: int
    n_coordinates: int
    """Number of coordinates with entries in a block of rows, summed over the blocks."""


class SampleSource(ABC):
    """Source of samples of entries, with random draws of its own."""

    entries_per_block: int
    """Maximum number of entries to sample at a time."""
    samples_per_block: int
    """Maximum number of samples to compute at a time."""
    blocks_at_once: int
    """Number of threads that may call `samples` at a time."""
    nbytes: int
    """Memory held, in bytes."""

    @abstractmethod
    def samples(self, entries: Entries, n_rows: int, hashes: slice, pause: Pause = no_pause) -> Samples:
        """Return (i*, t*) of every row and hash, (n_rows, hashes, 2); −1 for a row without entries.

        A source that takes long calls `pause` between steps; its `blocks_at_once` is then 1.
        """

    @abstractmethod
    def operations(self, load: Load, s: int) -> int:
        """Return the cost of all s samples of the load, in multiplications of a matrix product."""

    def sampled_with(self, hashes: slice) -> int:
        """Return how many hashes are sampled when the given ones are requested."""
        return int(hashes.stop - hashes.start)


def check_sampled_rows(codes: Codes, pointer: str) -> None:
    """Raise InvalidInput naming the rows of codes (n, s) or (n, s, 2) that are −1, if there are any."""
    refuse_rows(np.flatnonzero((codes[:, 0] if codes.ndim == 2 else codes[:, 0, 0]) < 0), pointer)


def refuse_rows(rows: NDArray[np.intp], pointer: str) -> None:
    """Raise InvalidInput naming these rows at `pointer`, which have no sample, if there are any."""
    if rows.size:
        detail = f"row {name_rows(rows)} is all zero (after centering) or marked by -1: it has no sample"
        first, *others = (f"{pointer}/{row}" for row in rows[:_MOST_NAMED])
        raise InvalidInput(detail, first, others)


# Most rows of a request that an error points to.
_MOST_NAMED = 1000


# Tables up to this size are kept in memory.
MOST_TABLE_BYTES = 1 << 28
# Fewer hashes are not worth a thread of their own.
_LEAST_HASHES = 16
# Work of one thread at a time, if the hashes can be split so finely: a tenth of a second.
_OPERATIONS_PER_PART = 1 << 31


class Parameters(SampleSource):
    """The random parameters r, c, β of a seed for every coordinate and hash; how they are stored changes no sample."""

    operations_per_hash = 16
    """Cost of hashing one entry, in multiplications of a matrix product."""
    operations_per_draw: int
    """Cost of drawing the parameters of one coordinate and hash, in multiplications of a matrix product."""

    def operations(self, load: Load, s: int) -> int:
        """Return the cost of hashing all entries and of the draws for them."""
        return (self.operations_per_hash * load.n_entries + self.operations_per_draw * load.n_coordinates) * s


class HeldParameters(Parameters):
    """Parameters that are drawn once and kept in one table of shape (coordinates, 4, s)."""

    # Few enough for the caches, and for two blocks at once beside the result.
    entries_per_block = 1 << 16
    samples_per_block = 1 << 17
    operations_per_draw = 0

    def __init__(self, seed: int, n_coordinates: int, s: int, threads: int) -> None:
        self.blocks_at_once = threads
        self.table = _aligned_array((n_coordinates, 4, s))
        """r, 1/r, κ and β of each coordinate and hash."""
        self.nbytes = self.table.nbytes

        def fill(block: slice) -> None:
            fill_table(np.uint64(seed), np.arange(block.start, block.stop), 0, self.table[block])

        for_each(fill, row_blocks(n_coordinates, -(-n_coordinates // threads)), threads)

    def samples(self, entries: Entries, n_rows: int, hashes: slice, pause: Pause = no_pause) -> Samples:
        """Return (i*, t*) of every row and hash, sampled row by row in a quarter of a second or less."""
        del pause
        samples = np.empty((n_rows, hashes.stop - hashes.start, 2), np.int64)
        sample_rows(entries.indptr, entries.coordinate, entries.logs, self.table, hashes.start, samples)
        return samples


class DrawnParameters(Parameters):
    """Parameters that are not kept: each block of rows draws those that it needs, once for each coordinate."""

    # Large, because each block draws the parameters of its coordinates again.
    entries_per_block = 1 << 22
    samples_per_block = 1 << 21
    operations_per_draw = 160
    blocks_at_once = 1
    nbytes = 0

    def __init__(self, seed: int, threads: int) -> None:
        self._seed = np.uint64(seed)
        self._threads = threads

    def samples(self, entries: Entries, n_rows: int, hashes: slice, pause: Pause = no_pause) -> Samples:
        """Return (i*, t*) of every row and hash, coordinate by coordinate; threads share the hashes and their draws."""
        order = np.argsort(entries.coordinate)
        row, logs = np.repeat(np.arange(n_rows), np.diff(entries.indptr))[order], entries.logs[order]
        ordered, n_hashes = entries.coordinate[order], hashes.stop - hashes.start
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        coordinates, indptr = ordered[starts], np.append(starts, len(order))
        samples = np.empty((n_rows, n_hashes, 2), np.int64)

        def fill(part: slice) -> None:
            index = np.full((n_rows, part.stop - part.start), -1)
            level = np.full(index.shape, -1.0)
            sample_columns(self._seed, hashes.start + part.start, coordinates, indptr, row, logs, index, level)
            samples[:, part, 0] = index
            samples[:, part, 1] = level

        steps = max(1, self.operations_per_hash * len(order) + self.operations_per_draw * len(coordinates))
        per_part = max(_LEAST_HASHES, min(-(-n_hashes // self._threads), _OPERATIONS_PER_PART // steps, DRAWS))
        for_each(fill, row_blocks(n_hashes, per_part), self._threads, pause)
        return samples


def table_bytes(n_coordinates: int, s: int) -> int:
    """Return the bytes of the table of parameters; 0 if it would be too large, so that they are drawn when needed."""
    nbytes = 4 * 8 * n_coordinates * s
    return nbytes if nbytes <= MOST_TABLE_BYTES else 0


def _aligned_array(shape: tuple[int, ...]) -> Matrix:
    """Return an empty array aligned to a cache line, so that no vector register is loaded from two lines."""
    spare = 64 // 8
    memory = np.empty(prod(shape) + spare)
    first = -memory.ctypes.data // 8 % spare
    return memory[first : first + prod(shape)].reshape(shape)
