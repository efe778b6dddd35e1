"""Common parts of the selection methods: kernel values, a basis of landmarks, results, states, ordered selection."""

from collections.abc import Callable, Sequence
from functools import partial
from math import isqrt
from typing import NamedTuple

import numpy as np
import scipy
from scipy import sparse

from app.core.arrays import Array, Matrix, Rows, Whole, entries_of_rows, row_blocks
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, ScaledKernel, ShiftInvariantKernel
from app.core.kernels.chi_squared import ChiSquared
from app.core.kernels.correlation_rbf import CorrelationRbf
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.maps.landmarks.features import kernel_blocks
from app.core.progress import Progress, pack_arrays, unpack_arrays
from app.core.samplers.base import Rng
from app.core.threads import for_each

_DTYPE = np.dtype(np.float64)
# Sparse rows that are compared at a time, and entries of them that are made dense.
_SPARSE_ROWS, _DENSE_ENTRIES = 192, 1 << 20


def values(kernel: AnyKernel, x: Rows, y: Rows) -> Matrix:
    """Compute the kernel of prepared rows, both dense or both sparse, (n, d) and (m, d) to (n, m).

    The kernel of dense rows is exact, as it must distinguish nearly dependent rows. Sparse rows may have billions of
    columns: they are made dense a few at a time, if at all.
    """
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) or kernel.compares_sparse:
        return kernel.exact(x, y)
    found = np.empty((x.shape[0], y.shape[0]))
    for some in row_blocks(x.shape[0], _SPARSE_ROWS):
        of, u, v = _drop_columns(kernel, x[some], y)
        blocks, out = kernel_blocks(of, v, _DTYPE), found[some]
        for part in row_blocks(len(out), blocks.rows_per_block(u)):
            blocks.write(u[part], out[part])
    return found


def _drop_columns(
    kernel: AnyKernel, x: sparse.csr_array, y: sparse.csr_array
) -> tuple[AnyKernel, sparse.csr_array, sparse.csr_array]:
    """Return a kernel and rows of fewer columns with the same kernel values, if the kernel is known to allow it.

    Columns in which no row has an entry are left out, as all differences are 0 there.
    """
    if not isinstance(kernel, ScaledKernel | CorrelationRbf):
        return kernel, x, y
    columns, numbers = np.unique(np.concatenate([x.indices, y.indices, [0]]), return_inverse=True)
    if isinstance(kernel, ScaledKernel) and isinstance(kernel.length_scale, tuple):
        scales = kernel.length_scale
        kernel = kernel.model_copy(update={"length_scale": tuple(scales[column] for column in columns)})
    u = sparse.csr_array((x.data, numbers[: x.nnz], x.indptr), shape=(x.shape[0], len(columns)))
    v = sparse.csr_array((y.data, numbers[x.nnz : -1], y.indptr), shape=(y.shape[0], len(columns)))
    return kernel, u, v


def own_values(kernel: AnyKernel, rows: Rows) -> Matrix:
    """Compute the kernel of each row with itself, (n,)."""
    n = rows.shape[0]
    if isinstance(kernel, ShiftInvariantKernel):
        return np.full(n, kernel.at_zero(rows.shape[1]))
    if isinstance(kernel, GeneralizedMinMax | ChiSquared):
        return np.ones(n)
    found = np.empty(n)
    at_once = n if isinstance(rows, np.ndarray) or kernel.compares_sparse else _DENSE_ENTRIES // rows.shape[1]
    for part in row_blocks(n, at_once):
        found[part] = kernel.pairs(rows[part], rows[part])
    return found


def operations_per_row(kernel: AnyKernel, x: Rows, y: Rows) -> int:
    """Return the mean cost of `values` for one row of x, counted in multiplications of a matrix product."""
    if not y.shape[0]:
        return 0
    if isinstance(x, np.ndarray) or kernel.compares_sparse:
        return kernel.comparison_operations(x, y) // int(x.shape[0])
    return kernel_blocks(kernel, y, _DTYPE).operations(x) // int(x.shape[0])


def stack_rows(blocks: Sequence[Rows]) -> Rows:
    """Stack blocks of rows on top of each other; all are dense, or all are sparse."""
    if isinstance(blocks[0], np.ndarray):
        return np.concatenate([block for block in blocks if isinstance(block, np.ndarray)])
    return sparse.csr_array(sparse.vstack([block for block in blocks if sparse.issparse(block)], format="csr"))


ROUNDING = 1e-10
"""Share of k(x, x) below which a residual counts as 0: then the last landmarks lose few digits to earlier ones."""

# Limits of one part of the work, a tenth of a second or less: kernel values, multiplications, entries of rows.
_VALUES_PER_PART, _OPERATIONS_PER_PART, _ENTRIES_PER_PART = 1 << 17, 1 << 26, 1 << 20
# Most rows that are compared with each other between two pauses, and multiplications for it: half a second.
MOST_COMPARED, _OPERATIONS_COMPARED = 256, 1 << 32


