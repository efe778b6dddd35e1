"""Frequencies that minimise the box discrepancy all at once."""

from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from app.core.arrays import Matrix
from app.core.building import Building
from app.core.kernels.base import SpectralKernel
from app.core.papers import QMC
from app.core.progress import Pause
from app.core.samplers.base import FrequencySet, LearnedSampler, Rng
from app.core.samplers.halton import Halton
from app.core.samplers.lbfgs import minimisation_bytes, minimised
from app.core.samplers.learned_report import Compared, reported
from app.core.samplers.learning import (
    MOST_OPERATIONS,
    PRODUCT_LAW,
    LearningFields,
    check_operations,
    check_products,
    gradient_products,
)
from app.core.samplers.points import Points, check_base


class GlobalAdaptive(LearningFields, LearnedSampler):
    """Frequencies of the base moved, all together and down the gradient, to a small mean squared error.

    Each has weight 1/s. The error, over a box or over the differences of rows, is `objective_start` before and
    `objective_end` after; that over a box is as in diagnostic `box_discrepancy`.
    """

    source = f"{QMC}, section 5.1, proposition 16, by L-BFGS instead of nonlinear conjugate gradients"
    choose_when = (
        "With differences data, the best frequencies for rows like those of a dataset: on rows not learned from the "
        "Gram error was .33 of that of moment_matching over halton at s = 64 (geometric mean over 11 sets of data; no "
        "better on one, of one-hot rows), and .20 at s = 256 (eight sets). On a box, for differences that fill it: "
        "normalised box discrepancy on cpu in 21 dimensions, a quarter of the box, s = 100: 1.37e-4 for halton, below "
        "6e-8 here; but the Gram error on other rows was above halton's in half of the cases."
    )
    limits = (
        f"on a box {PRODUCT_LAW}",
        f"on a box iterations·s²·input_dim of at most {MOST_OPERATIONS}; on rows so many steps as take hours",
        "those of the base",
    )
    untried = (
        "It learns for minutes. On the differences of rows it makes better frequencies than others do, but landmarks "
        "have smaller errors at as many columns."
    )

    kind: Literal["global_adaptive"]
    base: Points = Field(Halton(kind="halton"), description="Sampler of the frequencies to start from.")
    iterations: Annotated[int, Field(ge=1, le=100_000, description="Steps of the minimisation.")] = 200

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """The memory of the minimisation, and the pairs of some frequencies at a time."""
        return self.base.drawing_bytes(s, input_dim) + minimisation_bytes(s * input_dim) + self.rows_bytes(s, input_dim)

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse a kernel or box that nothing is learned on, a base that learns, and more work than some hours."""
        self.check_differences(kernel, self.kind, input_dim)
        check_base(self.base, kernel, s, input_dim)
        if self.on_rows:
            check_products(self.kind, self.iterations * gradient_products(input_dim), s)
        else:
            check_operations(self.kind, self.iterations * input_dim, s)

    def learned_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng, building: Building) -> FrequencySet:
        """The frequencies after the last step."""
        measure, scales, rows = self.learning(kernel, input_dim, building)
        base = self.base.frequency_set(kernel, s, input_dim, rng)

        def objective(standard: Matrix, pause: Pause) -> tuple[float, Matrix]:
            # In units of the law: one step length for coordinates of all units.
            value, gradient = measure.value_and_gradient(standard.reshape(s, input_dim) / scales, pause=pause)
            return value, (gradient / scales).ravel()

        progress = building.progress
        end, state = minimised(objective, (base.frequencies * scales).ravel(), self.iterations, progress)
        found = base._replace(frequencies=end.reshape(s, input_dim) / scales)
        pause = partial(progress.checkpoint, state)
        first, last = (measure.normalized(one.frequencies, pause=pause) for one in (base, found))
        compared = Compared(base, f"base {self.base.kind}", first, last)
        return reported(found, compared, kernel, rows, building.use, pause)
