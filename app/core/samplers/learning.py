"""Parts of samplers that learn their set: the box they minimise over, their cost and their report."""

import math
from typing import Annotated

import numpy as np
from pydantic import Field

from app.core.arrays import Rows, dense
from app.core.building import Building
from app.core.datasets import column_ranges, sampled
from app.core.discrepancy.box_discrepancy import BoxDiscrepancy, product_kernel
from app.core.errors import InvalidInput
from app.core.kernels.base import Matrix, Positive, ProductKernel, SpectralKernel
from app.core.model import NAME_PATTERN, Frozen, check_entries
from app.core.samplers.base import FrequencySet, SizeAdvice

PRODUCT_LAW = "kernels gaussian, laplacian, cauchy and correlation_rbf, products over the coordinates"
"""The limit of samplers that learn on a box, in the words of the catalogue."""
MOST_OPERATIONS = 1 << 40
"""Multiplied factors that may be asked for: hours of one core."""
_ROWS_OF_THE_ERROR = 500
# Side of a box in units of the kernel up to which squares of gradients, and frequencies times the box, stay in float64.
_WIDEST = 1e50
# Mean square of the kernel on the box below which weights and gradients are lost between the smallest floats.
_LEAST_ENERGY = 1e-250

Dataset = Annotated[str, Field(pattern=NAME_PATTERN)]


class BoxFields(Frozen):
    """The fields of a box of differences, as samplers that learn on one have them."""

    box: Annotated[
        Positive | tuple[Positive, ...] | None,
        Field(description="b_j, half the width of the box of differences: one number for all, or a list of one each."),
    ] = None
    dataset: Dataset | None = Field(None, description="Instead of box: b_j is the range of column j of this dataset.")
    box_scale: Positive = Field(
        0.25, description="Factor of the box. The whole of it over-fits corners that few differences reach."
    )

    def check_box(self, kernel: SpectralKernel, kind: str, input_dim: int) -> None:
        """Raise InvalidInput unless there is a product kernel, and a dataset or a box on which it can be learned."""
        if not isinstance(kernel, ProductKernel):
            raise InvalidInput(
                f"{kind} learns on a box for {PRODUCT_LAW}; for this kernel sampler sobol works", "/sampler/kind"
            )
        if (self.box is None) == (self.dataset is None):
            came = "neither box nor dataset" if self.box is None else "box and dataset"
            raise InvalidInput(f"{came} came; sampler {kind} takes one of them", "/sampler/box")
        check_entries(self.box, input_dim, "the box", "/sampler/box", ", or one")
        if self.dataset is None:
            self._discrepancy(kernel, self._sides(input_dim), 1)

    def measure(
        self, kernel: SpectralKernel, input_dim: int, building: Building
    ) -> tuple[BoxDiscrepancy, ProductKernel, Rows | None]:
        """The discrepancy to minimise, its kernel, and the rows of the dataset, if there is one.

        InvalidInput if there is no such dataset, or nothing can be learned on its box.
        """
        product, rows = product_kernel(kernel, input_dim), None
        if self.dataset is None:
            sides = self._sides(input_dim)
        else:
            rows = building.rows(self.dataset, "/sampler/dataset")
            try:
                least, largest = column_ranges(rows).astype(np.float64)
            except InvalidInput as error:
                raise InvalidInput(f"dataset {self.dataset!r}: {error.detail}", "/sampler/dataset") from None
            sides = largest - least
            if not sides.any():
                raise InvalidInput(f"all rows of dataset {self.dataset!r} are equal", "/sampler/dataset")
        return self._discrepancy(product, sides, building.threads), product, rows

    def _sides(self, input_dim: int) -> Matrix:
        return np.broadcast_to(np.asarray(self.box, dtype=np.float64), (input_dim,))

    def _discrepancy(self, kernel: ProductKernel, sides: Matrix, threads: int) -> BoxDiscrepancy:
        """The discrepancy on the scaled box, InvalidInput if nothing can be learned there."""
        pointer = "/sampler/box" if self.dataset is None and self.box_scale <= 1 else "/sampler/box_scale"
        with np.errstate(over="ignore"):  # an infinite side is too wide
            box = sides * self.box_scale
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


def check_operations(kind: str, per_pair: float, s: int) -> None:
    """Refuse more work than hours of one core: so many factors for each pair of s frequencies."""
    operations, most = per_pair * s**2, int((MOST_OPERATIONS / per_pair) ** 0.5)
    if operations > MOST_OPERATIONS:
        reason = f"{kind} would multiply {operations:.2g} factors, {MOST_OPERATIONS} are the most"
        if most < 1:
            raise InvalidInput(f"{reason}: take sampler sobol, or fewer iterations", "/sampler/kind")
        raise InvalidInput(SizeAdvice(reason, s, most), "/s")


def report_of(found: FrequencySet, start: float, end: float, kernel: ProductKernel, rows: Rows | None) -> FrequencySet:
    """The set with its report: `objective_start` and `objective_end`, `weight_sum`, `points_kept`, `gram_error`.

    The last, what the set is worth as features, is said where there are rows of a dataset: ‖K − K̂‖/‖K‖ in the
    Frobenius norm over up to 500 of them, sampled the same way each time.
    """
    report = {
        "objective_start": max(0.0, start),
        "objective_end": max(0.0, end),
        "weight_sum": float(found.weights.sum()),
        "points_kept": float(len(found.weights)),
    }
    if rows is not None:
        some = dense(rows[sampled(rows.shape[0], min(rows.shape[0], _ROWS_OF_THE_ERROR), 0)])
        features = np.exp(1j * (some @ found.frequencies.T))
        exact = kernel.gram(some, some)
        approximate = ((features * found.weights) @ features.conj().T).real
        report["gram_error"] = float(np.linalg.norm(exact - approximate) / np.linalg.norm(exact))
    return found._replace(report=report)
