"""Frequencies that are moved all at once to minimise their mean squared error."""

import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
import scipy
from pydantic import Field

from app.core.arrays import Matrix
from app.core.building import Building
from app.core.kernels.base import SpectralKernel
from app.core.model import QMC
from app.core.progress import Pause, Progress, begin_anew, pack_arrays, unpack_arrays
from app.core.samplers.base import FrequencySet, LearnedSampler, Rng
from app.core.samplers.halton import Halton
from app.core.samplers.learning import LONG_LEARNING, MOST_OPERATIONS, PRODUCT_LAW, LearningFields, add_report
from app.core.samplers.points import Points, check_base


class GlobalAdaptive(LearningFields, LearnedSampler):
    """Frequencies of the base, moved all together along the gradient until their mean squared error is small.

    Each has weight 1/s. The error is taken over a box or over the differences of rows; the `report` has it before
    (`objective_start`) and after (`objective_end`). Over a box, it is that of the diagnostic `box-discrepancy`.

    Choose when:
        Use it with differences data for the best frequencies for rows similar to a dataset. On held-out rows its Gram
        error was .33 of that of moment_matching over halton at s = 64 (geometric mean over 11 datasets; no better on
        one, of one-hot rows), and .20 at s = 256 (eight datasets). Use it over a box only for differences that fill the
        box: the normalised box discrepancy on cpu in 21 dimensions, a quarter of the box, s = 100, is 1.37e-4 for
        halton and below 6e-8 for global_adaptive, but the Gram error on other rows was above that of halton in half of
        the cases.
    """

    source = f"{QMC}, section 5.1, proposition 16, by L-BFGS instead of nonlinear conjugate gradients"
    limits = (
        f"on a box {PRODUCT_LAW}",
        f"on a box iterations·s²·input_dim of at most {MOST_OPERATIONS}; on rows so many steps as take hours",
        "those of the base",
    )
    untried = LONG_LEARNING

    kind: Literal["global_adaptive"]
    base: Points = Halton(kind="halton")
    """Sampler that draws the initial frequencies."""
    iterations: Annotated[int, Field(ge=1, le=100_000)] = 200
    """Number of steps of the minimisation."""

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Return the memory of drawing the base, of the minimisation and, with differences data, of the rows."""
        return self.base.drawing_bytes(s, input_dim) + minimisation_bytes(s * input_dim) + self.rows_bytes(s, input_dim)

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse a kernel or box that cannot be learned on, a base that learns, and more than some hours of work."""
        self.check_differences(kernel, self.kind, input_dim)
        check_base(self.base, kernel, s, input_dim)
        if self.on_rows:
            self.check_gradients(self.kind, self.iterations, s, input_dim)
        else:
            self.check_operations(self.kind, self.iterations * input_dim, s)

    def learned_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng, building: Building) -> FrequencySet:
        """Return the frequencies after the last step."""
        measure, scales, rows = self.learning(kernel, input_dim, building)
        base = self.base.frequency_set(kernel, s, input_dim, rng)

        def objective(standard: Matrix, pause: Pause) -> tuple[float, Matrix]:
            # In units of the law, so that one step length suits coordinates of all units.
            value, gradient = measure.value_and_gradient(standard.reshape(s, input_dim) / scales, pause=pause)
            return value, (gradient / scales).ravel()

        progress = building.progress
        end, state = minimise(objective, (base.frequencies * scales).ravel(), self.iterations, progress)
        found = base._replace(frequencies=end.reshape(s, input_dim) / scales)
        pause = partial(progress.checkpoint, state)
        both = measure.evaluate(base.frequencies, pause=pause), measure.evaluate(found.frequencies, pause=pause)
        return add_report(found, base, f"base {self.base.kind}", both, kernel, rows, building.use, pause)


# Most pairs that the minimisation remembers, and most bytes that they may take; one pair is always kept.
_MEMORY, _MEMORY_BYTES = 20, 1 << 27
_MOST_TRIALS = 30

Objective = Callable[[Matrix, Pause], tuple[float, Matrix]]
"""Function from a point, (n,), to value, above 0, and gradient, (n,). It calls its second argument between steps."""


