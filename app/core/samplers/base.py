"""Base classes: any sampler, samplers of frequencies, samplers that learn, and samplers that only place points."""

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import PrivateAttr

from app.core.arrays import Matrix
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, ShiftInvariantKernel, SpectralKernel
from app.core.model import Kind

# Quantile functions are infinite at 0 and 1. A scrambled coordinate can round to either.
_LEAST = 2.0**-53

# Per frequency, whatever its dimension: its weight, one more uniform, and temporary values.
_BYTES_PER_FREQUENCY = 56
# Coordinates that any method draws within about a second.
_COORDINATES_PER_SECOND = 1 << 24
# Matrices from this size on take more than a second to decompose.
_LONG_DIMENSIONS = 1024
# Largest difference between the sum of the weights and 1 that causes no warning.
_MOST_LOST = 0.01

PRODUCTS_PER_SECOND = 1 << 33
"""Multiplications in matrix products that take about a second."""

Rng = np.random.Generator


class SizeAdvice(str):
    """A refusal or warning about a number of frequencies, worded for a map with a single set.

    It also keeps its parts, so that `for_each_of` can word it for a map with several sets.
    """

    reason: str
    better: tuple[int, ...]

    def __new__(cls, reason: str, came: int, *better: int) -> Self:
        """Build the text from the reason, the number that was requested (`came`), and the numbers to take instead."""
        advice = super().__new__(cls, f"{reason}; s = {came}, take {' or '.join(map(str, better))}")
        advice.reason, advice.better = reason, better
        return advice

    def for_each_of(self, sets: int) -> str:
        """Return the advice for a map with `sets` sets: total numbers that give each set a better size."""
        return f"{self.reason}; take s = {' or '.join(str(sets * size) for size in self.better)}"


class FrequencySet(NamedTuple):
    """Frequencies (n, d) and weights ξ (n,) with k̂(δ) = Σ ξ_l cos(w_l·δ), with warnings and figures for the client."""

    frequencies: Matrix
    weights: Matrix
    warnings: tuple[str, ...] = ()
    report: dict[str, float] | None = None
    """Figures that describe the learning, if the set was learned; see `add_report`."""

    def only(self, kept: NDArray[np.bool_]) -> "FrequencySet":
        """Return the set reduced to the frequencies for which `kept` is true."""
        return self._replace(frequencies=self.frequencies[kept], weights=self.weights[kept])


class AnySampler(Kind):
    """A method to build a map. The family of the maps that it builds lists it in `samplers`."""

    untried: ClassVar[str] = ""
    """Why recommendations skip this kind unless a request names it; empty if `suggest` returns samplers."""

    if TYPE_CHECKING:  # as a field it would come first in the text of every spec
        kind: str

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, most: int, dataset: str | None) -> tuple[Self, ...]:
        """Return the samplers of this kind that recommendations try, unless a request names others.

        The base class returns the sampler with its default fields, or none if the kind says why it is `untried`. The
        result may include samplers that are refused for the kernel. `most` is the largest number of frequencies,
        hashes or landmarks. Samplers that learn from rows use `dataset`; if it is None, there are no rows.
        """
        return () if cls.untried else (cls.model_validate({"kind": cls.kind_name()}),)

    always_learns: ClassVar[bool] = False
    """Whether samplers of this kind always learn."""

    @property
    def learns(self) -> bool:
        """Whether the sampler fits its set to one kernel, which takes time and may need a dataset."""
        return self.always_learns

    def as_before(self) -> Self:
        """Return the sampler as earlier versions with other defaults read it; itself if the defaults never changed."""
        return self

    bytes_per_entry: ClassVar[int] = 0
    """Memory for each entry of a row while it is looked at, if a row is looked at as a whole; else 0."""

    @property
    def learned_from(self) -> str | None:
        """Name of the dataset that the sampler learns from (its field `dataset`); None if it uses no dataset."""
        dataset: str | None = getattr(self, "dataset", None)
        return dataset


