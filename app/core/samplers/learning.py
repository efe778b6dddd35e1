"""Parts of samplers that learn their set: the differences that they learn on, and their cost."""

import math
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from app.core.arrays import Matrix, Rows, dense
from app.core.building import Building
from app.core.datasets import column_ranges, sampled
from app.core.discrepancy.box_discrepancy import BoxDiscrepancy, product_kernel
from app.core.discrepancy.measure import Discrepancy
from app.core.discrepancy.row_differences import RowDifferences
from app.core.errors import InvalidInput
from app.core.kernels.base import Positive, SpectralKernel
from app.core.kernels.scaled import ProductKernel, ScaledKernel
from app.core.model import NAME_PATTERN, Frozen, check_entries
from app.core.samplers.base import SizeAdvice
from app.core.samplers.learned_report import Split, of_a_box, split

PRODUCT_LAW = "kernels gaussian, laplacian, cauchy and correlation_rbf, products over the coordinates"
"""The limit of samplers that learn on a box, in the words of the catalogue."""
MOST_OPERATIONS = 1 << 40
"""Multiplied factors that may be asked for: hours of one core."""
MOST_PRODUCTS = 1 << 44
"""Multiplications of matrix products that may be asked for: hours of one core."""
MOST_ROWS = 1000
"""Rows whose differences are learned on."""
# Side of a box in units of the kernel up to which squares of gradients, and frequencies times the box, stay in float64.
_WIDEST = 1e50
# Mean square of the kernel on the box below which weights and gradients are lost between the smallest floats.
_LEAST_ENERGY = 1e-250
_SAMPLE_STREAM = 0
# Of a frequency on a row: phase, waves, these weighted and crossed, and products with the errors.
_NUMBERS_PER_WAVE = 12
_SCALE_OF_A_DATASET, _SCALE_OF_A_BOX = 0.25, 1.0

Dataset = Annotated[str, Field(pattern=NAME_PATTERN)]


class Differences(StrEnum):
    """The differences of rows that a set is learned on.

    box: All of a box alike, as in the paper. data: Those that rows of a dataset have.
    """

    box = "box"
    data = "data"


class Learning(NamedTuple):
    """The error that a set is learned to make small, over a box or over rows."""

    measure: Discrepancy
    scales: Matrix
    """σ_j, (d,): frequencies times these have no unit."""
    rows: Split | None
    """Those of the dataset, if there is one."""


def _default_scale(fields: dict[str, Any]) -> float | None:
    """A box that is given is meant; that of a dataset has corners which few differences reach."""
    if fields.get("differences") is Differences.data:
        return None
    return _SCALE_OF_A_DATASET if fields.get("box") is None else _SCALE_OF_A_BOX


