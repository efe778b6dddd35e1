"""Common parts of samplers that learn their set: the differences that they learn on, the report, and the cost."""

import math
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from pydantic import Field

from app.core.arrays import Matrix, Rows, dense
from app.core.building import Building, Use
from app.core.datasets import column_ranges, held_out, sample_rows
from app.core.discrepancy.box_discrepancy import BoxDiscrepancy, check_panels, product_kernel
from app.core.discrepancy.row_differences import RowDifferences
from app.core.errors import InvalidInput
from app.core.kernels.base import Positive, ProductKernel, ScaledKernel, SpectralKernel
from app.core.model import NAME_PATTERN, Frozen, check_entries
from app.core.progress import Pause, pause_of
from app.core.samplers.base import FrequencySet, SizeAdvice

# A quarter of the rows, but at most 1,000, is held out: enough to distinguish sets that differ by a percent or two.
_SHARE, _MOST_HELD_OUT = 4, 1000
_MOST_MEASURED = 500
# The same rows of a dataset are chosen for all samplers and seeds, so that the figures of two maps can be compared.
_HELD_OUT_STREAM, _MEASURED_STREAM = 1, 0
# Rounding error of a squared Gram error, and the relative increase of an objective from which on there is a warning.
_ROUNDING, _CLEARLY = 1e-12, 0.01
# Number of standard errors from which on a difference is not due to the choice of rows.
_CERTAINLY = 2


class Split(NamedTuple):
    """Rows of a dataset, as the kernel compares them: training rows (`learned`) and held-out rows."""

    learned: Rows
    held_out: Rows


class _Beside(NamedTuple):
    """Gram errors of two sets on the same rows."""

    start: float
    end: float
    is_worse: bool
    """Whether `end` exceeds `start` by more than a random choice of other rows would explain."""
    rows: int

    @classmethod
    def of(
        cls, start: FrequencySet, found: FrequencySet, kernel: SpectralKernel, rows: Matrix, use: Use, pause: Pause
    ) -> Self:
        """Compute ‖K − K̂‖/‖K‖ of both sets: K of the rows, K̂ of rows and frequencies as the map has them."""
        measure = RowDifferences(kernel, rows, use, pause=pause)
        before, after = (
            measure.row_errors(use.round_entries(one.frequencies), use.scale_weights(one.weights), pause)
            for one in (start, found)
        )
        # A mean over pairs varies twice as much as a mean over rows (Hoeffding).
        apart, error = (after - before).mean(), 2 * (after - before).std() / math.sqrt(len(rows))
        first, last = (math.sqrt(one.mean() / measure.energy) for one in (before, after))
        return cls(first, last, bool(apart > _CERTAINLY * error + _ROUNDING * measure.energy), len(rows))