def compared_at_once(kernel: AnyKernel, rows: Rows) -> int:
    """Return the number of rows, at most `MOST_COMPARED`, that are compared with each other between two pauses.

    Only for sparse rows it may be less, by the longest of them: dense ones of as many entries are few.
    """
    if isinstance(rows, np.ndarray) or not rows.shape[0]:
        return MOST_COMPARED
    some = rows[np.sort(np.argsort(-entries_of_rows(rows), kind="stable")[:MOST_COMPARED])]
    if kernel.compares_sparse:
        per_pair = kernel.comparison_operations(some, some) // int(some.shape[0]) ** 2
    else:
        of, u, v = _drop_columns(kernel, some, some)
        per_pair = kernel_blocks(of, v[:1], _DTYPE).operations(u[:1])
    return max(1, min(MOST_COMPARED, isqrt(_OPERATIONS_COMPARED // max(1, per_pair))))


class Coordinates:
    """Coordinates w(x) = k(x, L) Mᵀ of rows, for landmarks L and a matrix M, (s, s), by kernel values in float64."""

    def __init__(self, kernel: AnyKernel, landmarks: Rows, matrix: Matrix) -> None:
        self.kernel, self.landmarks, self._matrix = kernel, landmarks, matrix

    def __len__(self) -> int:
        return len(self._matrix)

    def of(self, rows: Rows) -> Matrix:
        """Compute the coordinates of the rows, (n, s)."""
        if not len(self):
            return np.empty((rows.shape[0], 0))
        # One product for a block of rows: its bits depend on the size of the block, which does not depend on threads.
        return values(self.kernel, rows, self.landmarks) @ self._matrix.T

    def residuals(self, rows: Rows, least: float = ROUNDING) -> Matrix:
        """Compute k(x, x) − ‖w(x)‖² of the rows, (n,); 0 where it is at most `least` times k(x, x)."""
        diagonal, w = own_values(self.kernel, rows), self.of(rows)
        left: Matrix = diagonal - np.einsum("ij,ij->i", w, w)
        left[left <= least * diagonal] = 0
        return left

    def rows_per_part(self, rows: Rows) -> int:
        """Return the number of rows whose coordinates are computed between two pauses."""
        s, compared = max(1, len(self)), operations_per_row(self.kernel, rows, self.landmarks)
        most = min(_VALUES_PER_PART // s, _OPERATIONS_PER_PART // (s * s + compared))
        if isinstance(rows, np.ndarray):
            # Landmarks are converted to float64 anyway, so converting as many rows takes no more memory.
            most = min(most, max(s, _ENTRIES_PER_PART // int(rows.shape[1])))
        return max(1, most)


class Basis(Coordinates):
    """Landmarks among some rows, and coordinates in which ⟨w(x), w(y)⟩ is their Nyström approximation of k(x, y).

    With K(L, L) = C Cᵀ, w(x) = k(x, L) C^(−T). Landmarks are added some at a time; the same landmarks added in the same
    steps have the same bits.
    """

    def __init__(self, kernel: AnyKernel, rows: Rows) -> None:
        super().__init__(kernel, rows[:0], np.empty((0, 0)))
        self._rows, self._compared_at_once = rows, compared_at_once(kernel, rows)

    @property
    def rows_per_offer(self) -> int:
        """Number of rows to offer, or to add, at a time."""
        return min(self._compared_at_once, self.rows_per_part(self._rows))

    def accept(self, numbers: Whole, thresholds: Matrix) -> Whole:
        """Return the positions in `numbers`, (n,), of rows that become landmarks if offered in order; add nothing.

        A row is accepted if its residual, after rows accepted before it, is above its threshold and above rounding.
        """
        # A row may be offered many times, and be long: each is compared once.
        distinct, places = np.unique(numbers, return_inverse=True)
        rows = self._rows[distinct]
        w, diagonal = self.of(rows)[places], own_values(self.kernel, rows)[places]
        rest = values(self.kernel, rows, rows)[np.ix_(places, places)] - w @ w.T
        left = diagonal - np.einsum("ij,ij->i", w, w)
        least = np.maximum(thresholds, ROUNDING * diagonal)
        found, start = [], 0
        while (above := np.flatnonzero(left[start:] > least[start:])).size:
            pivot = start + int(above[0])
            start = pivot + 1
            column = rest[start:, pivot] / np.sqrt(left[pivot])
            rest[start:, start:] -= np.outer(column, column)
            left[start:] -= column**2
            found.append(pivot)
        return np.array(found, np.int64)

    def add(self, numbers: Whole) -> None:
        """Add these rows, which were accepted, as landmarks."""
        rows = self._rows[numbers]
        w = self.of(rows)
        factor = _cholesky(values(self.kernel, rows, rows) - w @ w.T, ROUNDING * own_values(self.kernel, rows))
        # The inverse of [[C, 0], [w, factor]], whose upper part is `_matrix`.
        beside = np.hstack([-w @ self._matrix, np.eye(len(numbers))])
        lower = scipy.linalg.solve_triangular(factor, beside, lower=True, check_finite=False)
        self._matrix = np.vstack([np.pad(self._matrix, ((0, 0), (0, len(numbers)))), lower])
        self.landmarks = stack_rows([self.landmarks, rows])


def _cholesky(matrix: Matrix, least: Matrix) -> Matrix:
    """Return the lower Cholesky factor of a matrix, (n, n); pivots are raised to `least`, (n,), against rounding."""
    factor = matrix.copy()
    for j in range(len(factor)):
        factor[j, j] = np.sqrt(max(factor[j, j], least[j]))
        factor[j + 1 :, j] /= factor[j, j]
        factor[j + 1 :, j + 1 :] -= np.outer(factor[j + 1 :, j], factor[j + 1 :, j])
    return np.tril(factor)


class Selected(NamedTuple):
    """Selected landmarks, and figures about them."""

    landmarks: Rows
    """At most s landmarks, (s', d), as the kernel compares them: no landmark is a combination of the others."""
    report: dict[str, float]
    """Figures by name, which each selection method describes."""


Select = Callable[[AnyKernel, Rows, int, Rng, Progress, int], Selected]
"""Function that selects landmarks.

Its arguments: kernel, prepared rows (n, d), maximum number of landmarks, random generator, progress, number of threads.
The selection depends on the state of the generator at the call, and not on the threads. InvalidInput if k(x, x) is 0
for all rows.
"""


class Run:
    """One run of a selection: its progress, in stages of equal length, and the arrays to resume from."""

    def __init__(self, s: int, progress: Progress, threads: int, stages: int = 1) -> None:
        self.s, self.threads = s, threads
        self.kept: dict[str, Array] = unpack_arrays(progress.restore())
        """Arrays of the state by name. They are changed only between two pauses."""
        self._progress, self._stages = progress, stages

    def pause(self) -> None:
        """Offer the state to the progress, which may keep it, and may end the work."""
        self._progress.checkpoint(partial(pack_arrays, **self.kept))

    def basis(self, kernel: AnyKernel, rows: Rows) -> Basis:
        """Return a basis with the landmarks of an earlier attempt, added in the same steps, so with the same bits."""
        found, start = Basis(kernel, rows), 0
        for end in self.kept.get("ends", []):
            found.add(self.kept["numbers"][start:end])
            start = int(end)
            self.pause()
        return found

    def tell(self, stage: int, done: int, of: int) -> None:
        """Report that a stage is done to the part `done`/`of`, on a scale of one step for each landmark."""
        self._progress.report(self.s * (stage * of + done) // (self._stages * of), self.s)

    def by_row(
        self, name: str, of: Callable[[Rows], Matrix], rows: Rows, per_part: int, stage: int | None = None
    ) -> Matrix:
        """Compute one number for each row, (n,), in parts, and keep those of finished parts in the state `name`.

        The progress of the `stage`, if given, is reported.
        """
        n = rows.shape[0]
        values = np.empty(n)
        before = self.kept.get(name, values[:0])
        values[: len(before)] = before
        parts = list(row_blocks(n, per_part, len(before)))
        ends = iter([part.stop for part in parts])

        def fill(part: slice) -> None:
            values[part] = of(rows[part])

        def pause() -> None:
            end = next(ends)
            self.kept[name] = values[:end]
            if stage is not None:
                self.tell(stage, end, n)
            self.pause()

        for_each(fill, parts, self.threads, pause)
        return values


def streams(rng: Rng) -> Callable[[int], Rng]:
    """Return a function that makes the random generator of a step; a resumed run so draws the same numbers."""
    words = rng.integers(1 << 63, size=4).tolist()
    return lambda step: np.random.Generator(np.random.PCG64(np.random.SeedSequence([*words, step])))


def offer(basis: Basis, run: Run, candidates: Whole, thresholds: Matrix) -> int:
    """Add the candidates that `Basis.accept` accepts as landmarks, up to s in all; return how many were added."""
    taken = candidates[basis.accept(candidates, thresholds)][: run.s - len(basis)]
    if len(taken):
        basis.add(taken)
        run.kept["numbers"] = np.append(run.kept.get("numbers", taken[:0]), taken)
        run.kept["ends"] = np.append(run.kept.get("ends", np.empty(0, np.int64)), len(basis))
    return len(taken)


def take_in_order(basis: Basis, run: Run, order: Whole, stage: int = 0) -> None:
    """Add the first rows in this order as landmarks, up to s in all, except combinations of earlier ones."""
    position = int(run.kept.get("position", 0))
    while len(basis) < run.s and position < len(order):
        block = order[position : position + basis.rows_per_offer]
        offer(basis, run, block, np.zeros(len(block)))
        position += len(block)
        run.kept["position"] = np.array(position)
        run.tell(stage, max(len(basis) * len(order), position * run.s), run.s * len(order))
        run.pause()


def finish(basis: Basis, **report: float) -> Selected:
    """Return the result of a selection; InvalidInput if there are no landmarks."""
    if not len(basis):
        reason = "all rows have kernel 0, with themselves and all others: nothing can be learned from them"
        raise InvalidInput(reason, "/sampler/dataset")
    return Selected(basis.landmarks, report)
