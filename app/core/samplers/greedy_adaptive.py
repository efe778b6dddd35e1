"""Frequencies that are placed one after another to minimise their mean squared error."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

import numpy as np
import scipy
from pydantic import Field

from app.core.arrays import Matrix
from app.core.building import Building
from app.core.kernels.base import SpectralKernel
from app.core.model import QMC
from app.core.progress import Pause, begin_anew, pack_arrays, unpack_arrays
from app.core.samplers.base import FrequencySet, LearnedSampler, Rng
from app.core.samplers.halton import Halton
from app.core.samplers.learning import (
    LONG_LEARNING,
    MOST_OPERATIONS,
    MOST_ROWS,
    PRODUCT_LAW,
    Discrepancy,
    LearningFields,
    add_report,
)
from app.core.samplers.points import Points, check_base

# Relative decrease at which a search ends, in units of the rounding of float64: about 1e-6. A more exact minimum does
# not make the set better, as later frequencies correct the earlier ones.
_TOLERANCE = 4.5e9
# Cost of a pair of frequencies per row, in factors of a box: complex products, four at a time.
_FACTORS_PER_ROW = 2


class GreedyAdaptive(LearningFields, LearnedSampler):
    """Frequencies placed one by one, each where the mean squared error of all frequencies so far is smallest.

    Each has weight 1/s. The search for a frequency starts from each of the next `starts` frequencies of the base, and
    the best of the results is taken.

    Choose when:
        Use it with differences data if the first frequencies of the set must be a good set too, for every number of
        them. On held-out rows its Gram error was .56 of that of halton at s = 64, where global_adaptive has .27. Do not
        use it over a box: the Gram error was above that of halton in every case tried, although the normalised box
        discrepancy falls: on cpu in 21 dimensions, whole box, s = 100, it is 4.47e-3 for halton, 2e-4 for
        greedy_adaptive (4e-4 from one start) and 8e-7 for global_adaptive.
    """

    source = f"{QMC}, section 5.2"
    limits = (
        f"on a box {PRODUCT_LAW}",
        f"starts·iterations·s²·input_dim/2 of at most {MOST_OPERATIONS}; on rows {_FACTORS_PER_ROW * MOST_ROWS} in "
        "the place of input_dim",
        "those of the base",
    )
    untried = LONG_LEARNING

    held_at_once = 10

    kind: Literal["greedy_adaptive"]
    base: Points = Halton(kind="halton")
    """Sampler that draws the initial frequencies."""
    iterations: Annotated[int, Field(ge=1, le=100_000)] = 100
    """Maximum number of steps for each frequency."""
    starts: Annotated[int, Field(ge=1, le=8)] = 3
    """Number of base frequencies from which each search starts; the paper uses one."""

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Return the memory of drawing the base, of the set and, with differences data, of the rows."""
        return (
            self.base.drawing_bytes(s, input_dim) + super().drawing_bytes(s, input_dim) + self.rows_bytes(s, input_dim)
        )

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse a kernel or box that cannot be learned on, a base that learns, and more than some hours of work."""
        self.check_differences(kernel, self.kind, input_dim)
        check_base(self.base, kernel, s, input_dim)
        per_pair = _FACTORS_PER_ROW * MOST_ROWS if self.on_rows else input_dim
        self.check_operations(self.kind, self.starts * self.iterations * per_pair / 2, s)

    def learned_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng, building: Building) -> FrequencySet:
        """Return all frequencies, in the order in which they were placed."""
        measure, scales, rows = self.learning(kernel, input_dim, building)
        base = self.base.frequency_set(kernel, s, input_dim, rng)
        placed, progress = np.empty((s, input_dim)), building.progress
        state = unpack_arrays(progress.restore())
        before = state.get("frequencies", placed[:0])
        placed[: len(before)] = before
        # Σ_lm H_lm and Σ_l v_l of the frequencies placed so far.
        pairs, means = state.get("sums", np.zeros(2)).tolist()
        pause = partial(progress.checkpoint, partial(pack_arrays, **state) if state else begin_anew)
        for t in range(len(before), s):
            starts = base.frequencies[(t + np.arange(self.starts)) % s]
            placed[t] = self._next(measure, placed[:t], starts, scales, pause)
            last = placed[t : t + 1]
            pulls, _ = measure.pulls_of(placed[:t], np.ones(t))(last)
            pairs += 2 * float(pulls[0]) + 1 + float(measure.own_terms(last)[0][0])
            means += float(measure.means(last)[0])
            progress.report(t + 1, s, max(0.0, measure.energy - 2 * means / (t + 1) + pairs / (t + 1) ** 2))
            kept = partial(pack_arrays, frequencies=placed[: t + 1], sums=np.array([pairs, means]))
            pause = partial(progress.checkpoint, kept)
            pause()
        both = measure.evaluate(base.frequencies, pause=pause), measure.evaluate(placed, pause=pause)
        found = FrequencySet(placed, base.weights, base.warnings)
        return add_report(found, base, f"base {self.base.kind}", both, kernel, rows, building.use, pause)

    def _next(self, measure: Discrepancy, placed: Matrix, starts: Matrix, scales: Matrix, pause: Pause) -> Matrix:
        """Return the best frequency among the local minima next to `starts`; the searches are in units of the law.

        With one more frequency x and all weights 1/(t + 1), N is a constant plus 2/(t + 1) times the objective
        Σ_l H(w_l, x)/(t + 1) − v(x) + o(x)/(2(t + 1)).
        """
        weight = 1 / (len(placed) + 1)
        pulled = measure.pulls_of(placed, np.full(len(placed), weight))

        def objective(standard: Matrix) -> tuple[float, Matrix]:
            pause()
            at = (standard / scales)[None]
            (pulls, gradients), (own, turns) = pulled(at), measure.own_terms(at)
            means, slopes = measure.means_and_gradients(at)
            value = pulls[0] - means[0] + weight / 2 * own[0]
            return float(value), (gradients[0] - slopes[0] + weight / 2 * turns[0]) / scales

        found = [self._minimum(objective, start * scales) for start in starts]
        return min(found, key=lambda one: one[0])[1] / scales

    def _minimum(self, objective: Callable[[Matrix], tuple[float, Matrix]], start: Matrix) -> tuple[float, Matrix]:
        # The value is scaled, so that the tolerances keep their meaning however small it gets.
        value, slope = objective(start)
        unit = abs(value) or float(np.abs(slope).max()) or 1.0

        def scale(at: Matrix) -> tuple[float, Matrix]:
            value, slope = objective(at)
            return value / unit, slope / unit

        x, lowest, _ = scipy.optimize.fmin_l_bfgs_b(scale, start, maxiter=self.iterations, factr=_TOLERANCE, pgtol=1e-6)
        return float(lowest) * unit, x
