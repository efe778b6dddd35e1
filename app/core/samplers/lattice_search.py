"""The generating vector of a rank-1 lattice, found for one kernel on one box."""

import numpy as np
from numpy.typing import NDArray

from app.core.building import Building
from app.core.diagnostics.box_discrepancy import BoxDiscrepancy
from app.core.kernels.base import Matrix, ProductKernel
from app.core.samplers.base import inside
from app.core.samplers.learning import packed, unpacked

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
) -> NDArray[np.int64]:
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
        building: its state is the components found.
    """
    candidates = _candidates(len(box), n, rng)
    state = unpacked(building.restored())
    known = state["vector"].astype(np.int64) if state else np.empty(0, np.int64)
    vector = start.copy()
    gram, means = np.ones((n, n)), np.ones(n)
    scales = kernel.scales(len(box))
    for j in range(len(box)):
        line = kernel.model_copy(update={"length_scale": float(scales[j])})
        measure = BoxDiscrepancy(line, box[j : j + 1], building.threads)
        tried = known[j : j + 1] if j < len(known) else np.unique([start[j], *candidates[j]])
        best, chosen = np.inf, (gram, means)
        for multiplier in tried:
            frequencies = line.frequencies(inside(lattice_points(n, np.array([multiplier]), shift[j : j + 1])))
            with_it = measure.gram(frequencies)
            with_it *= gram
            its_means = measure.means(frequencies) * means
            # Without A, which no multiplier changes.
            error = with_it.sum() / n**2 - 2 * its_means.mean()
            if error < best:
                best, vector[j], chosen = error, multiplier, (with_it, its_means)
        gram, means = chosen
        building.progress(j + 1, len(box), None)
        building.checkpoint(packed(vector=vector[: j + 1]))
    return vector


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
