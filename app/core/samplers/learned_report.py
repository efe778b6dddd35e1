"""What a learned set is worth beside the set that learning began with, on rows learned from and on others."""

import math
from typing import NamedTuple

import numpy as np

from app.core.arrays import Rows, dense
from app.core.building import Use
from app.core.datasets import sampled
from app.core.discrepancy.row_differences import RowDifferences
from app.core.kernels.base import Matrix, SpectralKernel
from app.core.progress import Pause
from app.core.samplers.base import FrequencySet

# A quarter of the rows, and no more than these, are held out: so many tell sets apart that differ by a percent or two.
# Of rows that give no more than a box, half of them: nothing is lost.
_SHARE, _SHARE_OF_A_BOX, _MOST_HELD_OUT = 4, 2, 1000
_MOST_MEASURED = 500
# The same rows of a dataset for all samplers and seeds, so that the figures of two maps can be compared.
_HELD_OUT_STREAM, _MEASURED_STREAM = 1, 0
# What a Gram error may lose to rounding, and the part by which an objective must be passed to be told of.
_ROUNDING, _CLEARLY = 1e-9, 0.01


class Split(NamedTuple):
    """The rows of a dataset, as the kernel compares them: those that may be learned from, and those held out."""

    learned: Rows
    held_out: Rows


class Compared(NamedTuple):
    """The set that learning began with, and the objective of both sets."""

    start: FrequencySet
    called: str
    """What the start is, for the client."""
    objective_start: float
    objective_end: float


def split(rows: Rows, give_a_box: bool = False) -> Split:
    """A quarter of the rows, half if all they give is a box, and 1,000 at most, held out; of one row nothing."""
    n = rows.shape[0]
    count = min(_MOST_HELD_OUT, n // (_SHARE_OF_A_BOX if give_a_box else _SHARE))
    apart = np.zeros(n, np.bool_)
    if count > 1:
        apart[sampled(n, count, _HELD_OUT_STREAM)] = True
    return Split(rows[np.flatnonzero(~apart)], rows[np.flatnonzero(apart)])


def reported(
    found: FrequencySet, compared: Compared, kernel: SpectralKernel, rows: Split | None, use: Use, pause: Pause
) -> FrequencySet:
    """The set with its report, and a warning where its start is better.

    The report has `objective_start` and `objective_end`, `weight_sum` and `points_kept`. Where there are rows of a
    dataset it has `gram_error` beside `gram_error_start`, ‖K − K̂‖/‖K‖ in the Frobenius norm over up to 500 of those
    that may be learned from, and the same with `_held_out` for the `rows_held_out`. These decide about the warning;
    without them the rows learned from do, and without a dataset the objective.
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
        measured = _sampled(rows.learned)
        before, after = _gram_errors((start, found), kernel, measured, use, pause)
        report |= {"gram_error_start": before, "gram_error": after}
        told = f"Gram error on {len(measured)} rows of the dataset"
        if rows.held_out.shape[0]:
            before, after = _gram_errors((start, found), kernel, dense(rows.held_out), use, pause)
            n = rows.held_out.shape[0]
            report |= {"gram_error_start_held_out": before, "gram_error_held_out": after, "rows_held_out": float(n)}
            told = f"Gram error on {n} rows that were not learned from"
        worse = (told, before, after) if after > (1 + _ROUNDING) * before + _ROUNDING else None
    warnings = found.warnings
    if worse is not None:
        warnings += (f"{called} alone has the smaller {worse[0]} ({worse[1]:.4g}, here {worse[2]:.4g}): take it",)
    return found._replace(report=report, warnings=warnings)


def _sampled(rows: Rows) -> Matrix:
    n = rows.shape[0]
    return dense(rows[sampled(n, min(n, _MOST_MEASURED), _MEASURED_STREAM)])


def _gram_errors(
    sets: tuple[FrequencySet, ...], kernel: SpectralKernel, rows: Matrix, use: Use, pause: Pause
) -> list[float]:
    """‖K − K̂‖/‖K‖ of each set over the rows: K of these, K̂ of rows and frequencies as the map has them."""
    measure = RowDifferences(kernel, rows, use, pause=pause)
    return [
        math.sqrt(
            measure.normalized(
                use.rounded(one.frequencies), one.weights / one.weights.sum() if use.normalize else one.weights, pause
            )
            / measure.energy
        )
        for one in sets
    ]
