"""What a sampler of frequencies must provide, and what samplers that only place points share."""

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.kernels.base import Matrix, SpectralKernel
from app.core.model import Kind

# Quantile functions are infinite at 0 and 1. A scrambled coordinate can round to either.
_LEAST = 2.0**-53

# Of a frequency: uniforms, what the law makes of them, and what is on the way between, in float64.
_BYTES_PER_COORDINATE = 56
# Coordinates that any method draws within a second or so.
_COORDINATES_PER_SECOND = 1 << 24

PRODUCTS_PER_SECOND = 1 << 33
"""Multiplications of matrix products that pass within a second or so."""

NORMAL_LAW = "normally distributed frequencies (kernels gaussian, correlation_rbf, anova)"
"""What rules for the normal law are limited to."""


class FrequencySet(NamedTuple):
    """Frequencies (n, d) and weights ξ (n,) with k̂(δ) = Σ ξ_l cos(w_l·δ), and what the client should know of them."""

    frequencies: Matrix
    weights: Matrix
    warnings: tuple[str, ...] = ()
    report: dict[str, float] | None = None
    """Figures of how it was learned, if it was; see `report_of`."""


class DrawingCost(NamedTuple):
    """Nanoseconds of one core that drawing takes, measured from 32 to 8192 frequencies in 4 to 784 coordinates."""

    start: float
    """Per coordinate, before any frequency."""
    point: float
    """Per coordinate of a frequency."""
    product: float
    """That again per coordinate, as products of matrices take it."""

    def ns(self, s: int, input_dim: int) -> float:
        """Of s frequencies."""
        return input_dim * (self.start + s * (self.point + self.product * input_dim))


class AnySampler(Kind):
    """What a map is built by. Its class says which family of maps it builds."""

    if TYPE_CHECKING:  # as a field it would come first in the text of every spec
        kind: str

    @property
    def learns(self) -> bool:
        """Whether it fits what it makes to one kernel: takes time, and may take a dataset."""
        return False

    @property
    def learned_from(self) -> str | None:
        """The name of the dataset that it takes rows of; None if it takes none."""
        return None


class FrequencySampler(AnySampler):
    """A method that turns a kernel's spectral law into a finite set of frequencies."""

    drawing_cost: ClassVar[DrawingCost | None] = None
    """None where sets are solved for or learned, so that there is no telling."""

    def count(self, s: int | None, input_dim: int) -> int:
        """How many frequencies to draw, or the most that a rule may make; InvalidInput if `s` is needed and missing."""
        del input_dim
        if s is None:
            raise InvalidInput("s is missing; this sampler needs to be told how many frequencies to draw", "/s")
        return s

    def best_size(self, most: int) -> int:
        """The number of frequencies, up to `most`, that the method makes best use of."""
        return most

    def form_warnings(self, real: bool) -> tuple[str, ...]:
        """What the client should know about this sampler with a real form, or with the complex one."""
        del real
        return ()

    def is_long(self, s: int, input_dim: int) -> bool:
        """Whether to draw s frequencies, which nothing interrupts, may take more than a second."""
        return s * input_dim > _COORDINATES_PER_SECOND

    def drawing_ns(self, s: int, input_dim: int) -> float | None:
        """Nanoseconds of one core that the drawing of s frequencies takes; None where there is no telling."""
        return None if self.learns or self.drawing_cost is None else self.drawing_cost.ns(s, input_dim)

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Memory that the drawing of s frequencies takes at the most, these among it."""
        return _BYTES_PER_COORDINATE * s * input_dim

    @abstractmethod
    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Raise InvalidInput, naming the rule and what would work, if the combination has no meaning.

        Args:
            kernel: what the frequencies are for.
            s: how many; for rules with a count of their own, that count.
            input_dim: coordinates of a frequency.
        """

    @abstractmethod
    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: np.random.Generator) -> FrequencySet:
        """Draw the set; all randomness comes from `rng`."""

    def learned_set(
        self, kernel: SpectralKernel, s: int, input_dim: int, rng: np.random.Generator, building: Building
    ) -> FrequencySet:
        """As `frequency_set`, for samplers that learn and so look at their surroundings; others just draw."""
        del building
        return self.frequency_set(kernel, s, input_dim, rng)


class LearnedSampler(FrequencySampler):
    """A method that always learns."""

    @property
    def learns(self) -> bool:
        """It does."""
        return True

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: np.random.Generator) -> FrequencySet:
        """As `learned_set`, with no surroundings."""
        return self.learned_set(kernel, s, input_dim, rng, Building())

    @abstractmethod
    def learned_set(
        self, kernel: SpectralKernel, s: int, input_dim: int, rng: np.random.Generator, building: Building
    ) -> FrequencySet:
        """Learn the set; all randomness comes from `rng`, and all else that the spec does not say from `building`."""


def check_dimensions(kind: str, most: int, kernel: SpectralKernel, input_dim: int) -> None:
    """Refuse more uniforms than a sequence of `most` dimensions has.

    Raises:
        InvalidInput: the frequencies of `kernel` take more; some take more uniforms than coordinates.
    """
    extra = kernel.uniforms_per_frequency(input_dim) - input_dim
    if input_dim + extra > most:
        raise InvalidInput(
            f"input_dim {input_dim} passes the {most - extra} dimensions of {kind}; monte_carlo has no limit",
            "/sampler/kind",
        )


def power_of_two(most: int) -> int:
    """The largest power of two up to `most`."""
    return 1 << (most.bit_length() - 1)


def inside(points: Matrix) -> Matrix:
    """Points of the closed unit cube, moved in place into the open one."""
    return np.clip(points, _LEAST, 1 - _LEAST, out=points)


class PointSampler(FrequencySampler):
    """A method that places s points in the unit cube; the kernel's quantile functions make them frequencies."""

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Points serve every kernel; a method with limits of its own overrides this."""

    @abstractmethod
    def points(self, n: int, d: int, rng: np.random.Generator) -> Matrix:
        """`n` points in the closed unit cube, shape (n, d)."""

    def point_warnings(self, n: int, d: int) -> tuple[str, ...]:
        """What the client should know about n points in d dimensions."""
        del n, d
        return ()

    def frequency_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: np.random.Generator) -> FrequencySet:
        """Points through the quantile functions, each with weight 1/s."""
        points = self.points(s, kernel.uniforms_per_frequency(input_dim), rng)
        return FrequencySet(
            kernel.frequencies(inside(points)), np.full(s, 1 / s), self.point_warnings(s, points.shape[1])
        )