def minimise(
    objective: Objective, start: Matrix, iterations: int, progress: Progress
) -> tuple[Matrix, Callable[[], bytes]]:
    """Minimise from `start`, (n,), in up to `iterations` steps; return the point found and a function that packs it.

    Resuming from the packed state finds the point at once. A state that `progress` restores must be of this very
    minimisation. The method is limited-memory BFGS with a line search to the strong Wolfe conditions: Nocedal and
    Wright (2006), Numerical optimization, algorithms 7.4, 7.5 and 3.5. The objective is divided by its value at the
    start.
    """
    saved = unpack_arrays(progress.restore())
    if saved:
        at = _State.of(saved)
    else:
        unit, gradient = objective(start, partial(progress.checkpoint, begin_anew))
        if unit <= 0:
            return start, begin_anew
        at = _State(start, 1.0, gradient / unit, 0, [], [], unit)

    def scale(x: Matrix, pause: Pause) -> tuple[float, Matrix]:
        value, gradient = objective(x, pause)
        return value / at.unit, gradient / at.unit

    while at.done < iterations and at.gradient.any():
        lower = _step(scale, at, partial(progress.checkpoint, at.pack))
        if lower is None:
            if not at.moves:
                break
            # Rounding has spoilt the memory, or only rounding errors are left: a step of steepest descent decides.
            at = at._replace(moves=[], changes=[])
            continue
        at = lower
        progress.report(at.done, iterations, at.value * at.unit)
        progress.checkpoint(at.pack)
    return at.x, at.pack


def minimisation_bytes(n: int) -> int:
    """Return the memory that `minimise` takes for n numbers, including one state that is being stored."""
    vector = 8 * n
    return 12 * vector + 3 * min(2 * _MEMORY * vector, max(_MEMORY_BYTES, 2 * vector))


class _State(NamedTuple):
    """Everything that the next step depends on: point, value, gradient, and the last moves with gradient changes."""

    x: Matrix
    value: float
    gradient: Matrix
    done: int
    moves: list[Matrix]
    changes: list[Matrix]
    unit: float
    """Value of the objective at the start, by which values and gradients are divided."""

    @classmethod
    def of(cls, arrays: dict[str, Matrix]) -> Self:
        value, done, unit = (arrays[name].item() for name in ("value", "done", "unit"))
        lists = list(arrays["moves"]), list(arrays["changes"])
        return cls(arrays["x"], value, arrays["gradient"], int(done), *lists, unit)

    def pack(self) -> bytes:
        return pack_arrays(**{name: np.array(member, dtype=np.float64) for name, member in self._asdict().items()})


def _step(objective: Objective, at: _State, pause: Pause) -> _State | None:
    """Return the state after one descent step; None if the line search finds no such step."""

    @lru_cache(maxsize=1)  # the search asks for value and gradient at one point by two calls
    def evaluate(x: bytes) -> tuple[float, Matrix]:
        return objective(np.frombuffer(x), pause)

    def value(x: Matrix) -> float:
        return evaluate(x.tobytes())[0]

    def gradient(x: Matrix) -> Matrix:
        return evaluate(x.tobytes())[1]

    direction = -_times_inverse_hessian(at.gradient, at.moves, at.changes)
    with warnings.catch_warnings():
        # A search that finds no step is handled below.
        warnings.simplefilter("ignore", RuntimeWarning)
        step = scipy.optimize.line_search(
            value, gradient, at.x, direction, at.gradient, at.value, maxiter=_MOST_TRIALS
        )[0]
    if step is None or value(x := at.x + step * direction) >= at.value:
        return None
    kept = min(_MEMORY, max(1, _MEMORY_BYTES // (2 * x.nbytes)))
    moves, changes = [*at.moves, x - at.x], [*at.changes, gradient(x) - at.gradient]
    return _State(x, value(x), gradient(x), at.done + 1, moves[-kept:], changes[-kept:], at.unit)


def _times_inverse_hessian(gradient: Matrix, moves: list[Matrix], changes: list[Matrix]) -> Matrix:
    """Multiply the gradient by the inverse Hessian, estimated from the remembered pairs (algorithm 7.4)."""
    if not moves:
        return gradient / max(1.0, float(np.linalg.norm(gradient)))
    product = gradient.copy()
    factors = []
    for move, change in zip(reversed(moves), reversed(changes), strict=True):
        factor = (move @ product) / (move @ change)
        product -= factor * change
        factors.append(factor)
    product *= (moves[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for move, change, factor in zip(moves, changes, reversed(factors), strict=True):
        product += (factor - (change @ product) / (move @ change)) * move
    return product
