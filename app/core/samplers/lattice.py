"""Rank-1 lattices."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Matrix, Whole
from app.core.building import Building
from app.core.discrepancy.box_discrepancy import BoxDiscrepancy, product_kernel
from app.core.errors import InvalidInput
from app.core.kernels.base import ProductKernel, SpectralKernel
from app.core.model import QMC
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
    component for all powers of two from 1024 to 1048576 at once. For a given s, its entries begin to repeat or mirror
    each other long before the number of columns makes this unavoidable: such entries are replaced. With `learn`, a
    vector is searched for instead, component by component, that minimises the mean squared error over a box.

    Choose when:
        Use it as an alternative to sobol and halton if s is a power of two from 1024 to 1048576; the QMC paper found
        its Gram error below that of monte_carlo. With learn, the Gram error on other rows fell in two cases of three,
        to .9 of it on average; moment_matching over halton was better in two of three.
    """

    source = (
        "Cools, Kuo, Nuyens (2006), Constructing embedded lattice rules for multivariate integration; the "
        f"vector: Frances Kuo, https://web.maths.unsw.edu.au/~fkuo/lattice/; as features: {QMC}, section 6.1; learn: a "
        "suggestion of its section 5"
    )
    limits = (
        f"input_dim of at most {_MOST_DIMENSIONS}; one less for kernels matern and rational_quadratic",
        f"with learn {PRODUCT_LAW}, and s of at most {_MOST_LEARNED}; not as a base",
        "without learn neither box nor dataset",
    )
    best_at_powers_of_two = True

    kind: Literal["lattice"]
    shift: bool = True
    """Whether to shift the lattice at random; if false, it is shifted by half a step."""
    learn: bool = False
    """Whether to search for a generating vector for this kernel and box instead of using the general one."""

    @property
    def learns(self) -> bool:
        """Whether `learn` is set."""
        return self.learn

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Return the memory of the points and, with `learn`, of their pairs for a component and for those before it."""
        return super().drawing_bytes(s, input_dim) + (_BYTES_PER_PAIR * s**2 if self.learn else 0)

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse more dimensions than the vector has, impossible searches, and a box or dataset without `learn`."""
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
        """Return the lattice of the learned vector, or of Kuo's vector if the search found no better one."""
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
        """Return the sampler for a summand; without a random shift, its lattice is the next of the lattice sequence."""
        return self if self.shift else self.after(number)

    def is_seeded(self) -> bool:
        """Return whether the lattice is shifted at random."""
        return self.shift

    def points(self, n: int, d: int, rng: Rng) -> Matrix:
        """Return the lattice of Kuo's vector."""
        return lattice_points(n, _multipliers(n, d), self._shift(n, d, rng))

    def point_warnings(self, n: int, d: int) -> tuple[str, ...]:
        """Return warnings if columns repeat, s is not a power of two the vector was made for, or the shift is fixed."""
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
        # Points n·k, n·k + 1, … of a lattice sequence (Cools, Kuo, Nuyens) are the lattice of n points with this shift.
        mirrored = int(f"{self._before:b}"[::-1], 2) / (1 << max(1, self._before.bit_length()))
        return (0.5 / n + mirrored * _multipliers(n, d) / n) % 1


def _classes(multipliers: Whole, n: int) -> Whole:
    """Return the smaller of z and n − z, which make mirrored columns: these are as dependent as equal columns."""
    return np.minimum(multipliers, -multipliers % n)


