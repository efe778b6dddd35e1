"""Box discrepancy: the mean squared error of a frequency set over a box of differences (QMC paper, section 4)."""

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from app.core.arrays import Matrix, row_blocks
from app.core.discrepancy.fourier_integrals import expansion, integrate
from app.core.discrepancy.measure import Discrepancy, Pulls, weights_of
from app.core.discrepancy.sinc_products import Points, sinc_gradients, sinc_rows, tabulated
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, ShiftInvariantKernel
from app.core.kernels.scaled import ProductKernel
from app.core.progress import Pause, Progress, no_pause, packed, unpacked
from app.core.threads import for_each

# Parts of the work for each thread, so that all end together; below so many factors a thread costs more than it gains.
_PARTS, _WORTH_A_THREAD = 4, 1 << 16
# What a thread does between two pauses, a tenth of a second or less: factors of pairs of points, and integrals.
_FACTORS_PER_PAUSE, _INTEGRALS_PER_PAUSE = 1 << 23, 1 << 17
# The square of that, and some times it, are numbers of float64.
_MOST_WEIGHT = 1e150
# What it costs to write an entry of a matrix and its mirror image, in factors.
_FACTORS_PER_ENTRY = 32
_NO_MATRIX = np.empty((0, 0))
_Told = Callable[[int], None]  # a pause that is told how many rows are done
# Half the largest float64: neither the difference of two frequencies nor its product with the box overflows below.
_MOST = np.finfo(np.float64).max / 2


def product_kernel(kernel: AnyKernel, input_dim: int) -> ProductKernel:
    """The product of one-dimensional kernels that a kernel is for so many coordinates; InvalidInput if it is none."""
    if isinstance(kernel, ShiftInvariantKernel):
        kernel.check(input_dim)
        block = kernel.blocks(input_dim)[0]
        if block.coordinates is None and isinstance(block.kernel, ProductKernel):
            return block.kernel
    raise InvalidInput(
        f"kernel {kernel.kind} is no product of one-dimensional kernels, as the box discrepancy wants; "
        "gaussian, laplacian, cauchy and correlation_rbf are",
        "/kernel",
    )


class Measured(TypedDict):
    """The box discrepancy of one set, as people compare it."""

    discrepancy_squared: Annotated[
        float | None, Field(description="D² of theorem 7; null where it leaves the range of float64.")
    ]
    log_discrepancy_squared: Annotated[float | None, Field(description="log D²; null where D² is 0.")]
    normalized: Annotated[float, Field(description="N, the mean of |k(u) − k̂(u)|² over the box.")]
    expected_monte_carlo: Annotated[
        float, Field(description="The expectation of N for as many independent draws from the kernel's law.")
    ]
    ratio: Annotated[float | None, Field(description="N over that; null where that is 0.")]


