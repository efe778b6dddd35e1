"""Bases of the kernels: of all, of those with frequencies, with one spectral law, with length scales; and of products.

Differences of rows are taken before they are divided by length scales: rows that were divided first, and so rounded,
would be off by 1e-16 of themselves, which 10⁶ length scales from 0 is 1e-10 of one. Powers of two divide them before,
which rounds nothing and keeps squares in the range of float64.
"""

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import scipy
from pydantic import Field

from app.core.arrays import Matrix, Rows, dense, row_blocks
from app.core.errors import InvalidInput
from app.core.input import Scales
from app.core.kernels.rounding import OfLengthScales, Rounding
from app.core.model import Kind, check_entries
from app.core.neighbours import Metric
from app.core.progress import Pause
from app.core.threads import for_each

# What one thread computes of an exact Gram block between two pauses, a tenth of a second or less.
_ENTRIES_PER_PART, _OPERATIONS_PER_PART = 1 << 17, 1 << 29

Positive = Annotated[float, Field(gt=0)]

LengthScale = Scales
"""One number for every coordinate, or a list with one per coordinate (automatic relevance determination)."""

LENGTH_SCALE = "σ_j, in the unit of coordinate j of the vectors: one number for all, or a list of one per coordinate."


class Block(NamedTuple):
    """A summand of a kernel: a spectral kernel on some coordinates, None for all of them, times a weight."""

    kernel: "SpectralKernel"
    coordinates: tuple[int, ...] | None = None
    weight: float = 1.0

    def dim(self, input_dim: int) -> int:
        """How many coordinates it looks at."""
        return input_dim if self.coordinates is None else len(self.coordinates)