class LearningFields(Frozen):
    """The fields of samplers that learn: of a box of differences, or of those of rows."""

    differences: Annotated[
        Differences,
        Field(
            strict=False,
            # A record is as it was before there was a choice.
            exclude_if=lambda value: value is Differences.box,
            description="The differences x − z whose mean squared error is minimised. box: All of a box alike, as in "
            f"the paper. data: Those of up to {MOST_ROWS} rows of the dataset with each other, in the form of the map: "
            "what is learned is the Gram matrix of these rows. For all kernels with frequencies.",
        ),
    ] = Differences.box
    box: Annotated[
        Positive | Annotated[tuple[Positive, ...], Field(fail_fast=True)] | None,
        Field(description="b_j, half the width of the box of differences: one number for all, or a list of one each."),
    ] = None
    dataset: Dataset | None = Field(
        None,
        description="Instead of box: b_j is the range of column j of this dataset. With differences data, its rows.",
    )
    box_scale: Positive | None = Field(
        default_factory=_default_scale,
        description=f"Factor of the box; if not given, {_SCALE_OF_A_BOX:g} with box and {_SCALE_OF_A_DATASET:g} with "
        "dataset: the whole of that over-fits corners that few differences reach. null with differences data.",
    )

    @property
    def on_rows(self) -> bool:
        """Whether the differences are those of rows."""
        return self.differences is Differences.data

    def rows_bytes(self, s: int, input_dim: int) -> int:
        """Memory of learning s frequencies on the differences of rows: Gram matrices, and waves in several forms.

        It is 0 for a box.
        """
        return 8 * MOST_ROWS * (3 * MOST_ROWS + _NUMBERS_PER_WAVE * s + 2 * input_dim) if self.on_rows else 0

    def check_differences(self, kernel: SpectralKernel, kind: str, input_dim: int) -> None:
        """Raise InvalidInput unless there is a dataset or a box, on which the kernel can be learned."""
        if self.on_rows:
            self._check_data(kernel, kind)
            return
        if not isinstance(kernel, ProductKernel):
            raise InvalidInput(
                f"{kind} learns on a box for {PRODUCT_LAW}; for this kernel sampler sobol works", "/sampler/kind"
            )
        if (self.box is None) == (self.dataset is None):
            came = "neither box nor dataset" if self.box is None else "box and dataset"
            raise InvalidInput(f"{came} came; sampler {kind} takes one of them", "/sampler/box")
        if self.box_scale is None:
            raise InvalidInput(
                "box_scale is null, which goes with differences data; give a number", "/sampler/box_scale"
            )
        check_entries(self.box, input_dim, "the box", "/sampler/box", ", or one")
        if self.dataset is None:
            self._discrepancy(kernel, self._sides(input_dim), 1)

    def learning(self, kernel: SpectralKernel, input_dim: int, building: Building) -> Learning:
        """The discrepancy to minimise, and what goes with it.

        InvalidInput if there is no such dataset, or nothing can be learned on its box.
        """
        rows = None if self.dataset is None else building.rows(self.dataset, "/sampler/dataset")
        if rows is not None and self.on_rows:
            return self._on_rows(kernel, split(rows), building)
        product = product_kernel(kernel, input_dim)
        sides = self._sides(input_dim) if rows is None else self._ranges(rows)
        measure = self._discrepancy(product, sides, building.threads)
        return Learning(measure, product.scales(input_dim), None if rows is None else of_a_box(rows))

    def _check_data(self, kernel: SpectralKernel, kind: str) -> None:
        if not isinstance(kernel, ScaledKernel):
            raise InvalidInput(f"{kind} wants a kernel with a length scale; here sampler sobol works", "/sampler/kind")
        for field, value in (("box", self.box), ("box_scale", self.box_scale)):
            if value is not None:
                raise InvalidInput(f"{field} came; differences data has no box", f"/sampler/{field}")
        if self.dataset is None:
            raise InvalidInput("differences data takes a dataset, and none came", "/sampler/dataset")

    def _on_rows(self, kernel: SpectralKernel, rows: Split, building: Building) -> Learning:
        """Learning on the differences of a sample of rows, the same each time."""
        if not isinstance(kernel, ScaledKernel):
            raise AssertionError("check_differences() lets no such kernel through")
        n, progress = rows.learned.shape[0], building.progress
        some = dense(rows.learned[sampled(n, min(n, MOST_ROWS), _SAMPLE_STREAM)])

        def pause() -> None:
            progress.checkpoint(lambda: progress.restored() or b"")

        measure = RowDifferences(kernel, some, building.use, building.threads, pause)
        return Learning(measure, kernel.scales(some.shape[1]), rows)

    def _ranges(self, rows: Rows) -> Matrix:
        """The ranges of the columns, (d,): of all rows, so that no difference of a row held out leaves the box."""
        try:
            least, largest = column_ranges(rows).astype(np.float64)
        except InvalidInput as error:
            raise InvalidInput(f"dataset {self.dataset!r}: {error.detail}", "/sampler/dataset") from None
        sides: Matrix = largest - least
        if not sides.any():
            raise InvalidInput(f"all rows of dataset {self.dataset!r} are equal", "/sampler/dataset")
        return sides

    def _sides(self, input_dim: int) -> Matrix:
        return np.broadcast_to(np.asarray(self.box, dtype=np.float64), (input_dim,))

    def _discrepancy(self, kernel: ProductKernel, sides: Matrix, threads: int) -> BoxDiscrepancy:
        """The discrepancy on the scaled box, InvalidInput if nothing can be learned there."""
        factor = 1.0 if self.box_scale is None else self.box_scale
        pointer = "/sampler/box" if self.dataset is None and factor <= 1 else "/sampler/box_scale"
        with np.errstate(over="ignore"):  # an infinite side is too wide
            box = sides * factor
            wide = np.flatnonzero(~((box / kernel.scales(len(box)) <= _WIDEST) & np.isfinite(box)))
        if wide.size:
            raise InvalidInput(
                f"scaled, entry {wide[0]} of the box is {box[wide[0]]:.3g}, over {_WIDEST:.0e} times the scale of the "
                "kernel there: take a smaller one",
                pointer,
            )
        measure = BoxDiscrepancy(kernel, box, threads)
        if math.exp(measure.log_energy) < _LEAST_ENERGY:
            raise InvalidInput(
                f"the kernel is 0 nearly all over this box, its mean square below {_LEAST_ENERGY:.0e}: nothing can "
                "be learned there: take a smaller one",
                pointer,
            )
        return measure


def gradient_products(input_dim: int) -> int:
    """Multiplications, for each frequency, of the error on rows with its gradient."""
    return 8 * MOST_ROWS**2 + 2 * MOST_ROWS * input_dim


def check_products(kind: str, per_frequency: float, s: int) -> None:
    """Refuse more work than hours of one core: so many multiplications for each of s frequencies."""
    if s * per_frequency > MOST_PRODUCTS:
        reason = f"{kind} would take {s * per_frequency:.2g} multiplications, {MOST_PRODUCTS} are the most"
        raise InvalidInput(SizeAdvice(reason, s, int(MOST_PRODUCTS / per_frequency)), "/s")


def check_operations(kind: str, per_pair: float, s: int) -> None:
    """Refuse more work than hours of one core: so many factors for each pair of s frequencies."""
    operations, most = per_pair * s**2, int((MOST_OPERATIONS / per_pair) ** 0.5)
    if operations > MOST_OPERATIONS:
        reason = f"{kind} would multiply {operations:.2g} factors, {MOST_OPERATIONS} are the most"
        if most < 1:
            raise InvalidInput(f"{reason}: take sampler sobol, or fewer iterations", "/sampler/kind")
        raise InvalidInput(SizeAdvice(reason, s, most), "/s")
