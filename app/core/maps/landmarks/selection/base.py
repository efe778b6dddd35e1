"""Common parts of the ways to select landmarks: kernel values, a basis, results, states, and rows in an order."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy
from scipy import sparse

from app.core.arrays import Array, Matrix, Rows, Whole, row_blocks
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
    """The kernel of prepared rows, both dense or both sparse, (n, d) and (m, d) to (n, m).

    That of dense rows is exact, as nearly dependent rows are told apart by it. Sparse rows may have billions of
    columns: they are made dense a few at a time, if at all.
    """
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) or kernel.compares_sparse:
        return kernel.exact(x, y)
    found = np.empty((x.shape[0], y.shape[0]))
    for some in row_blocks(x.shape[0], _SPARSE_ROWS):
        of, u, v = _drop_columns(kernel, x[some], y)
        blocks, out = kernel_blocks(of, v, _DTYPE), found[some]
        for part in row_blocks(len(out), blocks.rows_per_block):
            blocks.write(u[part], out[part])
    return found


def _drop_columns(
    kernel: AnyKernel, x: sparse.csr_array, y: sparse.csr_array
) -> tuple[AnyKernel, sparse.csr_array, sparse.csr_array]:
    """A kernel and rows of fewer columns with the same values, where the kernel is known to allow it.

    Columns are left out in which no row has an entry, as all differences are 0 there.
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
    """The kernel of each row with itself, (n,)."""
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
    """Multiplications of a matrix product that take as long as `values` takes for one row of x, on average."""
    if not y.shape[0]:
        return 0
    if isinstance(x, np.ndarray) or kernel.compares_sparse:
        return kernel.exact_operations(x, y) // int(x.shape[0])
    return kernel_blocks(kernel, y, _DTYPE).operations(x) // int(x.shape[0])


def stack_rows(blocks: Sequence[Rows]) -> Rows:
    """Blocks of rows below each other; all are dense, or all are sparse."""
    if isinstance(blocks[0], np.ndarray):
        return np.concatenate([block for block in blocks if isinstance(block, np.ndarray)])
    return sparse.csr_array(sparse.vstack([block for block in blocks if sparse.issparse(block)], format="csr"))


ROUNDING = 1e-10
"""A residual below this part of k(x, x) counts as 0: the last landmarks then lose few digits to those before."""

# What is computed in one part, a tenth of a second or less: kernel values, multiplications, entries of rows.
_VALUES_PER_PART, _OPERATIONS_PER_PART, _ENTRIES_PER_PART = 1 << 17, 1 << 26, 1 << 20
_MOST_PER_OFFER = 256


