"""Bases of the samplers: of all, of those of frequencies, of those that learn, and of those that only place points."""

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import PrivateAttr

from app.core.arrays import Matrix
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, SpectralKernel
from app.core.model import Kind

# Quantile functions are infinite at 0 and 1. A scrambled coordinate can round to either.
_LEAST = 2.0**-53

# Of what a frequency has once: its weight, a uniform more, and what is on the way to them.
_BYTES_PER_FREQUENCY = 56
# Coordinates that any method draws within a second or so.
_COORDINATES_PER_SECOND = 1 << 24
# Matrices from this size on take more than a second to decompose.
_LONG_DIMENSIONS = 1024
# What the sum of weights may miss of 1 without a warning.
_MOST_LOST = 0.01

PRODUCTS_PER_SECOND = 1 << 33
"""Multiplications of matrix products that pass within a second or so."""

Rng = np.random.Generator


class SizeAdvice(str):
    """A refusal or warning about a number of frequencies, in words for the only set of a map.

    It also knows its parts: where the set is one of several, what to say is the number for all of them.
    """

    reason: str
    better: tuple[int, ...]

    def __new__(cls, reason: str, came: int, *better: int) -> Self:
        """Say the reason, what came, and the numbers to take instead."""
        advice = super().__new__(cls, f"{reason}; s = {came}, take {' or '.join(map(str, better))}")
        advice.reason, advice.better = reason, better
        return advice

    def for_each_of(self, sets: int) -> str:
        """The advice, with the numbers that give each of the sets a better one."""
        return f"{self.reason}; take s = {' or '.join(str(sets * size) for size in self.better)}"


class FrequencySet(NamedTuple):
    """Frequencies (n, d) and weights ξ (n,) with k̂(δ) = Σ ξ_l cos(w_l·δ), and what the client should know of them."""

    frequencies: Matrix
    weights: Matrix
    warnings: tuple[str, ...] = ()
    report: dict[str, float] | None = None
    """Figures of how it was learned, if it was; see `report_of`."""

    def only(self, kept: NDArray[np.bool_]) -> "FrequencySet":
        """The set without some of its frequencies."""
        return self._replace(frequencies=self.frequencies[kept], weights=self.weights[kept])


class AnySampler(Kind):
    """A method to build a map. The family whose maps it builds lists it in `samplers`."""

    untried: ClassVar[str] = ""
    """Why recommendations try no sampler of this kind unless a request names it; empty where `suggest` gives some."""

    if TYPE_CHECKING:  # as a field it would come first in the text of every spec
        kind: str

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, most: int, dataset: str | None) -> tuple[Self, ...]:
        """The samplers of this kind that recommendations try, unless a request names others.

        There is room for `most` frequencies, hashes or landmarks. Samplers that learn from rows learn from `dataset`;
        where it is None, there are no rows to learn from. What is refused for the kernel may be among them. Here it is
        the sampler as it is by default, unless the kind says why it is `untried`.
        """
        return () if cls.untried else (cls.model_validate({"kind": cls.kind_name()}),)

    @property
    def learns(self) -> bool:
        """Whether the sampler fits its set to one kernel: takes time, and may take a dataset."""
        return False

    def as_before(self) -> Self:
        """The sampler as versions read it that had other defaults; itself where they never changed."""
        return self

    @property
    def learned_from(self) -> str | None:
        """The name of the dataset that it takes rows of, its field of that name; None if it takes none."""
        dataset: str | None = getattr(self, "dataset", None)
        return dataset


