"""Minimisation with limited memory, in steps whose whole state can be written down."""

import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple, Self

import numpy as np
import scipy

from app.core.arrays import Matrix
from app.core.progress import Pause, Progress, begin_anew, packed, unpacked

# Pairs of the memory: so many, unless each is so large that they pass so many bytes.
_MEMORY, _MEMORY_BYTES = 20, 1 << 27
_MOST_TRIALS = 30

Objective = Callable[[Matrix, Pause], tuple[float, Matrix]]
"""Gives value, above 0, and gradient, (n,), at a point, (n,). It calls its second argument between steps."""


def minimised(
    objective: Objective, start: Matrix, iterations: int, progress: Progress
) -> tuple[Matrix, Callable[[], bytes]]:
    """A point below `start`, (n,), after up to `iterations` steps down, and the state from which it is found at once.

    Limited-memory BFGS with a line search to the strong Wolfe conditions: Nocedal and Wright (2006), Numerical
    optimization, algorithms 7.4, 7.5 and 3.5. The objective is divided by its value at the start. What `progress`
    restores is a state of this very minimisation.
    """
    saved = unpacked(progress.restored())
    if saved:
        at = _State.of(saved)
    else:
        unit, gradient = objective(start, partial(progress.checkpoint, begin_anew))
        if unit <= 0:
            return start, begin_anew
        at = _State(start, 1.0, gradient / unit, 0, [], [], unit)

    def scaled(x: Matrix, pause: Pause) -> tuple[float, Matrix]:
        value, gradient = objective(x, pause)
        return value / at.unit, gradient / at.unit

    while at.done < iterations and at.gradient.any():
        lower = _step(scaled, at, partial(progress.checkpoint, at.packed))
        if lower is None:
            if not at.moves:
                break
            # Rounding has spoilt the memory, or all that is left is rounding: the steepest descent tells.
            at = at._replace(moves=[], changes=[])
            continue
        at = lower
        progress.report(at.done, iterations, at.value * at.unit)
        progress.checkpoint(at.packed)
    return at.x, at.packed


def minimisation_bytes(n: int) -> int:
    """Memory that `minimised` takes for n numbers, with one state on its way to be kept."""
    vector = 8 * n
    return 12 * vector + 3 * min(2 * _MEMORY * vector, max(_MEMORY_BYTES, 2 * vector))


class _State(NamedTuple):
    """All that the next step depends on: the point, value and gradient there, and the last moves and their changes."""

    x: Matrix
    value: float
    gradient: Matrix
    done: int
    moves: list[Matrix]
    changes: list[Matrix]
    unit: float
    """The objective at the start, which values and gradients are divided by."""

    @classmethod
    def of(cls, arrays: dict[str, Matrix]) -> Self:
        value, done, unit = (arrays[name].item() for name in ("value", "done", "unit"))
        lists = list(arrays["moves"]), list(arrays["changes"])
        return cls(arrays["x"], value, arrays["gradient"], int(done), *lists, unit)

    def packed(self) -> bytes:
        return packed(**{name: np.array(member, dtype=np.float64) for name, member in self._asdict().items()})


def _step(objective: Objective, at: _State, pause: Pause) -> _State | None:
    """The state after a step that goes down, None where the line search finds none."""

    @lru_cache(maxsize=1)  # the search asks for value and gradient at one point by two calls
    def evaluated(x: bytes) -> tuple[float, Matrix]:
        return objective(np.frombuffer(x), pause)

    def value(x: Matrix) -> float:
        return evaluated(x.tobytes())[0]

    def gradient(x: Matrix) -> Matrix:
        return evaluated(x.tobytes())[1]

    direction = -_times_inverse_hessian(at.gradient, at.moves, at.changes)
    with warnings.catch_warnings():
        # A search that finds nothing is answered below.
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
    """Algorithm 7.4: the memory's estimate of the inverse Hessian, times the gradient."""
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
