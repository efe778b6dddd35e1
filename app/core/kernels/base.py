"""Base classes of kernels: of all, of those with frequencies, one spectral law, length scales; and of products.

Rows are subtracted before they are divided by length scales. Rows divided first would be rounded with a relative error
of 1e-16; 10⁶ length scales from 0 that is an error of 1e-10 length scales. Only powers of two are divided out before
the subtraction, which rounds nothing and keeps squares in the range of float64.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import scipy
from pydantic import Field
from scipy import sparse

from app.core.arrays import Matrix, Rows, count_entries, dense, row_blocks
from app.core.errors import InvalidInput
from app.core.input import Scales
from app.core.kernels.rounding import OfLengthScales, Rounding
from app.core.model import Kind, check_entries
from app.core.neighbours import Metric
from app.core.progress import Pause
from app.core.threads import for_each

# Work of one thread on an exact Gram block between two pauses: mostly a tenth of a second or less. Not fewer rows, as
# some kernels scale the rows that they are compared with.
_ENTRIES_PER_PART, _OPERATIONS_PER_PART, _LEAST_PER_PART = 1 << 17, 1 << 29, 8

# Cost of sorting a column number among all, in multiplications of a matrix product.
_OPERATIONS_PER_NUMBER = 800

Positive = Annotated[float, Field(gt=0)]

LengthScale = Scales
"""One number for every coordinate, or a list with one per coordinate (automatic relevance determination)."""

LENGTH_SCALE = "σ_j, in the unit of coordinate j of the vectors: one number for all, or a list of one per coordinate."


class Block(NamedTuple):
    """A summand of a kernel: a spectral kernel on some coordinates (None for all), times a weight."""

    kernel: "SpectralKernel"
    coordinates: tuple[int, ...] | None = None
    weight: float = 1.0

    def dim(self, input_dim: int) -> int:
        """Return the number of coordinates that the summand depends on."""
        return input_dim if self.coordinates is None else len(self.coordinates)


class AnyKernel(Kind):
    """A kernel k(x, z), with or without frequencies."""

    served_by: ClassVar[str] = "sobol"
    """A sampler that supports the kernel, named in the error when the client chose one that does not."""
    metric: ClassVar[Metric] = "euclidean"
    """Distance between rows from which a length scale is chosen; pairs equally far apart have about the same kernel."""

    compares_unit_rows: ClassVar[bool] = False
    """Whether rows are scaled to unit length before they are compared, so that no two differ by more than 2."""

    def rounding(self, dtype: np.dtype[np.floating]) -> Rounding | None:
        """Return the error of rounding rows to a dtype; None if it is a few ε of each kernel, wherever the rows lie."""
        return None

    if TYPE_CHECKING:  # as a field it would come first in the JSON of every spec
        kind: str

    def check(self, input_dim: int) -> None:
        """Raise InvalidInput if the kernel does not fit vectors of `input_dim` entries; by default it fits all."""

    def exact(self, x: Rows, y: Rows) -> Matrix:
        """Compute the exact kernel block (n, m) of prepared rows (n, d) and (m, d), dense or sparse.

        InvalidInput if a value leaves the range of float64.
        """
        x, y = self.in_one_form(x, y)
        return self.compare_with(y)(x)

    @abstractmethod
    def compare_with(self, y: Rows) -> Callable[[Rows], Matrix]:
        """Return a function that computes `exact` of some rows x with y, given `in_one_form`; y is made ready once."""

    @abstractmethod
    def pairs(self, x: Rows, y: Rows) -> Matrix:
        """Compute the exact kernel of row i of x with row i of y, both prepared, (n,)."""

    def exact_in_parts(self, x: Rows, y: Rows, threads: int, pause: Pause) -> Matrix:
        """Compute `exact`, (n, m), by blocks of rows of x on up to `threads` threads; their number changes no bit."""
        x, y = self.in_one_form(x, y)
        n, m = int(x.shape[0]), int(y.shape[0])
        found, compare = np.empty((n, m)), self.compare_with(y)

        def fill(part: slice) -> None:
            found[part] = compare(x[part])

        most = max(_LEAST_PER_PART, _OPERATIONS_PER_PART * n // max(1, self.exact_operations(x, y)))
        for_each(fill, row_blocks(n, max(1, min(most, _ENTRIES_PER_PART // max(1, m)))), threads, pause)
        return found

    @property
    def derived_bytes(self) -> int:
        """Memory of what the kernel derives from its parameters, in bytes, if that may be more than they take."""
        return 0

    def exact_operations(self, x: Rows, y: Rows) -> int:
        """Return the cost of `exact`: the number of multiplications of a matrix product that take as long."""
        return self.comparison_operations(x, y) + self.ready_operations(x) + self.ready_operations(y)

    def comparison_operations(self, x: Rows, y: Rows) -> int:
        """Return the cost of comparing rows that are ready, counted as in `exact_operations`."""
        return int(x.shape[0] * y.shape[0] * x.shape[1])

    def ready_operations(self, rows: Rows) -> int:
        """Return the cost of making rows ready to be compared: by default, of numbering the columns of sparse rows."""
        stays_sparse = self.compares_sparse and not isinstance(rows, np.ndarray)
        return _OPERATIONS_PER_NUMBER * count_entries(rows) if stays_sparse else 0

    def exact_bytes(self, x: Rows, y: Rows) -> int:
        """Return the bytes of memory for the rows in the form in which they are compared, and for a scaled copy."""
        return int(16 * (x.shape[0] + y.shape[0]) * x.shape[1])

    def prepare(self, rows: Rows, pointer: str = "", first: int = 0) -> Rows:
        """Return the rows (n, d) as the kernel compares them, mostly unchanged.

        InvalidInput names invalid rows, of which the first given one is row `first` of the request.
        """
        return rows

    def in_domain(self, rows: Matrix) -> Matrix:
        """Return the rows, with entries outside the kernel's domain replaced by entries inside it.

        A row that is changed gets no farther from any row in the domain.
        """
        return rows

    def in_one_form(self, x: Rows, y: Rows) -> tuple[Rows, Rows]:
        """Return x and y both sparse or both dense, as they are compared; then they can be split up.

        Sums in the two forms may differ in the last bit.
        """
        return (x, y) if sparse.issparse(x) == sparse.issparse(y) else (dense(x), dense(y))

    @property
    def is_centered(self) -> bool:
        """Whether a center is subtracted from the rows, which makes sparse rows dense."""
        return False

    @property
    def compares_sparse(self) -> bool:
        """Whether `exact` compares sparse rows without making them dense."""
        return False

    def correlated_pairs(self, correlations: Matrix, input_dim: int) -> tuple[Rows, Rows]:
        """Return pairs of float64 rows (n, input_dim) with the given correlations in [−1, 1], (n,), one per pair.

        Raises InvalidInput if the kernel does not depend on correlations, or no such rows exist.
        """
        raise InvalidInput(f"correlations say nothing of kernel {self.kind}; give pairs of vectors", "/correlations")


class ShiftInvariantKernel(AnyKernel):
    """A kernel k(x - z) that is a sum of spectral kernels, mostly of one. Samplers of frequencies support it."""

    operations_per_coordinate: ClassVar[int] = 6
    """Cost of one coordinate in an exact kernel, in multiplications of a matrix product."""
    operations_per_value: ClassVar[int] = 32
    """Cost of turning the sum over all coordinates into a kernel value, in the same unit."""

    @abstractmethod
    def blocks(self, input_dim: int) -> tuple[Block, ...]:
        """Return the summands."""

    @abstractmethod
    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Compute the exact kernel block (n, m) of prepared rows (n, d) and (m, d), without an n×m×d temporary."""

    def comparison_operations(self, x: Rows, y: Rows) -> int:
        """Return the cost of the coordinates and of the kernel value of each pair of rows."""
        return int(x.shape[0] * y.shape[0] * (self.operations_per_coordinate * x.shape[1] + self.operations_per_value))

    def compare_with(self, y: Rows) -> Callable[[Rows], Matrix]:
        """Return a function that computes `gram` of some dense rows x with y."""
        return lambda x: self.gram(dense(x), dense(y))

    def in_one_form(self, x: Rows, y: Rows) -> tuple[Rows, Rows]:
        """Return the rows in dense form."""
        return dense(x), dense(y)

    def pairs(self, x: Rows, y: Rows) -> Matrix:
        """Compute the exact kernel from the differences of prepared rows, which are made dense."""
        return np.asarray(self.gram(np.zeros((1, x.shape[1])), dense(x) - dense(y))[0], np.float64)

    def at_zero(self, input_dim: int) -> float:
        """Return k(0), the sum of the weights of the summands."""
        return sum(block.weight for block in self.blocks(input_dim))

    def normal_deviations(self, input_dim: int) -> Matrix | None:
        """Return standard deviations (d,) of the frequencies' coordinates if independent and normal, else None."""
        return None

    def profile(self) -> "ShiftInvariantKernel | None":
        """Return the kernel as a one-dimensional kernel of a norm of δ, with length scale 1 and value 1 at 0.

        The norm may be in units of the length scales. None if k(δ) depends on more than such a norm.
        """
        return None

    def warnings(self) -> tuple[str, ...]:
        """Return warnings for the client about the kernel as the client specified it."""
        return ()

    @property
    def scale_field(self) -> str:
        """Name of the field that sets the scale of the frequencies, as the client wrote it."""
        return "length_scale"

    def out_of_range(self, dtype: str) -> InvalidInput:
        """Return the error for frequencies outside the range of the dtype; it names the field that causes them."""
        extreme = "large" if self.scale_field == "gamma" else "small"
        reason = f"{self.scale_field} is so {extreme} that frequencies leave the range of {dtype}"
        return InvalidInput(reason, f"/kernel/{self.scale_field}")

    def is_heavy_tailed(self) -> bool:
        """Return whether frequencies have a fourth moment of 3 times a normal law's or more, or none."""
        return False