class BoxDiscrepancy(Discrepancy):
    """N = A − 2 Σ_l ξ_l v_l + Σ_{l,m} ξ_l ξ_m H_lm of frequencies w_l with weights ξ_l, for one kernel and one box.

    N is the mean over u uniform in the box Π[−b_j, b_j] of |k(u) − Σ_l ξ_l e^{−iw_l·u}|² (theorem 12), that is
    π^d Π b_j⁻¹ D²; all in it lies in [−1, 1]. H_lm = Π_j sinc(b_j(w_lj − w_mj)), v_l = Π_j g_j(w_lj) and A = Π_j A_j,
    with g_j(w) the mean of φ_j(β) cos(wβ), and A_j that of φ_j(β)², over β in [0, b_j].

    N is a difference of sums up to (Σ|ξ|)² of products of d factors. Each factor is rounded and multiplied, and s
    products are added. Below 4 (2d + s) 2⁻⁵³ (Σ|ξ|)² it is rounding, and may be negative.

    What takes long has an argument `pause`: it is called between steps of at most a quarter of a second.

    Args:
        kernel: one that is a product over the coordinates.
        box: b_j from 0 to half the largest float64, in the unit of coordinate j of the rows that the kernel compares,
            (d,); unit rows for correlation_rbf. Differences of rows with column ranges b_j lie inside. A coordinate
            with b_j = 0 has no part in N.
        threads: how many to use; the result does not depend on it.

    Raises:
        InvalidInput: the kernel is no product, or an entry of the box is negative, too large or not finite.
    """

    def __init__(self, kernel: AnyKernel, box: Matrix, threads: int = 1) -> None:
        self.box: Matrix = np.ascontiguousarray(box, dtype=np.float64)
        wrong = np.flatnonzero(~((self.box >= 0) & (self.box <= _MOST)))
        if wrong.size:
            detail = f"entry {wrong[0]} of the box is {self.box[wrong[0]]}; 0 to {_MOST:.3g} is wanted"
            raise InvalidInput(detail, "/box")
        self._threads = threads
        product = product_kernel(kernel, len(self.box))
        with np.errstate(over="ignore"):  # no kernel is wider than an infinite ratio takes it for
            ratios = np.minimum(self.box / product.scales(len(self.box)), _MOST)
        self._panels, log_energies = expansion(product, ratios)
        self.log_energy = float(log_energies.sum())
        """log A."""
        self.energy = math.exp(self.log_energy)

    def gram(self, frequencies: Matrix, pause: Pause = no_pause) -> Matrix:
        """H, (s, s), of frequencies (s, d): positive semidefinite, and singular to rounding where points are many."""
        s = len(frequencies)
        gram = np.empty((s, s))
        self._row_sums(self._points(frequencies), np.ones(s), np.empty(s), lambda _: pause(), gram)
        return gram

    def means(self, frequencies: Matrix, pause: Pause = no_pause) -> Matrix:
        """v, (s,), of frequencies (s, d)."""
        means: Matrix = self._factors(frequencies, pause)[0].prod(axis=1)
        return means

    def means_and_gradients(self, frequencies: Matrix, pause: Pause = no_pause) -> tuple[Matrix, Matrix]:
        """v, (s,), and ∂v_l/∂w_lj, (s, d)."""
        # The product of the other factors without division, as a factor may be 0.
        factors, slopes = self._factors(frequencies, pause)
        before, behind = np.ones_like(factors), np.ones_like(factors)
        np.cumprod(factors[:, :-1], axis=1, out=before[:, 1:])
        np.cumprod(factors[:, :0:-1], axis=1, out=behind[:, -2::-1])
        slopes *= before
        slopes *= behind
        slopes *= self.box
        means: Matrix = before[:, -1] * factors[:, -1]
        return means, slopes

    def normalized(self, frequencies: Matrix, weights: Matrix | None = None, pause: Pause = no_pause) -> float:
        """N of frequencies (s, d) and weights (s,), 1/s if not given."""
        sums = np.empty(len(frequencies))
        return self._normalized(frequencies, weights_of(frequencies, weights), sums, lambda _: pause())

    def value_and_gradient(
        self, frequencies: Matrix, weights: Matrix | None = None, pause: Pause = no_pause
    ) -> tuple[float, Matrix]:
        """N, and its gradient by every frequency, (s, d) (proposition 16, with the normalisation of N).

        The gradient by the weights is 2(Hξ − v), of `gram` and `means`.
        """
        points, weights = self._points(frequencies), weights_of(frequencies, weights)
        pulls, gradients = self._pulls(points, weights, points, pause)
        means, slopes = self.means_and_gradients(frequencies, pause)
        pulls -= 2 * means
        gradients -= slopes
        gradients *= 2 * weights[:, None]
        return self.energy + math.fsum(weights * pulls), gradients

    def pulls_of(self, frequencies: Matrix, weights: Matrix) -> Pulls:
        """The function that gives the pulls of a fixed set: n of them in O(n s d)."""
        fixed = self._points(frequencies)
        return lambda moving: self._pulls(fixed, weights, self._points(moving))

    def own_terms(self, frequencies: Matrix) -> tuple[Matrix, Matrix]:
        """0: H(x, x) is 1 for all x."""
        return np.zeros(len(frequencies)), np.zeros(frequencies.shape)

    def measured(
        self, frequencies: Matrix, weights: Matrix | None = None, progress: Progress | None = None
    ) -> Measured:
        """N, 0 where rounding made it negative, beside D² = N Π b_j/π and what independent draws would have: (1 − A)/s.

        Arguments are those of `normalized`. `progress` is told how many frequencies have met all those before them.
        InvalidInput where the weights are so large that N leaves the range of float64.
        """
        progress, s = progress or Progress(), len(frequencies)
        state = unpacked(progress.restored())
        sums, begun = state.get("sums", np.zeros(s)), int(state.get("done", 0))

        def keep(done: int) -> None:
            progress.report(done, s)
            progress.checkpoint(partial(packed, sums=sums, done=np.array(done)))

        weights = weights_of(frequencies, weights)
        if (together := float(np.abs(weights).sum())) > _MOST_WEIGHT:
            reason = f"errors have the square of that, for which {_MOST_WEIGHT:.3g} is the most"
            raise InvalidInput(f"the weights of the map are {together:.3g} together; {reason}")
        normalized = max(0.0, self._normalized(frequencies, weights, sums, keep, begun))
        expected = (0.0 - math.expm1(min(0.0, self.log_energy))) / s  # negated, 0 would have a sign
        log_squared = squared = None
        if normalized > 0 and self.box.all():
            log_squared = math.log(normalized) + float(np.log(self.box / np.pi).sum())
            limits = np.finfo(np.float64)
            if math.log(limits.tiny) < log_squared < math.log(limits.max):
                squared = math.exp(log_squared)
        return Measured(
            discrepancy_squared=squared,
            log_discrepancy_squared=log_squared,
            normalized=normalized,
            expected_monte_carlo=expected,
            ratio=normalized / expected if expected > 0 else None,
        )

    def _pulls(self, fixed: Points, weights: Matrix, moving: Points, pause: Pause = no_pause) -> tuple[Matrix, Matrix]:
        """Σ_l ξ_l H(w_l, x) for each of n moving points x, (n,), and its gradients by x, (n, d)."""
        d, n = moving.coordinates.shape
        pulls, gradients = np.empty(n), np.empty((n, d))

        def work(rows: slice) -> None:
            sinc_gradients(self.box, fixed, weights, moving, rows.start, pulls[rows], gradients[rows])

        self._share_out(work, n, n * fixed.coordinates.size, _FACTORS_PER_PAUSE, lambda _: pause())
        return pulls, gradients

    def _points(self, frequencies: Matrix) -> Points:
        """Frequencies (s, d) with their sines and cosines; InvalidInput where a product b_j w_j leaves float64."""
        return tabulated(self._checked(frequencies), self.box)

    def _checked(self, frequencies: Matrix) -> Matrix:
        largest = np.abs(frequencies).max(axis=0, initial=0.0)
        if not (largest <= _MOST / np.maximum(1.0, self.box)).all():
            raise InvalidInput("a frequency times its side of the box leaves the range of float64", "/box")
        return frequencies

    def _factors(self, frequencies: Matrix, pause: Pause) -> tuple[Matrix, Matrix]:
        """g_j(w_lj) and its slope by b_j w_lj, both (s, d)."""
        # Row by row in memory, whatever the frequencies are: the loop is compiled for that.
        phases = np.multiply(self._checked(frequencies), self.box, order="C")
        factors, slopes = np.empty_like(phases), np.empty_like(phases)

        def work(rows: slice) -> None:
            integrate(self._panels, phases[rows], factors[rows], slopes[rows])

        self._share_out(work, len(phases), phases.size, _INTEGRALS_PER_PAUSE, lambda _: pause())
        return factors, slopes

    def _normalized(self, frequencies: Matrix, weights: Matrix, sums: Matrix, pause: _Told, first: int = 0) -> float:
        """N; `sums` holds Σ_{l<m} ξ_l H_lm up to the row `first`. Every pair comes once, and no point with itself."""
        self._row_sums(self._points(frequencies), weights, sums, pause, first=first)
        pulls = 2 * sums
        pulls += weights
        pulls -= 2 * self.means(frequencies, lambda: pause(len(sums)))
        return self.energy + math.fsum(weights * pulls)

    def _row_sums(
        self, points: Points, weights: Matrix, sums: Matrix, pause: _Told, gram: Matrix = _NO_MATRIX, first: int = 0
    ) -> None:
        """Fill `sums` with Σ_{l<m} ξ_l H_lm from the row `first` on, and `gram` with H unless it is empty."""

        def work(rows: slice) -> None:
            sinc_rows(self.box, points, rows.start, rows.stop, weights, sums[rows], gram)

        per_pair = len(self.box) + (_FACTORS_PER_ENTRY if gram.size else 0)
        self._share_out(work, len(sums), len(sums) ** 2 * per_pair // 2, _FACTORS_PER_PAUSE, pause, first)

    def _share_out(
        self, work: Callable[[slice], None], n: int, n_factors: int, per_pause: int, pause: _Told, first: int = 0
    ) -> None:
        """Work on n rows, the last of a step first: where rows grow longer, the longest. No sum spans two rows."""
        threads = min(self._threads, max(1, n_factors // _WORTH_A_THREAD))
        steps = -(-n_factors // (per_pause * threads))
        for step in row_blocks(n - first, -(-n // max(1, steps))):
            start, rows = first + step.start, step.stop - step.start
            parts = row_blocks(rows, -(-rows // (_PARTS * threads)) if threads > 1 else rows)
            for_each(work, reversed([slice(start + at.start, start + at.stop) for at in parts]), threads)
            pause(first + step.stop)