class FrequencySampler(AnySampler):
    """A method that turns a kernel's spectral law into a finite set of frequencies."""

    best_at_powers_of_two: ClassVar[bool] = False
    """Whether sets are balanced if s is a power of two, and less balanced for other s."""

    serves_subsets: ClassVar[bool] = True
    """Whether it can make sets for summands of a kernel that use only some coordinates; never if it learns."""

    neighbours_are_independent: ClassVar[bool] = False
    """Whether frequencies with successive numbers are independent, so that the law of bands of their bits holds."""

    held_at_once: ClassVar[int] = 2
    """Eight-byte numbers per coordinate held while drawing: usually the uniform and the coordinate itself."""

    decomposes: ClassVar[bool] = False
    """Whether drawing takes s·input_dim² multiplications and decomposes a matrix (input_dim, input_dim)."""

    def count(self, s: int | None, input_dim: int) -> int:
        """Return how many frequencies to draw, or the most that a rule may make; InvalidInput if `s` is missing."""
        if s is None:
            raise InvalidInput("s is missing; this sampler needs to be told how many frequencies to draw", "/s")
        return s

    def best_size(self, most: int) -> int:
        """Return the number of frequencies, up to `most`, at which the method works best."""
        return 1 << (most.bit_length() - 1) if self.best_at_powers_of_two else most

    def weighs_alike(self) -> bool:
        """Return whether all frequencies of a set have the same weight."""
        return True

    def off_law(self, input_dim: int) -> str | None:
        """Return why a single frequency, over maps of all seeds, does not follow the kernel's law; None if it does.

        The reason is one line of ASCII. Points that do not depend on the seed count as following the law, because the
        set as a whole approximates it.
        """
        return "are learned" if self.learns else None

    def is_seeded(self) -> bool:
        """Return whether the frequencies depend on the seed."""
        return True

    def law_doubts(self, kernel: ShiftInvariantKernel, input_dim: int) -> tuple[str, ...]:
        """Return, where frequencies follow the law, what an interval leaves out that is made from codes by that law.

        Each is one line of ASCII.
        """
        if self.is_seeded():
            return ()
        return (
            f"{self.kind} without a seed: the interval is that of random frequencies, and misses the kernel of rows "
            "whose difference suits these points badly, such as one that is equal in many columns",
        )

    def for_summand(self, number: int, before: int) -> Self:
        """Return the sampler for summand `number` of a kernel, from 0, after `before` frequencies have been drawn.

        This is the sampler itself, unless its points are not random: then it continues where the sampler of the
        previous summand ended. With the same points in every summand, the errors of the summands would add up.
        """
        return self

    def form_warnings(self, real: bool) -> tuple[str, ...]:
        """Return warnings for the client about this sampler with a real form (`real`) or with the complex form."""
        return ()

    def is_long(self, s: int, input_dim: int) -> bool:
        """Return whether drawing s frequencies, which cannot be interrupted, may take more than a second."""
        matrices = self.decomposes and (s * input_dim**2 > PRODUCTS_PER_SECOND or input_dim > _LONG_DIMENSIONS)
        return matrices or s * input_dim > _COORDINATES_PER_SECOND

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Return the most memory that drawing s frequencies takes, including the frequencies."""
        return (8 * self.held_at_once * input_dim + _BYTES_PER_FREQUENCY) * s

    @abstractmethod
    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Raise InvalidInput, naming the rule and what would work, if the combination is not valid.

        For a rule that fixes the number of its points, s is that number.
        """

    @abstractmethod
    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Draw the set; all randomness comes from `rng`."""

    def learned_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng, building: Building) -> FrequencySet:
        """Draw the set, or learn it; samplers that learn take threads, progress and rows from `building`."""
        return self.frequency_set(kernel, s, input_dim, rng)


class LearnedSampler(FrequencySampler):
    """A method that always learns its set."""

    always_learns = True

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Learn the set in one thread, without progress reports and without datasets."""
        return self.learned_set(kernel, s, input_dim, rng, Building())

    @abstractmethod
    def learned_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng, building: Building) -> FrequencySet:
        """Learn the set; all randomness comes from `rng`, and all else that is not in the spec from `building`."""


def check_dimensions(kind: str, most: int, kernel: SpectralKernel, input_dim: int) -> None:
    """Raise InvalidInput if a frequency of the kernel takes more uniforms than the `most` dimensions of a sequence."""
    extra = kernel.uniforms_per_frequency(input_dim) - input_dim
    if input_dim + extra > most:
        reason = f"input_dim {input_dim} passes the {most - extra} dimensions of {kind}; monte_carlo has no limit"
        raise InvalidInput(reason, "/sampler/kind")


def check_products(kind: str, s: int, input_dim: int, most_dimensions: int, most: int, instead: str) -> None:
    """Refuse more than `most_dimensions` dimensions or `most` products s·input_dim²; advise the sampler `instead`."""
    if input_dim > most_dimensions:
        raise InvalidInput(
            f"{kind} takes up to {most_dimensions} dimensions, got {input_dim}; sampler {instead} works",
            "/sampler/kind",
        )
    if s * input_dim**2 > most:
        reason = f"{kind} takes s·d² multiplications, {most} at the most (sampler {instead} takes more)"
        raise InvalidInput(SizeAdvice(reason, s, most // input_dim**2), "/s")


def sum_warnings(total: float, advice: str = "") -> tuple[str, ...]:
    """Return a warning, with advice, about weights whose sum `total` is not 1; no warning if the sum is close to 1."""
    if abs(total - 1) > _MOST_LOST:
        return (f"the weights sum to {total:.4g}, so that k(x, x) is not 1{advice}",)
    return ()


def inside(points: Matrix) -> Matrix:
    """Move points of the closed unit cube into the open unit cube, in place, and return them."""
    return np.clip(points, _LEAST, 1 - _LEAST, out=points)


class PointSampler(FrequencySampler):
    """A method that places s points in the unit cube; the kernel's quantile functions turn them into frequencies."""

    _before: int = PrivateAttr(0)
    """Number of points of a sequence without randomness that earlier summands of a kernel have used."""

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Accept every kernel; a method with limits of its own overrides this."""

    @abstractmethod
    def points(self, n: int, d: int, rng: Rng) -> Matrix:
        """Return `n` points in the closed unit cube, shape (n, d)."""

    def point_warnings(self, n: int, d: int) -> tuple[str, ...]:
        """Return warnings for the client about n points in d dimensions."""
        return ()

    def for_summand(self, number: int, before: int) -> Self:
        """Return the sampler for a summand; without a seed, its points continue where those of the previous ended."""
        return self if self.is_seeded() else self.after(before)

    def after(self, before: int) -> Self:
        """Return the same sequence without its first `before` points."""
        later = self.model_copy()
        later._before = before
        return later

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Map points through the kernel's quantile functions; each frequency has weight 1/s."""
        n_uniforms = kernel.uniforms_per_frequency(input_dim)
        frequencies = kernel.frequencies(inside(self.points(s, n_uniforms, rng)))
        return FrequencySet(frequencies, np.full(s, 1 / s), self.point_warnings(s, n_uniforms))