class AnyKernel(Kind):
    """A kernel k(x, z), with or without frequencies."""

    served_by: ClassVar[str] = "sobol"
    """A sampler that serves it, to name in refusals of others."""
    metric: ClassVar[Metric] = "euclidean"
    """The distance of rows that a length scale is taken from; rows equally far apart have about the same kernel."""

    compares_unit_rows: ClassVar[bool] = False
    """Whether rows are brought to unit length before they are compared, so that no two differ by more than 2."""

    def rounding(self, dtype: np.dtype[np.floating]) -> Rounding | None:
        """The error that rounding rows to a dtype makes; None where it is some ε of each kernel, wherever rows lie."""
        return None

    if TYPE_CHECKING:  # as a field it would come first in the text of every spec
        kind: str

    def check(self, input_dim: int) -> None:
        """Raise InvalidInput if the kernel does not fit vectors of `input_dim` entries; here it fits all."""

    @abstractmethod
    def exact(self, x: Rows, y: Rows) -> Matrix:
        """Exact kernel block: prepared rows (n, d) and (m, d), dense or sparse, to (n, m)."""

    @abstractmethod
    def pairs(self, x: Rows, y: Rows) -> Matrix:
        """Exact kernel of row i of x with row i of y, both prepared, (n,)."""

    def exact_in_parts(self, x: Rows, y: Rows, threads: int, pause: Pause) -> Matrix:
        """What `exact` gives, (n, m), some rows of x at a time on up to `threads` threads, which change no bit."""
        x, y = self.in_one_form(x, y)
        n, m = int(x.shape[0]), int(y.shape[0])
        found = np.empty((n, m))

        def fill(part: slice) -> None:
            found[part] = self.exact(x[part], y)

        most = _OPERATIONS_PER_PART * n // max(1, self.exact_operations(x, y))
        for_each(fill, row_blocks(n, max(1, min(most, _ENTRIES_PER_PART // max(1, m)))), threads, pause)
        return found

    def exact_operations(self, x: Rows, y: Rows) -> int:
        """Multiplications of a matrix product that take as long as `exact`."""
        return int(x.shape[0] * y.shape[0] * x.shape[1])

    def exact_bytes(self, x: Rows, y: Rows) -> int:
        """Memory for the rows in the form in which they are compared."""
        return int(8 * (x.shape[0] + y.shape[0]) * x.shape[1])

    def prepare(self, rows: Rows, pointer: str = "") -> Rows:
        """The rows (n, d) as the kernel compares them, for most as they came; InvalidInput names those without one."""
        return rows

    def in_domain(self, rows: Matrix) -> Matrix:
        """The rows, or where entries have no kernel, such beside them that have one, no farther from any that has."""
        return rows

    def in_one_form(self, x: Rows, y: Rows) -> tuple[Rows, Rows]:
        """The rows as pairs of them are compared, so that they may be taken some at a time."""
        return x, y

    @property
    def is_centered(self) -> bool:
        """Whether something is subtracted from the rows, which makes sparse ones dense."""
        return False

    @property
    def compares_sparse(self) -> bool:
        """Whether `exact` takes sparse rows as they are, and does not make them dense."""
        return False

    def correlated_pairs(self, correlations: Matrix, input_dim: int) -> tuple[Rows, Rows]:
        """Pairs of float64 rows (n, input_dim), row i of both having correlation i of these in [−1, 1], (n,).

        InvalidInput where the kernel does not depend on correlations, or no such rows exist.
        """
        raise InvalidInput(f"correlations say nothing of kernel {self.kind}; give pairs of vectors", "/correlations")


class ShiftInvariantKernel(AnyKernel):
    """A kernel k(x - z) that is a sum of spectral kernels, most often of one. Samplers of frequencies serve it."""

    operations_per_coordinate: ClassVar[int] = 6
    """Multiplications of a matrix product that take as long as the part of one coordinate in an exact kernel."""
    operations_per_value: ClassVar[int] = 32
    """And those that take as long as making the kernel of the sum of all."""

    @abstractmethod
    def blocks(self, input_dim: int) -> tuple[Block, ...]:
        """The summands."""

    @abstractmethod
    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Exact kernel block: prepared rows (n, d) and (m, d) to (n, m), without an n×m×d temporary."""

    def exact_operations(self, x: Rows, y: Rows) -> int:
        """By the coordinates of all pairs of rows, and by their kernels."""
        return int(x.shape[0] * y.shape[0] * (self.operations_per_coordinate * x.shape[1] + self.operations_per_value))

    def exact(self, x: Rows, y: Rows) -> Matrix:
        """Exact kernel block of prepared rows, which are made dense."""
        return self.gram(dense(x), dense(y))

    def in_one_form(self, x: Rows, y: Rows) -> tuple[Rows, Rows]:
        """The rows in their dense form."""
        return dense(x), dense(y)

    def pairs(self, x: Rows, y: Rows) -> Matrix:
        """Exact kernel of the differences of prepared rows, which are made dense."""
        return np.asarray(self.gram(np.zeros((1, x.shape[1])), dense(x) - dense(y))[0], np.float64)

    def at_zero(self, input_dim: int) -> float:
        """k(0), the sum of the weights of the summands."""
        return sum(block.weight for block in self.blocks(input_dim))

    def normal_deviations(self, input_dim: int) -> Matrix | None:
        """Standard deviations (d,) of the frequencies' coordinates if these are independent and normal, else None."""
        return None

    def profile(self) -> "ShiftInvariantKernel | None":
        """The kernel on rows of one entry, 1 at 0 and of length scale 1; None unless k(δ) is it at a distance of δ.

        Of that distance, which may be in length scales, the multiple mδ has m times.
        """
        return None

    def warnings(self) -> tuple[str, ...]:
        """Warnings for the client about the kernel as it was written."""
        return ()

    @property
    def scale_field(self) -> str:
        """The field that sets the scale of the frequencies, as the client named it."""
        return "length_scale"

    def out_of_range(self, dtype: str) -> InvalidInput:
        """The refusal of frequencies that leave the range of the dtype: names the field to blame."""
        extreme = "large" if self.scale_field == "gamma" else "small"
        reason = f"{self.scale_field} is so {extreme} that frequencies leave the range of {dtype}"
        return InvalidInput(reason, f"/kernel/{self.scale_field}")


class SpectralKernel(ShiftInvariantKernel):
    """A kernel with k(0) = 1 and a spectral law p: k(δ) = ∫ p(w) cos(w·δ) dw (Bochner's theorem)."""

    @abstractmethod
    def frequencies(self, uniforms: Matrix) -> Matrix:
        """Map uniforms in the open unit cube, (s, uniforms_per_frequency), to frequencies of the law, (s, d)."""

    @abstractmethod
    def frequency_deviations(self, input_dim: int) -> Matrix | None:
        """Standard deviations of the frequencies' coordinates, shape (d,); None where the law has none."""

    def is_heavy_tailed(self) -> bool:
        """Whether a frequency's fourth moment is three times a normal one's or more: few make a covariance."""
        return False

    def uniforms_per_frequency(self, input_dim: int) -> int:
        """How many uniforms make one frequency."""
        return input_dim

    def blocks(self, input_dim: int) -> tuple[Block, ...]:
        """The kernel itself, on all coordinates."""
        return (Block(self),)


_ENTRIES_PER_BLOCK = 1 << 15

CdistMetric = Literal["euclidean", "sqeuclidean", "cityblock"]


def finite(scaled: Matrix) -> Matrix:
    """The rows divided by their length scales; InvalidInput if an entry has left the range of float64."""
    if not np.isfinite(scaled).all():  # two infinities have no distance
        raise InvalidInput("an entry divided by its length_scale leaves the range of float64")
    return scaled


def _in_cache(x: Matrix, y: Matrix, metric: CdistMetric, weights: Matrix | None = None) -> Matrix:
    """Distances of all rows, some rows of y at a time: each row of x reads them from the cache, not from memory."""
    found = np.empty((len(x), len(y)))
    for some in row_blocks(len(y), max(1, _ENTRIES_PER_BLOCK // max(1, y.shape[1]))):
        found[:, some] = scipy.spatial.distance.cdist(x, y[some], metric, w=weights)
    return found


def divided_by_powers(x: Matrix, y: Matrix, scales: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Each scale is a rest in [½, 1) times a power of two: the rests, (d,), and the rows divided by the powers."""
    rest, exponents = np.frexp(scales)
    with np.errstate(over="ignore"):  # refused by name
        return rest, finite(np.ldexp(x, -exponents)), finite(np.ldexp(y, -exponents))


class ScaledKernel(SpectralKernel):
    """A kernel of δ_j/σ_j."""

    length_scale: LengthScale = Field(description=LENGTH_SCALE)

    def scales(self, input_dim: int) -> Matrix:
        """The length scales σ_j, shape (d,)."""
        return np.broadcast_to(self.length_scales, (input_dim,))

    def radial_quantile(self, uniforms: Matrix, dim: int) -> Matrix | None:
        """Quantiles of a frequency's length in `dim` coordinates at σ = 1; None where directions are not uniform."""
        return None

    def check(self, input_dim: int) -> None:
        """Refuse a list of length scales that has not one for each coordinate."""
        check_entries(self.length_scale, input_dim, self.scale_field, f"/kernel/{self.scale_field}", ", or one")

    def scaled_frequencies(self, standard: Matrix) -> Matrix:
        """Frequencies at σ = 1, divided in place by σ_j."""
        with np.errstate(over="ignore"):  # refused by name below
            standard /= self.scales(standard.shape[1])
        if not np.isfinite(standard).all():
            raise self.out_of_range("float64")
        return standard

    def scaled_deviations(self, standard: float, input_dim: int) -> Matrix:
        """A standard deviation at σ = 1, divided by σ_j; no squares, which would leave the range of float64 first."""
        with np.errstate(over="ignore"):  # a deviation of infinity has infinite frequencies, refused above
            deviations = standard / self.length_scales
        return np.broadcast_to(deviations, (input_dim,))

    def scaled_rows(self, rows: Matrix) -> Matrix:
        """Rows divided by σ_j."""
        with np.errstate(over="ignore"):  # refused by name
            return finite(rows / self.scales(rows.shape[1]))

    def distances(self, x: Matrix, y: Matrix, metric: CdistMetric) -> Matrix:
        """Distances of rows (n, d) and (m, d) divided by σ_j, (n, m), as good far from 0 as near it.

        InvalidInput where an entry divided by its scale leaves the range of float64.
        """
        rest, x, y = divided_by_powers(x, y, self.scales(x.shape[1]))
        if (rest != rest[0]).any():
            # The weights of scipy stand under the root.
            return _in_cache(x, y, metric, 1 / rest if metric == "cityblock" else 1 / rest**2)
        found = _in_cache(x, y, metric)
        with np.errstate(over="ignore"):  # so far apart that it matters no more
            found /= rest[0] ** 2 if metric == "sqeuclidean" else rest[0]
        return found

    def lags(self, x: Matrix, y: Matrix) -> Iterator[Matrix]:
        """δ_j/σ_j of every row of x and of y, (n, m), coordinate by coordinate, likewise."""
        rest, x, y = divided_by_powers(x, y, self.scales(x.shape[1]))
        for of_x, of_y, scale in zip(x.T, y.T, rest, strict=True):
            with np.errstate(over="ignore"):  # so far apart that it matters no more
                found = np.subtract.outer(of_x, of_y)
                found /= scale
            yield found

    def rounding(self, dtype: np.dtype[np.floating]) -> OfLengthScales:
        """By the length scales, in the kernel's metric."""
        is_sum = self.metric == "cityblock"
        return OfLengthScales(dtype, self.length_scales, partial(_norms, order=1 if is_sum else 2), is_sum)

    @property
    def length_scales(self) -> Matrix:
        """σ, (), or σ_j, (d,)."""
        return np.asarray(self.length_scale, dtype=np.float64)


class ProductKernel(ScaledKernel):
    """A product of one-dimensional kernels, whose frequencies are independent with scale 1/σ_j."""

    standard_deviation: ClassVar[float | None]
    """Standard deviation of one frequency at σ = 1; None where it is infinite."""

    @abstractmethod
    def standard_quantile(self, uniforms: Matrix) -> Matrix:
        """Quantile function of one frequency at σ = 1, elementwise; it may write over the uniforms."""

    @abstractmethod
    def standard_characteristic(self, lags: Matrix) -> Matrix:
        """φ, the characteristic function of one frequency at σ = 1, elementwise: the one-dimensional kernel.

        All that the box discrepancy needs of a kernel. It is integrated on panels from 0 to 1 and on to each power of
        two, on which it must be smooth; a kink at 0 does no harm.
        """

    def frequencies(self, uniforms: Matrix) -> Matrix:
        """Quantile transform, then division by σ_j."""
        return self.scaled_frequencies(self.standard_quantile(uniforms))

    def frequency_deviations(self, input_dim: int) -> Matrix | None:
        """The standard deviation at σ = 1, divided by σ_j."""
        return None if self.standard_deviation is None else self.scaled_deviations(self.standard_deviation, input_dim)


def _norms(scaled: Rows, order: Literal[1, 2]) -> Matrix:
    """The norms of rows (n, d), (n,)."""
    if isinstance(scaled, np.ndarray):
        return np.asarray(np.linalg.norm(scaled, order, axis=1), np.float64)
    return np.asarray((abs(scaled) ** order).sum(axis=1), np.float64) ** (1 / order)