class SpectralKernel(ShiftInvariantKernel):
    """A kernel with k(0) = 1 and a spectral law p: k(δ) = ∫ p(w) cos(w·δ) dw (Bochner's theorem)."""

    @abstractmethod
    def frequencies(self, uniforms: Matrix) -> Matrix:
        """Map uniforms in the open unit cube, (s, uniforms_per_frequency), to frequencies of p, (s, d)."""

    @abstractmethod
    def frequency_deviations(self, input_dim: int) -> Matrix | None:
        """Return the standard deviations of the frequencies' coordinates, (d,); None if the law has none."""

    def uniforms_per_frequency(self, input_dim: int) -> int:
        """Return the number of uniforms that one frequency needs."""
        return input_dim

    def blocks(self, input_dim: int) -> tuple[Block, ...]:
        """Return the kernel itself, on all coordinates."""
        return (Block(self),)


_ENTRIES_PER_BLOCK = 1 << 15

CdistMetric = Literal["euclidean", "sqeuclidean", "cityblock"]


def finite(scaled: Matrix) -> Matrix:
    """Return rows already divided by length scales; InvalidInput if an entry has left the range of float64."""
    if not np.isfinite(scaled).all():  # two infinities have no distance
        raise InvalidInput("an entry divided by its length_scale leaves the range of float64")
    return scaled


