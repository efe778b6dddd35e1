"""Gram errors of a learned set beside those of the set that learning began with, on rows learned from and others."""

import math
from typing import NamedTuple, Self

import numpy as np

from app.core.arrays import Matrix, Rows, dense
from app.core.building import Use
from app.core.datasets import held_out, sampled
from app.core.discrepancy.row_differences import RowDifferences
from app.core.kernels.base import SpectralKernel
from app.core.progress import Pause
from app.core.samplers.base import FrequencySet

# A quarter of the rows, and no more than these, are held out: so many tell sets apart that differ by a percent or two.
_SHARE, _MOST_HELD_OUT = 4, 1000
_MOST_MEASURED = 500
# The same rows of a dataset for all samplers and seeds, so that the figures of two maps can be compared.
_HELD_OUT_STREAM, _MEASURED_STREAM = 1, 0
# What a squared Gram error may lose to rounding, and the part by which an objective must be passed to be told of.
_ROUNDING, _CLEARLY = 1e-12, 0.01
# Standard errors from which on a difference is none of the rows that happen to be there.
_CERTAINLY = 2


class Split(NamedTuple):
    """The rows of a dataset, as the kernel compares them: those that may be learned from, and those held out."""

    learned: Rows
    held_out: Rows


class _Beside(NamedTuple):
    """Gram errors of two sets over the same rows."""

    start: float
    end: float
    is_worse: bool
    """Whether the second is larger, by more than what other rows of the kind would change by chance."""
    rows: int

    @classmethod
    def of(
        cls, start: FrequencySet, found: FrequencySet, kernel: SpectralKernel, rows: Matrix, use: Use, pause: Pause
    ) -> Self:
        """‖K − K̂‖/‖K‖ of both sets: K of the rows, K̂ of rows and frequencies as the map has them."""
        measure = RowDifferences(kernel, rows, use, pause=pause)
        before, after = (
            measure.row_errors(use.rounded(one.frequencies), use.weighed(one.weights), pause) for one in (start, found)
        )
        # A mean over pairs varies twice as much as one over rows (Hoeffding).
        apart, error = (after - before).mean(), 2 * (after - before).std() / math.sqrt(len(rows))
        first, last = (math.sqrt(one.mean() / measure.energy) for one in (before, after))
        return cls(first, last, bool(apart > _CERTAINLY * error + _ROUNDING * measure.energy), len(rows))


class Compared(NamedTuple):
    """The set that learning began with, and the objective of both sets."""

    start: FrequencySet
    called: str
    """The name of the start in warnings."""
    objective_start: float
    objective_end: float


def split(rows: Rows) -> Split:
    """A quarter of the rows, 1,000 at most, held out; of fewer than eight none."""
    n = rows.shape[0]
    count = min(_MOST_HELD_OUT, n // _SHARE)
    learned, apart = held_out(n, count if count > 1 else 0, _HELD_OUT_STREAM)
    return Split(rows[learned], rows[apart])


def of_a_box(rows: Rows) -> Split:
    """Up to 1,000 of all rows held out: of rows that give no more than a box, no difference is learned from."""
    n = rows.shape[0]
    return Split(rows, rows[sampled(n, min(n, _MOST_HELD_OUT), _HELD_OUT_STREAM)])


def reported(
    found: FrequencySet, compared: Compared, kernel: SpectralKernel, rows: Split | None, use: Use, pause: Pause
) -> FrequencySet:
    """The set with its report, and a warning where its start is better.

    The report has `objective_start` and `objective_end`, `weight_sum` and `points_kept`. Where there are rows of a
    dataset it has `gram_error` beside `gram_error_start`, ‖K − K̂‖/‖K‖ in the Frobenius norm over up to 500 of those
    that may be learned from, and the same with `_held_out` for the `rows_held_out`. A warning wants these to
    be worse, by two standard errors there or on the rows learned from; without a dataset the objective decides.
    """
    start, called, first, last = compared
    report = {
        "objective_start": max(0.0, first),
        "objective_end": max(0.0, last),
        "weight_sum": float(found.weights.sum()),
        "points_kept": float(len(found.weights)),
    }
    if rows is None:
        # What is less than this apart is rounding.
        clearly = (1 + _CLEARLY) * max(0.0, first) + (10 + found.frequencies.shape[1]) * np.finfo(np.float64).eps
        worse = ("box discrepancy", first, last) if last > clearly else None
    else:
        on_learned = _Beside.of(start, found, kernel, _sampled(rows.learned), use, pause)
        report |= {"gram_error_start": on_learned.start, "gram_error": on_learned.end}
        decides, told = on_learned, f"Gram error on {on_learned.rows} rows of the dataset"
        if rows.held_out.shape[0]:
            decides = others = _Beside.of(start, found, kernel, dense(rows.held_out), use, pause)
            report |= {"gram_error_start_held_out": others.start, "gram_error_held_out": others.end}
            report["rows_held_out"] = float(others.rows)
            told = f"Gram error on {others.rows} rows that were not learned from"
        # A set that is worse even on the rows it was learned from is not better on others by chance.
        is_worse = decides.is_worse or (on_learned.is_worse and decides.end > decides.start)
        worse = (told, decides.start, decides.end) if is_worse else None
    warnings = found.warnings
    if worse is not None:
        warnings += (f"{called} alone has the smaller {worse[0]} ({worse[1]:.4g}, here {worse[2]:.4g}): take it",)
    return found._replace(report=report, warnings=warnings)


def _sampled(rows: Rows) -> Matrix:
    n = rows.shape[0]
    return dense(rows[sampled(n, min(n, _MOST_MEASURED), _MEASURED_STREAM)])
