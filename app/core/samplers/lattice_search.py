"""The generating vector of a rank-1 lattice, found for one kernel on one box."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from app.core.building import Building
from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from app.core.kernels.base import Matrix, ProductKernel
from app.core.progress import Pause, begin_anew, packed, unpacked
from app.core.samplers.base import inside

MOST_CANDIDATES = 64
"""Multipliers tried for each component: all units modulo n up to n = 64 or so, a random subset beyond."""


def learned_vector(
    kernel: ProductKernel,
    box: Matrix,
    start: NDArray[np.int64],
    shift: Matrix,
    n: int,
    rng: np.random.Generator,
    building: Building,
) -> tuple[NDArray[np.int64], Callable[[], bytes]]:
    """Component by component, the multiplier that makes the box discrepancy of the coordinates so far least.

    H and v are products over the coordinates: with those of the components before, a candidate costs one comparison of
    all pairs of points in one coordinate, O(n²), whatever the dimension.

    Args:
        kernel: of the frequencies.
        box: b_j, (d,).
        start: multipliers to try beside those drawn, (d,).
        shift: of the lattice, (d,).
        n: number of points.
        rng: draws the candidates.
        building: told of every candidate.

    Returns:
        The multipliers, (d,), and the state from which they are found at once.
    """
    tried = [np.unique([z, *some]) for z, some in zip(start, _candidates(len(box), n, rng), strict=True)]
    total, done = sum(map(len, tried)), 0
    # The components found, and of the next the candidates behind, the best of them and its error.
    progress = building.progress
    state = unpacked(progress.restored())
    keep = partial(packed, **state) if state else begin_anew
    known = state["vector"].astype(np.int64) if state else np.empty(0, np.int64)
    vector = start.copy()
    gram, means, energy = np.ones((n, n)), np.ones(n), 1.0
    scales = kernel.scales(len(box))
    for j in range(len(box)):
        line = _Component(kernel, float(scales[j]), box[j : j + 1], shift[j : j + 1], n, building.threads)
        energy *= line.energy
        behind, best = 0, np.inf
        if j < len(known):
            behind, vector[j] = len(tried[j]), known[j]
        elif j == len(known) and state:
            behind, vector[j], best = int(state["behind"]), int(state["multiplier"]), float(state["error"])
        # What was chosen before the interruption is made again.
        chosen = line.joined(vector[j], gram, means, partial(progress.checkpoint, keep)) if behind else (gram, means)
        done += behind
        for i in range(behind, len(tried[j])):
            with_it, its_means = line.joined(tried[j][i], gram, means, partial(progress.checkpoint, keep))
            # Without A, which no multiplier changes.
            error = with_it.sum() / n**2 - 2 * its_means.mean()
            if error < best:
                best, vector[j], chosen = error, tried[j][i], (with_it, its_means)
            done += 1
            # That of the coordinates so far: each one more adds to what the points must fit.
            progress.report(done, total, max(0.0, float(energy + best)) if np.isfinite(best) else None)
            numbers = {"behind": i + 1, "multiplier": vector[j], "error": best}
            arrays = {name: np.array(one) for name, one in numbers.items()}
            keep = partial(packed, vector=vector[:j].copy(), **arrays)
            progress.checkpoint(keep)
        gram, means = chosen
    return vector, keep


class _Component:
    """One coordinate of a lattice, with its part of the box discrepancy.

    Args:
        kernel: of the frequencies.
        scale: σ_j.
        side: b_j, (1,).
        shift: of the lattice in this coordinate, (1,).
        n: number of points.
        threads: how many to use.
    """

    def __init__(self, kernel: ProductKernel, scale: float, side: Matrix, shift: Matrix, n: int, threads: int) -> None:
        self._line = kernel.model_copy(update={"length_scale": scale})
        self._measure = BoxDiscrepancy(self._line, side, threads)
        self._shift, self._n = shift, n
        self.energy = math.exp(self._measure.log_energy)
        """A_j."""

    def joined(self, multiplier: int, gram: Matrix, means: Matrix, pause: Pause) -> tuple[Matrix, Matrix]:
        """H, (n, n), and v, (n,), of the coordinates before with this one of the multiplier."""
        points = lattice_points(self._n, np.array([multiplier]), self._shift)
        frequencies = self._line.frequencies(inside(points))
        with_it = self._measure.gram(frequencies, pause)
        with_it *= gram
        return with_it, self._measure.means(frequencies) * means


def lattice_points(n: int, multipliers: NDArray[np.int64], shift: Matrix) -> Matrix:
    """Point i is {i·z/n + shift}, (n, d); products are taken modulo n, so that no digit is lost."""
    steps = np.multiply.outer(np.arange(n, dtype=np.int64), multipliers)
    steps %= n
    points: Matrix = steps / n
    points += shift
    points %= 1
    return points


def _candidates(d: int, n: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Units modulo n for each component: all of them, or a random subset of its own."""
    units = np.arange(1, max(2, n))
    units = units[np.gcd(units, n) == 1]
    if len(units) <= MOST_CANDIDATES:
        return [units] * d
    return [rng.choice(units, MOST_CANDIDATES, replace=False) for _ in range(d)]
