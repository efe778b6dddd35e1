"""Rank-1 lattices."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.core.arrays import Matrix, Whole
from app.core.building import Building
from app.core.discrepancy.box_discrepancy import BoxDiscrepancy, product_kernel
from app.core.errors import InvalidInput
from app.core.kernels.base import ProductKernel, SpectralKernel
from app.core.papers import QMC
from app.core.progress import Pause, begin_anew, pack_arrays, unpack_arrays
from app.core.samplers.base import FrequencySet, PointSampler, Rng, SizeAdvice, check_dimensions, inside
from app.core.samplers.learning import PRODUCT_LAW, LearningFields, add_report

_LEAST_EMBEDDED, _MOST_EMBEDDED = 1 << 10, 1 << 20
_MOST_LEARNED = 1 << 12
_BYTES_PER_PAIR = 40
_VECTOR: Whole = np.load(Path(__file__).with_name("kuo_lattice_33002.npy")).astype(np.int64)
_MOST_DIMENSIONS = len(_VECTOR)


class Lattice(LearningFields, PointSampler):
    """Multiples of one generating vector, modulo 1, randomly shifted.

    The vector is Frances Kuo's `lattice-33002-1024-1048576` (University of New South Wales), made component by
    component for all powers of two from 1024 to 1048576 at once. At one s its entries begin to repeat or mirror each
    other, long before that many columns must: such entries are replaced. With `learn` a vector is searched instead,
    component by component, for the least mean squared error over a box.
    """

    source = (
        "Cools, Kuo, Nuyens (2006), Constructing embedded lattice rules for multivariate integration; the "
        f"vector: Frances Kuo, https://web.maths.unsw.edu.au/~fkuo/lattice/; as features: {QMC}, section 6.1; learn: a "
        "suggestion of its section 5"
    )
    choose_when = (
        f"Beside sobol and halton, for s a power of two from {_LEAST_EMBEDDED} to {_MOST_EMBEDDED}; the QMC paper "
        "found its Gram error below monte_carlo's. With learn the Gram error on other rows fell in two cases of three, "
        "to .9 of it on average; moment_matching over halton was better in two of three."
    )
    limits = (
        f"input_dim of at most {_MOST_DIMENSIONS}; one less for kernels matern and rational_quadratic",
        f"with learn {PRODUCT_LAW}, and s of at most {_MOST_LEARNED}; not as a base",
        "without learn neither box nor dataset",
    )
    best_at_powers_of_two = True

    kind: Literal["lattice"]
    shift: bool = Field(True, description="False moves the lattice by half a step instead of at random.")
    learn: bool = Field(False, description="Search a vector for this kernel on the box, instead of the one for all.")

    @property
    def learns(self) -> bool:
        """Whether `learn` is set."""
        return self.learn

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Memory of the points; with `learn`, also of all their pairs, for a component and for those before it."""
        return super().drawing_bytes(s, input_dim) + (_BYTES_PER_PAIR * s**2 if self.learn else 0)

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse more dimensions than the vector is known for, and searches that cannot be made."""
        check_dimensions(self.kind, _MOST_DIMENSIONS, kernel, input_dim)
        if self.learn:
            if self.on_rows:
                detail = "a lattice is learned on a box; global_adaptive takes differences data"
                raise InvalidInput(detail, "/sampler/differences")
            self.check_differences(kernel, "lattice with learn", input_dim)
            if s > _MOST_LEARNED:
                reason = f"a lattice is learned of at most {_MOST_LEARNED} points, whose pairs are all compared"
                raise InvalidInput(SizeAdvice(reason, s, _MOST_LEARNED), "/s")
        elif self.box is not None or self.dataset is not None or self.on_rows:
            field = "differences" if self.on_rows else "dataset" if self.box is None else "box"
            raise InvalidInput("lattice takes a box or a dataset with learn only", f"/sampler/{field}")

    def learned_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng, building: Building) -> FrequencySet:
        """The lattice of the vector found, or of the vector for all where no better was."""
        if not self.learn:
            return self.frequency_set(kernel, s, input_dim, rng)
        measure, _, rows = self.learning(kernel, input_dim, building)
        if not isinstance(measure, BoxDiscrepancy):
            raise AssertionError("check() lets no other differences through")
        product, shift = product_kernel(kernel, input_dim), self._shift(s, input_dim, rng)
        for_all = _multipliers(s, input_dim)
        learned, keep = learned_vector(product, measure.box, for_all, shift, s, rng, building)
        start, end = (
            FrequencySet(product.frequencies(inside(lattice_points(s, vector, shift))), np.full(s, 1 / s))
            for vector in (for_all, learned)
        )
        pause = partial(building.progress.checkpoint, keep)
        before, after = (measure.evaluate(one.frequencies, pause=pause) for one in (start, end))
        found, both = end if after < before else start, (before, min(before, after))
        return add_report(found, start, "lattice without learn", both, kernel, rows, building.use, pause)

    def for_summand(self, number: int, before: int) -> Self:
        """Without a random shift, the lattice moved to its next place in the lattice sequence."""
        return self if self.shift else self.after(number)

    def points(self, n: int, d: int, rng: Rng) -> Matrix:
        """The lattice of the vector for all."""
        return lattice_points(n, _multipliers(n, d), self._shift(n, d, rng))

    def point_warnings(self, n: int, d: int) -> tuple[str, ...]:
        """Warnings where columns repeat, s is no power of two that the vector was made for, or no shift is random."""
        warnings: list[str] = []
        shared = d - len(np.unique(_classes(_multipliers(n, d), n)))
        if shared:
            reason = f"lattice repeats or mirrors {shared} of its {d} columns, which move together (halton never does)"
            warnings.append(SizeAdvice(reason, n, 1 << (4 * d - 1).bit_length()))
        if n & (n - 1) or not _LEAST_EMBEDDED <= n <= _MOST_EMBEDDED:
            reason = f"the generating vector was made for powers of two from {_LEAST_EMBEDDED} to {_MOST_EMBEDDED}"
            better = min(max(1 << (n - 1).bit_length(), _LEAST_EMBEDDED), _MOST_EMBEDDED)
            warnings.append(SizeAdvice(reason, n, better))
        if not self.shift:
            warnings.append("lattice without random shift was moved by half a step, away from the origin")
        return tuple(warnings)

    def _shift(self, n: int, d: int, rng: Rng) -> Matrix:
        if self.shift:
            return rng.random(d)
        # Points n·k, n·k + 1, … of a lattice sequence (Cools, Kuo, Nuyens) are the lattice of n points, moved so far.
        mirrored = int(f"{self._before:b}"[::-1], 2) / (1 << max(1, self._before.bit_length()))
        return (0.5 / n + mirrored * _multipliers(n, d) / n) % 1


def _classes(multipliers: Whole, n: int) -> Whole:
    """The smaller of z and n − z: the two make mirrored columns, which depend on each other as much as equal ones."""
    return np.minimum(multipliers, -multipliers % n)


def _multipliers(n: int, d: int) -> Whole:
    """The generating vector modulo n, shape (d,), no two entries of one class while there are classes left.

    Entries whose class came before, and those that share a factor with n and so reach a part of its n values only,
    are replaced by classes of units nobody took. There are φ(n)/2 of them, n/4 for powers of two.
    """
    multipliers = _VECTOR[:d] % n
    units = np.flatnonzero(np.gcd(multipliers, n) == 1)
    kept = units[np.unique(_classes(multipliers[units], n), return_index=True)[1]]
    if len(kept) < d:
        candidates = np.arange(1, n // 2 + 1)
        candidates = candidates[np.gcd(candidates, n) == 1]
        free = np.setdiff1d(candidates, _classes(multipliers[kept], n), assume_unique=True)
        # In an order without a pattern, and always the same: neighbouring multipliers would make a pattern.
        free = np.random.Generator(np.random.PCG64(n)).permutation(free)
        replaced = np.setdiff1d(np.arange(d), kept)[: len(free)]
        multipliers[replaced] = free[: len(replaced)]
    return multipliers


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
    state = unpack_arrays(building.progress.restore())
    keep = partial(pack_arrays, **state) if state else begin_anew

    def pause() -> None:
        building.progress.checkpoint(keep)

    vector, scales = start.copy(), kernel.scales(len(box))
    joined, energy = (np.ones((n, n)), np.ones(n)), 1.0
    for j in range(len(box)):
        line = _Component(kernel, float(scales[j]), box[j : j + 1], shift[j : j + 1], n, building.threads)
        energy *= line.energy
        best = _Best.restore(state, j, len(tried[j])) or _Best(0, int(start[j]), np.inf)
        # What was chosen before the interruption is made again.
        chosen = line.join(best.multiplier, joined, pause) if best.behind else joined
        done += best.behind
        for candidate in tried[j][best.behind :].tolist():
            gram, means = line.join(candidate, joined, pause)
            error = float(gram.sum() / n**2 - 2 * means.mean())
            if error < best.error - _ROUNDING * abs(error):
                best, chosen = best._replace(multiplier=candidate, error=error), (gram, means)
            best, done = best._replace(behind=best.behind + 1), done + 1
            # That of the coordinates so far: each one more adds to what the points must fit.
            building.progress.report(done, total, max(0.0, energy + best.error) if np.isfinite(best.error) else None)
            keep = partial(best.pack, vector[:j].copy())
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
    def restore(cls, state: dict[str, NDArray[Any]], j: int, n_candidates: int) -> Self | None:
        """The search for component j as a stored state left it; None if the state has not come to it."""
        if not state or j > len(state["vector"]):
            return None
        if j < len(state["vector"]):
            return cls(n_candidates, int(state["vector"][j]), 0.0)
        return cls(int(state["behind"]), int(state["multiplier"]), float(state["error"]))

    def pack(self, vector: Whole) -> bytes:
        """The state of the search, in which these components were found before."""
        return pack_arrays(vector=vector, **{name: np.array(one) for name, one in self._asdict().items()})


class _Component:
    """One coordinate of a lattice of n points, with its part of the box discrepancy; σ_j, b_j and shift are its own."""

    def __init__(self, kernel: ProductKernel, scale: float, side: Matrix, shift: Matrix, n: int, threads: int) -> None:
        self._line = kernel.model_copy(update={"length_scale": scale})
        self._measure = BoxDiscrepancy(self._line, side, threads)
        self._shift, self._n = shift, n
        self.energy = math.exp(self._measure.log_energy)
        """A_j."""

    def join(self, multiplier: int, before: Joined, pause: Pause) -> Joined:
        """H and v of the coordinates before with this one of the multiplier."""
        frequencies = self._line.frequencies(inside(lattice_points(self._n, np.array([multiplier]), self._shift)))
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