class FrequencySampler(AnySampler):
    """A method that turns a kernel's spectral law into a finite set of frequencies."""

    best_at_powers_of_two: ClassVar[bool] = False
    """Whether so many points are balanced, and other numbers less so."""

    serves_subsets: ClassVar[bool] = True
    """Whether it may make sets for summands of a kernel that look at some coordinates only; never if it learns."""

    held_at_once: ClassVar[int] = 2
    """Numbers of eight bytes that drawing holds for each coordinate: most often its uniform and itself."""

    decomposes: ClassVar[bool] = False
    """Whether drawing takes s·input_dim² multiplications and the decomposition of a matrix (input_dim, input_dim)."""

    def count(self, s: int | None, input_dim: int) -> int:
        """How many frequencies to draw, or the most that a rule may make; InvalidInput if `s` is needed and missing."""
        if s is None:
            raise InvalidInput("s is missing; this sampler needs to be told how many frequencies to draw", "/s")
        return s

    def best_size(self, most: int) -> int:
        """The number of frequencies, up to `most`, that the method makes best use of."""
        return 1 << (most.bit_length() - 1) if self.best_at_powers_of_two else most

    def weighs_alike(self) -> bool:
        """Whether all frequencies of a set have one weight."""
        return True

    def off_law(self, input_dim: int) -> str | None:
        """Why a frequency by itself, over maps of other seeds, does not follow the law of the kernel; None if it does.

        In a line of ASCII. Points that no seed changes count as following it: as a set they come near it.
        """
        return "are learned" if self.learns else None

    def for_summand(self, number: int, before: int) -> Self:
        """The sampler for summand `number` of a kernel, counted from 0, before which `before` frequencies were drawn.

        It is this one, unless its points are not random: then it goes on where the sampler before it ended. With the
        same points in every summand, their errors would add up.
        """
        return self

    def form_warnings(self, real: bool) -> tuple[str, ...]:
        """Warnings for the client about this sampler with a real form, or with the complex one."""
        return ()

    def is_long(self, s: int, input_dim: int) -> bool:
        """Whether to draw s frequencies, which nothing interrupts, may take more than a second."""
        matrices = self.decomposes and (s * input_dim**2 > PRODUCTS_PER_SECOND or input_dim > _LONG_DIMENSIONS)
        return matrices or s * input_dim > _COORDINATES_PER_SECOND

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Memory that the drawing of s frequencies takes at the most, these among it."""
        return (8 * self.held_at_once * input_dim + _BYTES_PER_FREQUENCY) * s

    @abstractmethod
    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Raise InvalidInput, naming the rule and what would work, if the combination has no meaning.

        For rules with a count of their own, s is that count.
        """

    @abstractmethod
    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Draw the set; all randomness comes from `rng`."""

    def learned_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng, building: Building) -> FrequencySet:
        """Draw the set, or learn it, for which samplers look at the surroundings of the build."""
        return self.frequency_set(kernel, s, input_dim, rng)


class LearnedSampler(FrequencySampler):
    """A method that always learns."""

    @property
    def learns(self) -> bool:
        """Yes, always."""
        return True

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Learn the set without surroundings: in one thread, unwatched, and without datasets."""
        return self.learned_set(kernel, s, input_dim, rng, Building())

    @abstractmethod
    def learned_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng, building: Building) -> FrequencySet:
        """Learn the set; all randomness comes from `rng`, and all else that the spec does not say from `building`."""


def check_dimensions(kind: str, most: int, kernel: SpectralKernel, input_dim: int) -> None:
    """Raise InvalidInput if frequencies of the kernel take more uniforms than a sequence of `most` dimensions has."""
    extra = kernel.uniforms_per_frequency(input_dim) - input_dim
    if input_dim + extra > most:
        reason = f"input_dim {input_dim} passes the {most - extra} dimensions of {kind}; monte_carlo has no limit"
        raise InvalidInput(reason, "/sampler/kind")


def check_products(kind: str, s: int, input_dim: int, most_dimensions: int, most: int, instead: str) -> None:
    """Refuse more than `most_dimensions`, and more than `most` = s·input_dim² products; another sampler takes both."""
    if input_dim > most_dimensions:
        raise InvalidInput(
            f"input_dim {input_dim} passes the {most_dimensions} dimensions of {kind}, whose time grows with their "
            f"cube; sampler {instead} works",
            "/sampler/kind",
        )
    if s * input_dim**2 > most:
        reason = f"{kind} takes s·d² multiplications, {most} at the most (sampler {instead} takes more)"
        raise InvalidInput(SizeAdvice(reason, s, most // input_dim**2), "/s")


def sum_warnings(total: float, advice: str = "") -> tuple[str, ...]:
    """The warning about weights whose sum is not 1, with advice, none if the sum is near enough."""
    if abs(total - 1) > _MOST_LOST:
        return (f"the weights sum to {total:.4g}, so that k(x, x) is not 1{advice}",)
    return ()


def inside(points: Matrix) -> Matrix:
    """Points of the closed unit cube, moved in place into the open one."""
    return np.clip(points, _LEAST, 1 - _LEAST, out=points)


class PointSampler(FrequencySampler):
    """A method that places s points in the unit cube; the kernel's quantile functions make them frequencies."""

    _before: int = PrivateAttr(0)
    """How many points other summands of a kernel have taken of a sequence in which nothing is random."""

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Points serve every kernel; a method with limits of its own overrides this."""

    @abstractmethod
    def points(self, n: int, d: int, rng: Rng) -> Matrix:
        """`n` points in the closed unit cube, shape (n, d)."""

    def point_warnings(self, n: int, d: int) -> tuple[str, ...]:
        """Warnings for the client about n points in d dimensions."""
        return ()

    def after(self, before: int) -> Self:
        """The same sequence without so many points at its start."""
        later = self.model_copy()
        later._before = before
        return later

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng) -> FrequencySet:
        """Points through the quantile functions, each with weight 1/s."""
        n_uniforms = kernel.uniforms_per_frequency(input_dim)
        frequencies = kernel.frequencies(inside(self.points(s, n_uniforms, rng)))
        return FrequencySet(frequencies, np.full(s, 1 / s), self.point_warnings(s, n_uniforms))