def _multipliers(n: int, d: int) -> Whole:
    """Return the generating vector modulo n, (d,), with no two entries of one class while there are unused classes.

    A class is a pair z and n − z. Entries whose class has occurred before are replaced by units of unused classes, as
    are entries that share a factor with n and so reach only part of the n values. There are φ(n)/2 classes of units,
    n/4 for powers of two.
    """
    multipliers = _VECTOR[:d] % n
    units = np.flatnonzero(np.gcd(multipliers, n) == 1)
    kept = units[np.unique(_classes(multipliers[units], n), return_index=True)[1]]
    if len(kept) < d:
        candidates = np.arange(1, n // 2 + 1)
        candidates = candidates[np.gcd(candidates, n) == 1]
        free = np.setdiff1d(candidates, _classes(multipliers[kept], n), assume_unique=True)
        # In an irregular order that is always the same: neighbouring multipliers would make a pattern.
        free = np.random.Generator(np.random.PCG64(n)).permutation(free)
        replaced = np.setdiff1d(np.arange(d), kept)[: len(free)]
        multipliers[replaced] = free[: len(replaced)]
    return multipliers


MOST_CANDIDATES = 64
"""Most multipliers tried for each component: all units modulo n if n is up to about 64, a random subset beyond."""

# Multipliers whose errors differ by less are equally good, as all are for the first component. The first of them is
# taken, so that the choice does not depend on how the processor rounds.
_ROUNDING = 1e-12

Joined = tuple[Matrix, Matrix]
"""H, (n, n), and v, (n,), of some coordinates of n points, as defined in `BoxDiscrepancy`."""


def learned_vector(
    kernel: ProductKernel, box: Matrix, start: Whole, shift: Matrix, n: int, rng: Rng, building: Building
) -> tuple[Whole, Callable[[], bytes]]:
    """Choose, component by component, the multiplier that minimises the box discrepancy of the coordinates so far.

    H and v are products over the coordinates: given H and v of the components before, a candidate costs one comparison
    of all pairs of points in one coordinate, O(n²), whatever the dimension.

    The box has the sides b_j, (d,). `start` holds multipliers to try beside the ones that `rng` draws, and `shift` is
    the shift of the lattice of n points, both (d,). Returned are the multipliers and a function that makes a state:
    resuming from that state finds the multipliers at once.
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
        # H and v of the multiplier chosen before an interruption are computed again.
        chosen = line.join(best.multiplier, joined, pause) if best.behind else joined
        done += best.behind
        for candidate in tried[j][best.behind :].tolist():
            gram, means = line.join(candidate, joined, pause)
            error = float(gram.sum() / n**2 - 2 * means.mean())
            if error < best.error - _ROUNDING * abs(error):
                best, chosen = best._replace(multiplier=candidate, error=error), (gram, means)
            best, done = best._replace(behind=best.behind + 1), done + 1
            # The objective is for the coordinates so far: each further coordinate adds to what the points must fit.
            building.progress.report(done, total, max(0.0, energy + best.error) if np.isfinite(best.error) else None)
            keep = partial(best.pack, vector[:j].copy())
            pause()
        vector[j], joined = best.multiplier, chosen
    return vector, keep


class _Best(NamedTuple):
    """Best of the candidates tried so far for a component."""

    behind: int
    """Number of candidates tried so far."""
    multiplier: int
    error: float
    """Box discrepancy of the coordinates so far, minus A, which does not depend on the multiplier."""

    @classmethod
    def restore(cls, state: dict[str, NDArray[Any]], j: int, n_candidates: int) -> Self | None:
        """Return the search for component j from a stored state; None if the search had not reached component j."""
        if not state or j > len(state["vector"]):
            return None
        if j < len(state["vector"]):
            return cls(n_candidates, int(state["vector"][j]), 0.0)
        return cls(int(state["behind"]), int(state["multiplier"]), float(state["error"]))

    def pack(self, vector: Whole) -> bytes:
        """Pack the state of the search; `vector` holds the components found before."""
        return pack_arrays(vector=vector, **{name: np.array(one) for name, one in self._asdict().items()})


class _Component:
    """One coordinate of a lattice of n points with its own σ_j, b_j and shift, and its part of the box discrepancy."""

    def __init__(self, kernel: ProductKernel, scale: float, side: Matrix, shift: Matrix, n: int, threads: int) -> None:
        self._line = kernel.model_copy(update={"length_scale": scale})
        self._measure = BoxDiscrepancy(self._line, side, threads)
        self._shift, self._n = shift, n
        self.energy = math.exp(self._measure.log_energy)
        """A_j, the factor of A that belongs to this coordinate."""

    def join(self, multiplier: int, before: Joined, pause: Pause) -> Joined:
        """Return H and v of the coordinates before, joined by this coordinate with the multiplier."""
        frequencies = self._line.frequencies(inside(lattice_points(self._n, np.array([multiplier]), self._shift)))
        gram = self._measure.gram(frequencies, pause)
        gram *= before[0]
        return gram, self._measure.means(frequencies) * before[1]


def lattice_points(n: int, multipliers: Whole, shift: Matrix) -> Matrix:
    """Return the points {i·z/n + shift}, (n, d), i < n; products are taken modulo n, so that no digit is lost."""
    steps = np.multiply.outer(np.arange(n, dtype=np.int64), multipliers)
    steps %= n
    points: Matrix = steps / n
    points += shift
    points %= 1
    return points


def _candidates(d: int, n: int, rng: Rng) -> list[Whole]:
    """Return units modulo n for each component: all units, or a random subset drawn for each component."""
    units = np.arange(1, max(2, n))
    units = units[np.gcd(units, n) == 1]
    if len(units) <= MOST_CANDIDATES:
        return [units] * d
    return [rng.choice(units, MOST_CANDIDATES, replace=False) for _ in range(d)]
