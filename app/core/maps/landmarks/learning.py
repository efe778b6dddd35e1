"""Landmarks from a dataset: which rows are learned from, which are held out, and what the features miss of both."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from app.core.arrays import Floats, Matrix, Rows, in_dtype, row_blocks, vectors
from app.core.building import Building
from app.core.datasets import held_out, sampled
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel
from app.core.kernels.coarseness import Coarseness
from app.core.maps.landmarks.arrays import landmark_arrays
from app.core.maps.landmarks.samplers import Landmarks
from app.core.maps.landmarks.selection import SELECTIONS
from app.core.maps.landmarks.selection.values import own_values
from app.core.maps.terms import Arrays, BaseSpec
from app.core.progress import Inner, Progress, packed, unpacked

# A tenth of the rows, and no more than these, are held out.
_HELD_OUT_SHARE, _MOST_HELD_OUT = 10, 1000
MOST_MEASURED = 10_000
"""Learned rows of which errors are told; of more, a sample."""
# Sums of kernels beyond are refused: what is made of them would leave the range of float64.
_LEAST_SUM, _MOST_SUM = 1e-290, 1e290
# Entries of rows whose own kernels are computed at a time.
_ENTRIES_PER_BLOCK = 1 << 20
# What begins the states of a selection that is under way, and of one that is done.
_SELECTING, _SELECTED = b"0", b"1"


class Split(NamedTuple):
    """The rows of a dataset, as a kernel compares them: those to learn from, and those held out."""

    learned: Rows
    held_out: Rows
    warnings: tuple[str, ...] = ()
    """Warnings about them, for the client."""


def split(spec: BaseSpec, sampler: Landmarks, kernel: AnyKernel, building: Building) -> Split:
    """Read the dataset that a sampler names, and share its rows out by the seed of the spec.

    Raises:
        InvalidInput: there is no such dataset, it has other columns than the map, or rows that have no kernel, or
            kernels so large or small that sums of them leave the range of float64.
    """
    found, pointer = building.rows(sampler.dataset, "/sampler/dataset"), "/sampler/dataset"
    n = found.shape[0]
    others, apart = held_out(n, min(_MOST_HELD_OUT, n // _HELD_OUT_SHARE), _stream(spec.seed, 0))
    wanted = len(others) if sampler.rows is None else sampler.rows
    if wanted > len(others):
        raise InvalidInput(
            f"rows is {wanted}; dataset {sampler.dataset!r} has {n}, of which {len(apart)} are held out",
            "/sampler/rows",
        )
    try:
        rows = kernel.prepared(in_dtype(vectors(found, spec.input_dim, spec.numpy_dtype), spec.numpy_dtype))
        _check_sum(kernel, rows)
    except InvalidInput as error:
        raise InvalidInput(f"dataset {sampler.dataset!r}: {error.detail}", pointer) from None
    if wanted < len(others):
        others = others[sampled(len(others), wanted, _stream(spec.seed, 1))]
    return Split(rows[others], rows[apart], too_coarse(spec, found, f"dataset {sampler.dataset!r}"))


def too_coarse(spec: BaseSpec, rows: Rows, called: str) -> tuple[str, ...]:
    """The warning about rows to take landmarks from, if the dtype of the map is too coarse for some."""
    return Coarseness(spec.kernel, spec.numpy_dtype, counts_exact=False).warnings(rows, called)


def selected(
    spec: BaseSpec, sampler: Landmarks, s: int, kernel: AnyKernel, rows: Rows, building: Building
) -> tuple[Arrays, dict[str, float], Callable[[], bytes]]:
    """The landmarks as they are frozen, what their selection tells, and what gives the state to go on from.

    A selection that an earlier attempt has finished is not done again.
    """
    progress = building.progress
    state = progress.restored() or _SELECTING
    if state[:1] == _SELECTED:
        held = unpacked(state[1:])
        report = dict(zip(held.pop("names").tolist(), held.pop("figures").tolist(), strict=True))
        arrays: Arrays = held
    else:
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(spec.seed).spawn(1)[0]))
        inside = Inner(progress, lambda inner: _SELECTING + inner(), state[1:] or None, partial(_tell, progress, s))
        found = SELECTIONS[sampler.selection](kernel, rows, s, rng, inside, building.threads)
        report, arrays = found.report, landmark_arrays(found.landmarks, "/s")
    figures = np.array([*report.values()])
    keep = partial(_kept, names=np.array([*report]), figures=figures, **arrays)
    progress.checkpoint(keep)
    return arrays, report, keep


def measured(kernel: AnyKernel, features: Callable[[Rows], Floats], rows: Split, seed: int) -> dict[str, float]:
    """The figures of a report: how much of the kernel features z miss, 1 − Σ ‖z(x)‖² / Σ k(x, x) over some rows x.

    `trace_error` is that share for up to 10,000 of the learned rows, `trace_error_held_out` that for rows that were not
    learned from, where there are any. `effective_dimension` is Σ μ/(μ + e): μ are the eigenvalues of the mean of z zᵀ
    over the learned rows, and e is what the features miss of one of these on average.
    """
    n = rows.learned.shape[0]
    some = rows.learned if n <= MOST_MEASURED else rows.learned[sampled(n, MOST_MEASURED, seed)]
    z = features(some).astype(np.float64)
    missed, whole = _missed(kernel, some, z)
    report = {"trace_error": missed / whole if whole else 0.0}
    mu = np.maximum(np.linalg.eigvalsh(z.T @ z / len(z)), 0)
    each = max(missed / len(z), np.finfo(np.float64).eps * float(mu.sum()))
    report["effective_dimension"] = float((mu / (mu + each)).sum()) if each else 0.0
    if rows.held_out.shape[0]:
        missed, whole = _missed(kernel, rows.held_out, features(rows.held_out).astype(np.float64))
        report["trace_error_held_out"] = missed / whole if whole else 0.0
    return report


def _check_sum(kernel: AnyKernel, rows: Rows) -> None:
    """Raise InvalidInput where Σ k(x, x) leaves too little room in float64 for what is computed of it."""
    n = rows.shape[0]
    entries = rows.shape[1] if isinstance(rows, np.ndarray) else 1 + rows.nnz // n
    own = (own_values(kernel, rows[part]) for part in row_blocks(n, _ENTRIES_PER_BLOCK // entries))
    with np.errstate(over="ignore"):
        whole = sum(float(some.sum()) for some in own)
    if whole and not _LEAST_SUM <= whole <= _MOST_SUM:
        raise InvalidInput(
            f"the kernels of all rows with themselves sum to {whole:.3g}; between {_LEAST_SUM:.0e} and "
            f"{_MOST_SUM:.0e} there is room in float64 for what is computed of them"
        )


def _missed(kernel: AnyKernel, rows: Rows, features: Matrix) -> tuple[float, float]:
    """Σ k(x, x) − ‖z(x)‖² and Σ k(x, x)."""
    diagonal = own_values(kernel, rows)
    return float((diagonal - (features**2).sum(axis=1)).sum()), float(diagonal.sum())


def _kept(names: Matrix, figures: Matrix, **arrays: Matrix) -> bytes:
    return _SELECTED + packed(names=names, figures=figures, **arrays)


def _tell(progress: Progress, s: int, step: int) -> None:
    progress.report(step, s)


def _stream(seed: int, number: int) -> int:
    """A seed of its own for one of the samples."""
    return int(np.random.SeedSequence(seed).spawn(number + 2)[-1].generate_state(1, np.uint64)[0])