class Coordinates:
    """Coordinates w(x) = k(x, L) Mᵀ of rows, for landmarks L and a matrix M, (s, s), by kernel values in float64."""

    def __init__(self, kernel: AnyKernel, landmarks: Rows, matrix: Matrix) -> None:
        self.kernel, self.landmarks, self._matrix = kernel, landmarks, matrix

    def __len__(self) -> int:
        return len(self._matrix)

    def of(self, rows: Rows) -> Matrix:
        """The coordinates of the rows, (n, s)."""
        if not len(self):
            return np.empty((rows.shape[0], 0))
        # One product for a block of rows: its bits hang on the size of the block, which no number of threads changes.
        return values(self.kernel, rows, self.landmarks) @ self._matrix.T

    def residuals(self, rows: Rows, least: float = ROUNDING) -> Matrix:
        """k(x, x) − ‖w(x)‖² of the rows, (n,); 0 where it is not above this part of k(x, x)."""
        diagonal, w = own_values(self.kernel, rows), self.of(rows)
        left: Matrix = diagonal - np.einsum("ij,ij->i", w, w)
        left[left <= least * diagonal] = 0
        return left

    def rows_per_part(self, rows: Rows) -> int:
        """Of how many rows the coordinates are computed between two pauses."""
        s, compared = max(1, len(self)), operations_per_row(self.kernel, rows, self.landmarks)
        most = min(_VALUES_PER_PART // s, _OPERATIONS_PER_PART // (s * s + compared))
        if isinstance(rows, np.ndarray):
            # Landmarks are brought into float64 too, so that as many rows take no more memory.
            most = min(most, max(s, _ENTRIES_PER_PART // int(rows.shape[1])))
        return max(1, most)


class Basis(Coordinates):
    """Landmarks among some rows, and coordinates in which ⟨w(x), w(y)⟩ is their Nyström approximation of k(x, y).

    With K(L, L) = C Cᵀ, w(x) = k(x, L) C^(−T). Landmarks are added some at a time; the same in the same steps have
    the same bits.
    """

    def __init__(self, kernel: AnyKernel, rows: Rows) -> None:
        super().__init__(kernel, rows[:0], np.empty((0, 0)))
        self._rows = rows

    @property
    def rows_per_offer(self) -> int:
        """How many rows to offer, or to add, at a time."""
        return min(_MOST_PER_OFFER, self.rows_per_part(self._rows))

    def accept(self, numbers: Whole, thresholds: Matrix) -> Whole:
        """Which of these rows, (n,), become landmarks, if they are offered one after the other; nothing is added.

        A row is accepted if its residual, after those accepted before it, is above its threshold and no rounding.
        """
        rows = self._rows[numbers]
        w, diagonal = self.of(rows), own_values(self.kernel, rows)
        rest = values(self.kernel, rows, rows) - w @ w.T
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
        """Make landmarks of these rows, which were accepted."""
        rows = self._rows[numbers]
        w = self.of(rows)
        factor = _cholesky(values(self.kernel, rows, rows) - w @ w.T, ROUNDING * own_values(self.kernel, rows))
        # The inverse of [[C, 0], [w, factor]], whose upper part is there.
        beside = np.hstack([-w @ self._matrix, np.eye(len(numbers))])
        lower = scipy.linalg.solve_triangular(factor, beside, lower=True, check_finite=False)
        self._matrix = np.vstack([np.pad(self._matrix, ((0, 0), (0, len(numbers)))), lower])
        self.landmarks = stack_rows([self.landmarks, rows])


def _cholesky(matrix: Matrix, least: Matrix) -> Matrix:
    """The lower Cholesky factor of a matrix, (n, n), whose pivots are at least these, (n,), but for rounding."""
    factor = matrix.copy()
    for j in range(len(factor)):
        factor[j, j] = np.sqrt(max(factor[j, j], least[j]))
        factor[j + 1 :, j] /= factor[j, j]
        factor[j + 1 :, j + 1 :] -= np.outer(factor[j + 1 :, j], factor[j + 1 :, j])
    return np.tril(factor)


class Selected(NamedTuple):
    """Landmarks, and figures about them."""

    landmarks: Rows
    """At most s of them, (s', d), as the kernel compares them: none is a combination of the others."""
    report: dict[str, float]
    """As the methods say."""


Select = Callable[[AnyKernel, Rows, int, Rng, Progress, int], Selected]
"""Selects landmarks: kernel, prepared rows (n, d), how many at most, random numbers, progress, number of threads.

What it selects depends on the state of the random numbers when it is called, and not on the threads. InvalidInput if
all rows have kernel 0 with themselves.
"""


class Run:
    """One run of a selection: its progress, in stages of equal length, and the arrays it goes on from."""

    def __init__(self, s: int, progress: Progress, threads: int, stages: int = 1) -> None:
        self.s, self.threads = s, threads
        self.kept: dict[str, Array] = unpack_arrays(progress.restore())
        """The state, by name. It is changed only between two pauses."""
        self._progress, self._stages = progress, stages

    def pause(self) -> None:
        """Offer the state."""
        self._progress.checkpoint(partial(pack_arrays, **self.kept))

    def basis(self, kernel: AnyKernel, rows: Rows) -> Basis:
        """A basis with the landmarks that an earlier attempt has found, in the same steps, so with the same bits."""
        found, start = Basis(kernel, rows), 0
        for end in self.kept.get("ends", []):
            found.add(self.kept["numbers"][start:end])
            start = int(end)
            self.pause()
        return found

    def tell(self, stage: int, done: int, of: int) -> None:
        """Report how much of a stage is done, as if there were a step for each landmark."""
        self._progress.report(self.s * (stage * of + done) // (self._stages * of), self.s)

    def by_row(
        self, name: str, of: Callable[[Rows], Matrix], rows: Rows, per_part: int, stage: int | None = None
    ) -> Matrix:
        """One number for each row, (n,), in parts; those of finished parts are kept. A stage is told of, if given."""
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
    """Gives random numbers of a step, the same whether or not the steps before were done by this process."""
    words = rng.integers(1 << 63, size=4).tolist()
    return lambda step: np.random.Generator(np.random.PCG64(np.random.SeedSequence([*words, step])))


def offer(basis: Basis, run: Run, candidates: Whole, thresholds: Matrix) -> int:
    """Make landmarks of those candidates that are accepted, as `Basis.accept` says, up to s in all; their count."""
    taken = candidates[basis.accept(candidates, thresholds)][: run.s - len(basis)]
    if len(taken):
        basis.add(taken)
        run.kept["numbers"] = np.append(run.kept.get("numbers", taken[:0]), taken)
        run.kept["ends"] = np.append(run.kept.get("ends", np.empty(0, np.int64)), len(basis))
    return len(taken)


def take_in_order(basis: Basis, run: Run, order: Whole, stage: int = 0) -> None:
    """Make landmarks of the first s rows in this order that are no combinations of those before."""
    position = int(run.kept.get("position", 0))
    while len(basis) < run.s and position < len(order):
        block = order[position : position + basis.rows_per_offer]
        offer(basis, run, block, np.zeros(len(block)))
        position += len(block)
        run.kept["position"] = np.array(position)
        run.tell(stage, max(len(basis) * len(order), position * run.s), run.s * len(order))
        run.pause()


def finish(basis: Basis, **report: float) -> Selected:
    """The result; InvalidInput if there are no landmarks."""
    if not len(basis):
        reason = "all rows have kernel 0, with themselves and all others: nothing can be learned from them"
        raise InvalidInput(reason, "/sampler/dataset")
    return Selected(basis.landmarks, report)