def _in_cache(x: Matrix, y: Matrix, metric: CdistMetric, weights: Matrix | None = None) -> Matrix:
    """Compute distances of all pairs of rows, in blocks of y that stay in the cache while rows of x are compared."""
    found = np.empty((len(x), len(y)))
    for some in row_blocks(len(y), max(1, _ENTRIES_PER_BLOCK // max(1, y.shape[1]))):
        found[:, some] = scipy.spatial.distance.cdist(x, y[some], metric, w=weights)
    return found


def divided_by_powers(x: Matrix, y: Matrix, scales: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Split scales into mantissas in [½, 1) and powers of two; return mantissas, (d,), and rows over the powers."""
    rest, exponents = np.frexp(scales)
    with np.errstate(over="ignore"):  # `finite` raises
        return rest, finite(np.ldexp(x, -exponents)), finite(np.ldexp(y, -exponents))


class ScaledKernel(SpectralKernel):
    """A kernel of the scaled differences δ_j/σ_j."""

    length_scale: LengthScale = Field(description=LENGTH_SCALE)

    def scales(self, input_dim: int) -> Matrix:
        """Return the length scales σ_j, (d,)."""
        return np.broadcast_to(self.length_scales, (input_dim,))

    def radial_quantile(self, uniforms: Matrix, dim: int) -> Matrix | None:
        """Return quantiles of a frequency's norm in `dim` dimensions at σ = 1; None if directions are not uniform."""
        return None

    def check(self, input_dim: int) -> None:
        """Refuse a list of length scales that does not have one entry per coordinate."""
        check_entries(self.length_scale, input_dim, self.scale_field, f"/kernel/{self.scale_field}", ", or one")

    def scaled_frequencies(self, standard: Matrix) -> Matrix:
        """Divide frequencies at σ = 1 by σ_j, in place; InvalidInput if they leave the range of float64."""
        with np.errstate(over="ignore"):  # raises below
            standard /= self.scales(standard.shape[1])
        if not np.isfinite(standard).all():
            raise self.out_of_range("float64")
        return standard

    def scaled_deviations(self, standard: float, input_dim: int) -> Matrix:
        """Divide a standard deviation at σ = 1 by σ_j; variances would leave the range of float64 earlier."""
        with np.errstate(over="ignore"):  # then frequencies are infinite too, and `scaled_frequencies` raises
            deviations = standard / self.length_scales
        return np.broadcast_to(deviations, (input_dim,))

    def scaled_rows(self, rows: Matrix) -> Matrix:
        """Return the rows divided by σ_j; InvalidInput if an entry leaves the range of float64."""
        with np.errstate(over="ignore"):  # `finite` raises
            return finite(rows / self.scales(rows.shape[1]))

    def distances(self, x: Matrix, y: Matrix, metric: CdistMetric) -> Matrix:
        """Compute distances (n, m) of rows (n, d) and (m, d) divided by σ_j, as accurate far from 0 as near it.

        Raises InvalidInput if an entry divided by its scale leaves the range of float64.
        """
        rest, x, y = divided_by_powers(x, y, self.scales(x.shape[1]))
        if (rest != rest[0]).any():
            # scipy multiplies squares by the weights before it takes the root.
            return _in_cache(x, y, metric, 1 / rest if metric == "cityblock" else 1 / rest**2)
        found = _in_cache(x, y, metric)
        with np.errstate(over="ignore"):  # infinite only where rows are so far apart that it does not matter
            found /= rest[0] ** 2 if metric == "sqeuclidean" else rest[0]
        return found

    def rounding(self, dtype: np.dtype[np.floating]) -> OfLengthScales:
        """Return the rounding error in length scales, in the kernel's metric."""
        is_sum = self.metric == "cityblock"
        return OfLengthScales(dtype, self.length_scales, partial(_norms, order=1 if is_sum else 2), is_sum)

    @property
    def length_scales(self) -> Matrix:
        """Length scale σ, shape (), or length scales σ_j, (d,)."""
        return np.asarray(self.length_scale, dtype=np.float64)


class ProductKernel(ScaledKernel):
    """A product of one-dimensional kernels; the coordinates of a frequency are independent with scale 1/σ_j."""

    standard_deviation: ClassVar[float | None]
    """Standard deviation of one coordinate of a frequency at σ = 1; None if it is infinite."""

    @abstractmethod
    def standard_quantile(self, uniforms: Matrix) -> Matrix:
        """Apply the quantile function of one coordinate at σ = 1 elementwise; may overwrite the uniforms."""

    @abstractmethod
    def standard_characteristic(self, lags: Matrix) -> Matrix:
        """Return φ, the characteristic function of one coordinate at σ = 1, elementwise: the one-dimensional kernel.

        The box discrepancy needs nothing else. It integrates φ on panels from 0 to 1 and on to each power of two. On
        each panel φ must be smooth; a kink at 0 does no harm.
        """

    def frequencies(self, uniforms: Matrix) -> Matrix:
        """Apply the quantile transform, then divide by σ_j."""
        return self.scaled_frequencies(self.standard_quantile(uniforms))

    def frequency_deviations(self, input_dim: int) -> Matrix | None:
        """Return the standard deviation at σ = 1 divided by σ_j; None if it is infinite."""
        return None if self.standard_deviation is None else self.scaled_deviations(self.standard_deviation, input_dim)


def _norms(scaled: Rows, order: Literal[1, 2]) -> Matrix:
    """Return the norms of rows (n, d), (n,)."""
    if isinstance(scaled, np.ndarray):
        return np.asarray(np.linalg.norm(scaled, order, axis=1), np.float64)
    return np.asarray((abs(scaled) ** order).sum(axis=1), np.float64) ** (1 / order)
