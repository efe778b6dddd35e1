"""The generating vector of a rank-1 lattice, found for one kernel on one box."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Matrix, Whole
from app.core.building import Building
from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from app.core.kernels.scaled import ProductKernel
from app.core.progress import Pause, begin_anew, packed, unpacked
from app.core.samplers.base import Rng, inside

MOST_CANDIDATES = 64
"""Multipliers tried for each component: all units modulo n up to n = 64 or so, a random subset beyond."""

# Multipliers whose errors differ by less are equally good, as all are for the first component: the first is taken, and
# not the one that this processor happens to round down.
_ROUNDING = 1e-12

Joined = tuple[Matrix, Matrix]
"""H, (n, n), and v, (n,), of some coordinates of n points, as `BoxDiscrepancy` has them."""


def learned_vector(
    kernel: ProductKernel, box: Matrix, start: Whole, shift: Matrix, n: int, rng: Rng, building: Building
) -> tuple[Whole, Callable[[], bytes]]:
    """Component by component, the multiplier that makes the box discrepancy of the coordinates so far least.

    H and v are products over the coordinates: with those of the components before, a candidate costs one comparison of
    all pairs of points in one coordinate, O(n²), whatever the dimension.

    The box has the sides b_j, (d,); `start` are multipliers to try beside those that `rng` draws, `shift` is that of
    the lattice of n points, both (d,). Returned beside the multipliers is the state from which they are found at once.
    """
    tried = [np.unique([z, *some]) for z, some in zip(start, _candidates(len(box), n, rng), strict=True)]
    total, done = sum(map(len, tried)), 0
    state = unpacked(building.progress.restored())
    keep = partial(packed, **state) if state else begin_anew

    def pause() -> None:
        building.progress.checkpoint(keep)

    vector, scales = start.copy(), kernel.scales(len(box))
    joined, energy = (np.ones((n, n)), np.ones(n)), 1.0
    for j in range(len(box)):
        line = _Component(kernel, float(scales[j]), box[j : j + 1], shift[j : j + 1], n, building.threads)
        energy *= line.energy
        best = _Best.restored(state, j, len(tried[j])) or _Best(0, int(start[j]), np.inf)
        # What was chosen before the interruption is made again.
        chosen = line.joined(best.multiplier, joined, pause) if best.behind else joined
        done += best.behind
        for candidate in tried[j][best.behind :].tolist():
            gram, means = line.joined(candidate, joined, pause)
            error = float(gram.sum() / n**2 - 2 * means.mean())
            if error < best.error - _ROUNDING * abs(error):
                best, chosen = best._replace(multiplier=candidate, error=error), (gram, means)
            best, done = best._replace(behind=best.behind + 1), done + 1
            # That of the coordinates so far: each one more adds to what the points must fit.
            building.progress.report(done, total, max(0.0, energy + best.error) if np.isfinite(best.error) else None)
            keep = partial(best.packed, vector[:j].copy())
            pause()
        vector[j], joined = best.multiplier, chosen
    return vector, keep


class _Best(NamedTuple):
    """The best of the candidates for a component that have been tried."""

    behind: int
    """How many have been tried."""
    multiplier: int
    error: float
    """The box discrepancy of the coordinates so far, less A, which no multiplier changes."""

    @classmethod
    def restored(cls, state: dict[str, NDArray[Any]], j: int, n_candidates: int) -> Self | None:
        """The search for component j as a stored state left it; None if the state has not come to it."""
        if not state or j > len(state["vector"]):
            return None
        if j < len(state["vector"]):
            return cls(n_candidates, int(state["vector"][j]), 0.0)
        return cls(int(state["behind"]), int(state["multiplier"]), float(state["error"]))

    def packed(self, vector: Whole) -> bytes:
        """The state of the search, in which these components were found before."""
        return packed(vector=vector, **{name: np.array(one) for name, one in self._asdict().items()})


class _Component:
    """One coordinate of a lattice of n points, with its part of the box discrepancy; σ_j, b_j and shift are its own."""

    def __init__(self, kernel: ProductKernel, scale: float, side: Matrix, shift: Matrix, n: int, threads: int) -> None:
        self._line = kernel.model_copy(update={"length_scale": scale})
        self._measure = BoxDiscrepancy(self._line, side, threads)
        self._shift, self._n = shift, n
        self.energy = math.exp(self._measure.log_energy)
        """A_j."""

    def joined(self, multiplier: int, before: Joined, pause: Pause) -> Joined:
        """H and v of the coordinates before with this one of the multiplier."""
        points = lattice_points(self._n, np.array([multiplier]), self._shift)
        frequencies = self._line.frequencies(inside(points))
        gram = self._measure.gram(frequencies, pause)
        gram *= before[0]
        return gram, self._measure.means(frequencies) * before[1]


def lattice_points(n: int, multipliers: Whole, shift: Matrix) -> Matrix:
    """Point i is {i·z/n + shift}, (n, d); products are taken modulo n, so that no digit is lost."""
    steps = np.multiply.outer(np.arange(n, dtype=np.int64), multipliers)
    steps %= n
    points: Matrix = steps / n
    points += shift
    points %= 1
    return points


def _candidates(d: int, n: int, rng: Rng) -> list[Whole]:
    """Units modulo n for each component: all of them, or a random subset of its own."""
    units = np.arange(1, max(2, n))
    units = units[np.gcd(units, n) == 1]
    if len(units) <= MOST_CANDIDATES:
        return [units] * d
    return [rng.choice(units, MOST_CANDIDATES, replace=False) for _ in range(d)]
