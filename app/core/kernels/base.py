"""Bases of the kernels: of all, of those with frequencies, of those with one spectral law."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Discriminator, Field, Tag

from app.core.arrays import Matrix, Rows, dense, row_blocks
from app.core.errors import InvalidInput
from app.core.kernels.rounding import Rounding
from app.core.model import Kind
from app.core.neighbours import Metric
from app.core.progress import Pause
from app.core.threads import for_each

# What one thread computes of an exact Gram block between two pauses, a tenth of a second or less.
_ENTRIES_PER_PART, _OPERATIONS_PER_PART = 1 << 17, 1 << 29

Positive = Annotated[float, Field(gt=0)]

LengthScale = Annotated[
    Annotated[Positive, Tag("number")] | Annotated[tuple[Positive, ...], Field(fail_fast=True), Tag("list")],
    Discriminator(lambda value: "list" if isinstance(value, list | tuple) else "number"),
]
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

    @abstractmethod
    def check(self, input_dim: int) -> None:
        """Raise InvalidInput if the kernel does not fit vectors of `input_dim` entries."""

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

    def prepared(self, rows: Rows, pointer: str = "") -> Rows:
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
        per_pair = self.operations_per_coordinate * x.shape[1] + self.operations_per_value
        return int(x.shape[0] * y.shape[0] * per_pair)

    def exact(self, x: Rows, y: Rows) -> Matrix:
        """Exact kernel block of prepared rows, which are made dense."""
        return self.gram(dense(x), dense(y))

    def in_one_form(self, x: Rows, y: Rows) -> tuple[Rows, Rows]:
        """The rows in their dense form."""
        return dense(x), dense(y)

    def pairs(self, x: Rows, y: Rows) -> Matrix:
        """Exact kernel of the differences of prepared rows, which are made dense."""
        found: Matrix = self.gram(np.zeros((1, x.shape[1])), dense(x) - dense(y))[0]
        return found

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