def split(rows: Rows) -> Split:
    """Hold out a quarter of the rows, at most 1,000; hold out none of fewer than eight rows."""
    n = rows.shape[0]
    count = min(_MOST_HELD_OUT, n // _SHARE)
    learned, apart = held_out(n, count if count > 1 else 0, _HELD_OUT_STREAM)
    return Split(rows[learned], rows[apart])


def of_a_box(rows: Rows) -> Split:
    """Hold out up to 1,000 of all rows: where rows only define a box, none of their differences is learned from."""
    return Split(rows, rows[sample_rows(rows.shape[0], _MOST_HELD_OUT, _HELD_OUT_STREAM)])


def add_report(
    found: FrequencySet,
    start: FrequencySet,
    called: str,
    objectives: tuple[float, float],
    kernel: SpectralKernel,
    rows: Split | None,
    use: Use,
    pause: Pause,
) -> FrequencySet:
    """Return the set with its report, and with a warning if the set that learning began with is better.

    The report has `objective_start` and `objective_end`, `weight_sum` and `points_kept`. If there are rows of a
    dataset, it also has `gram_error_start` and `gram_error`, ‖K − K̂‖/‖K‖ in the Frobenius norm over up to 500
    training rows, and the same with the suffix `_held_out` for the held-out rows, whose number is `rows_held_out`. The
    warning is given if the error on the held-out rows is larger, by two standard errors there or on the training rows.
    Without held-out rows the training rows decide; without a dataset, the objective.

    Learning began with `start`, which warnings name `called`; the objectives are those of `start` and `found`.
    """
    first, last = objectives
    report = {
        "objective_start": max(0.0, first),
        "objective_end": max(0.0, last),
        "weight_sum": float(found.weights.sum()),
        "points_kept": float(len(found.weights)),
    }
    if rows is None:
        # An objective up to this value is not clearly worse, or differs by rounding.
        clearly = (1 + _CLEARLY) * max(0.0, first) + (10 + found.frequencies.shape[1]) * np.finfo(np.float64).eps
        worse = ("box discrepancy", first, last) if last > clearly else None
    else:
        some = dense(rows.learned[sample_rows(rows.learned.shape[0], _MOST_MEASURED, _MEASURED_STREAM)])
        on_learned = _Beside.of(start, found, kernel, some, use, pause)
        report |= {"gram_error_start": on_learned.start, "gram_error": on_learned.end}
        decides, told = on_learned, f"Gram error on {on_learned.rows} rows of the dataset"
        if rows.held_out.shape[0]:
            decides = others = _Beside.of(start, found, kernel, dense(rows.held_out), use, pause)
            report |= {"gram_error_start_held_out": others.start, "gram_error_held_out": others.end}
            report["rows_held_out"] = float(others.rows)
            told = f"Gram error on {others.rows} rows that were not learned from"
        # A set that is worse even on its training rows is not worse on held-out rows by chance.
        is_worse = decides.is_worse or (on_learned.is_worse and decides.end > decides.start)
        worse = (told, decides.start, decides.end) if is_worse else None
    warnings = found.warnings
    if worse is not None:
        warnings += (f"{called} alone has the smaller {worse[0]} ({worse[1]:.4g}, here {worse[2]:.4g}): take it",)
    return found._replace(report=report, warnings=warnings)


LONG_LEARNING = (
    "It learns for minutes. On the differences of rows it makes better frequencies than others do, but landmarks have "
    "smaller errors at as many columns."
)
"""Why recommendations do not try adaptive samplers unless a request names them."""
PRODUCT_LAW = "kernels gaussian, laplacian, cauchy and correlation_rbf, products over the coordinates"
"""Kernels for which samplers learn on a box, as the catalogue words this limit."""
MOST_OPERATIONS = 1 << 40
"""Most multiplied factors that a request may take: hours of one core."""
MOST_PRODUCTS = 1 << 44
"""Most multiplications in matrix products that a request may take: hours of one core."""
MOST_ROWS = 1000
"""Most rows whose differences are learned on."""
# Largest side of a box, in units of the kernel: squares of gradients, and frequencies times the box, stay in float64.
_WIDEST = 1e50
# Smallest mean square of the kernel on the box: below it, weights and gradients underflow.
_LEAST_ENERGY = 1e-250
_SAMPLE_STREAM = 0
# Numbers per frequency and row: phase, waves, waves weighted and multiplied, and products with the errors.
_NUMBERS_PER_WAVE = 12
_SCALE_OF_A_DATASET, _SCALE_OF_A_BOX = 0.25, 1.0

Dataset = Annotated[str, Field(pattern=NAME_PATTERN)]


class Differences(StrEnum):
    """Differences of rows that a set is learned on.

    box: All differences in a box, with equal weight, as in the paper. data: The differences between rows of a dataset.
    """

    box = "box"
    data = "data"


Discrepancy = BoxDiscrepancy | RowDifferences


class Learning(NamedTuple):
    """The error that learning minimises, over a box or over rows."""

    measure: Discrepancy
    scales: Matrix
    """σ_j, (d,): frequencies times σ_j have no unit."""
    rows: Split | None
    """Rows of the dataset, if there is one."""


def _default_scale(fields: dict[str, Any]) -> float | None:
    """Return the default `box_scale`: smaller for a dataset, as few differences reach its corners; None on rows."""
    if fields.get("differences") is Differences.data:
        return None
    return _SCALE_OF_A_DATASET if fields.get("box") is None else _SCALE_OF_A_BOX


class LearningFields(Frozen):
    """Fields of samplers that learn from a box of differences or from the differences of rows."""

    differences: Annotated[
        Differences,
        Field(
            strict=False,
            # Left out if it is box, so that records stay as they were before the field existed.
            exclude_if=lambda value: value is Differences.box,
            description="The differences x − z whose mean squared error is minimised. box: All of a box alike, as in "
            f"the paper. data: Those of up to {MOST_ROWS} rows of the dataset with each other, in the form of the map: "
            "what is learned is the Gram matrix of these rows. For all kernels with frequencies.",
        ),
    ] = Differences.box
    box: Positive | Annotated[tuple[Positive, ...], Field(fail_fast=True)] | None = None
    """b_j, half the width of the box of differences: one number for all coordinates, or a list with one per coordinate.
    """
    dataset: Dataset | None = None
    """Name of a dataset, instead of `box`: b_j is the range of its column j. With differences data, the sampler learns
    from the rows of this dataset.
    """
    box_scale: Positive | None = Field(
        default_factory=_default_scale,
        description=f"Factor of the box; if not given, {_SCALE_OF_A_BOX:g} with box and {_SCALE_OF_A_DATASET:g} with "
        "dataset: the whole of that over-fits corners that few differences reach. null with differences data.",
    )

    @property
    def on_rows(self) -> bool:
        """Whether the set is learned on the differences of rows."""
        return self.differences is Differences.data

    def rows_bytes(self, s: int, input_dim: int) -> int:
        """Return the memory of learning s frequencies on row differences: Gram matrices, and waves in several forms.

        It is 0 for a box.
        """
        return 8 * MOST_ROWS * (3 * MOST_ROWS + _NUMBERS_PER_WAVE * s + 2 * input_dim) if self.on_rows else 0

    def check_differences(self, kernel: SpectralKernel, kind: str, input_dim: int) -> None:
        """Raise InvalidInput unless there is a dataset or a box on which the kernel can be learned."""
        if self.on_rows:
            self._check_data(kernel, kind)
            return
        if not isinstance(kernel, ProductKernel):
            raise InvalidInput(f"{kind} on a box takes {PRODUCT_LAW}; here sampler sobol works", "/sampler/kind")
        if (self.box is None) == (self.dataset is None):
            came = "neither" if self.box is None else "both"
            raise InvalidInput(f"sampler {kind} takes one of box and dataset, got {came}", "/sampler/box")
        if self.box_scale is None:
            raise InvalidInput("expected a number as box_scale, got null", "/sampler/box_scale")
        check_entries(self.box, input_dim, "the box", "/sampler/box", ", or one")
        if self.dataset is None:  # specs are read often: the discrepancy itself would take seconds for a wide box
            self._scaled_box(kernel, self._sides(input_dim))

    def learning(self, kernel: SpectralKernel, input_dim: int, building: Building) -> Learning:
        """Return the discrepancy to minimise, with its scales and rows.

        Raises InvalidInput if the dataset does not exist, or if nothing can be learned on its box.
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
                raise InvalidInput(f"differences data has no box: leave out {field}", f"/sampler/{field}")
        if self.dataset is None:
            raise InvalidInput("expected a dataset for differences data, got none", "/sampler/dataset")

    def _on_rows(self, kernel: SpectralKernel, rows: Split, building: Building) -> Learning:
        """Prepare learning on the differences of a sample of rows, which is always the same sample."""
        if not isinstance(kernel, ScaledKernel):
            raise AssertionError("check_differences() lets no such kernel through")
        some = dense(rows.learned[sample_rows(rows.learned.shape[0], MOST_ROWS, _SAMPLE_STREAM)])
        measure = RowDifferences(kernel, some, building.use, building.threads, pause_of(building.progress))
        return Learning(measure, kernel.scales(some.shape[1]), rows)

    def _ranges(self, rows: Rows) -> Matrix:
        """Return the ranges of the columns, (d,), over all rows: differences of held-out rows are in the box too."""
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

    @property
    def _box_pointer(self) -> str:
        return "/sampler/box" if self.dataset is None and (self.box_scale or 1.0) <= 1 else "/sampler/box_scale"

    def _scaled_box(self, kernel: ProductKernel, sides: Matrix) -> Matrix:
        """Return the sides of the scaled box, (d,); InvalidInput if they are too many, or too long for the kernel."""
        check_panels(len(sides))
        factor = 1.0 if self.box_scale is None else self.box_scale
        with np.errstate(over="ignore"):  # an infinite side is too wide
            box = sides * factor
            wide = np.flatnonzero(~((box / kernel.scales(len(box)) <= _WIDEST) & np.isfinite(box)))
        if wide.size:
            raise InvalidInput(
                f"expected a box of up to {_WIDEST:.0e} kernel scales, got {box[wide[0]]:.3g} in entry {wide[0]}",
                self._box_pointer,
            )
        return box

    def _discrepancy(self, kernel: ProductKernel, sides: Matrix, threads: int) -> BoxDiscrepancy:
        """Return the discrepancy on the scaled box; InvalidInput if nothing can be learned there."""
        measure = BoxDiscrepancy(kernel, self._scaled_box(kernel, sides), threads)
        if math.exp(measure.log_energy) < _LEAST_ENERGY:
            raise InvalidInput(
                f"the kernel is nearly 0 on this box, its mean square below {_LEAST_ENERGY:.0e}: take a smaller one",
                self._box_pointer,
            )
        return measure

    def check_gradients(self, kind: str, steps: int, s: int, input_dim: int) -> None:
        """Refuse more than hours of work on one core: `steps` gradients of the error on rows for s frequencies."""
        per_frequency = steps * (8 * MOST_ROWS**2 + 2 * MOST_ROWS * input_dim)
        if s * per_frequency > MOST_PRODUCTS:
            reason = f"{kind} would take {s * per_frequency:.2g} multiplications, {MOST_PRODUCTS} are the most"
            raise InvalidInput(SizeAdvice(reason, s, int(MOST_PRODUCTS / per_frequency)), "/s")

    def check_operations(self, kind: str, per_pair: float, s: int) -> None:
        """Refuse more than hours of work on one core: `per_pair` factors for each pair of s frequencies."""
        operations, most = per_pair * s**2, int((MOST_OPERATIONS / per_pair) ** 0.5)
        if operations > MOST_OPERATIONS:
            reason = f"{kind} would multiply {operations:.2g} factors, {MOST_OPERATIONS} are the most"
            if most < 1:
                raise InvalidInput(f"{reason}: take sampler sobol, or fewer iterations", "/sampler/kind")
            raise InvalidInput(SizeAdvice(reason, s, most), "/s")
