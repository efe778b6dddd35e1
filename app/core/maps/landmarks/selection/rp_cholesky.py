"""Landmarks by randomly pivoted Cholesky."""

from collections.abc import Callable

import numpy as np

from app.core.arrays import Matrix, Rows
from app.core.kernels.base import AnyKernel
from app.core.maps.landmarks.selection.base import Basis, Run, Selected, finish, offer, streams
from app.core.progress import Progress
from app.core.samplers.base import Rng

# Residuals of all rows are computed again when the rejected candidates exceed this share of the rows: a candidate costs
# as much as a row does then.
_REFUSED_PART = 1 / 8


def select(kernel: AnyKernel, rows: Rows, s: int, rng: Rng, progress: Progress, threads: int) -> Selected:
    """Draw rows one after the other, each with probability proportional to its residual after the earlier ones.

    That is the law of Chen, Epperly, Tropp and Webber (2023), Randomly pivoted Cholesky, algorithm 1. Blocks of
    candidates are drawn by outdated residuals, and a candidate is rejected with probability 1 − residual now /
    outdated residual, as in Epperly, Tropp and Webber (2024), Embrace rejection, algorithm 2.1. There all residuals are
    updated after each block. Here that would take a pass over all rows, and is done only once rejections have cost as
    much. No columns of the kernel are held: memory is a few numbers for each row.

    Fewer than s landmarks are returned if the residuals of all rows are rounding. The report has `candidates`, the
    number of candidates drawn.
    """
    run, stream = Run(s, progress, threads), streams(rng)
    basis = run.basis(kernel, rows)
    while len(basis) < s:
        residuals = run.by_row("residuals", basis.residuals, rows, basis.rows_per_part(rows))
        first = int(run.kept.setdefault("first", np.array(len(basis))))
        if not residuals.any():
            break
        _draw(basis, run, residuals, stream)
        if len(basis) == first:  # the residuals are rounding, though above its bound
            break
        run.kept.update(residuals=residuals[:0], refused=np.array(0))
        del run.kept["first"]
    return finish(basis, candidates=float(run.kept.get("drawn", 0)))


def _draw(basis: Basis, run: Run, residuals: Matrix, stream: Callable[[int], Rng]) -> None:
    """Add landmarks until there are s, or too many candidates were rejected; draw candidates by `residuals`, (n,)."""
    n, cumulative = len(residuals), np.cumsum(residuals)
    refused, drawn = (int(run.kept.get(name, 0)) for name in ("refused", "drawn"))
    while len(basis) < run.s and refused <= n * _REFUSED_PART:
        count = basis.rows_per_offer
        uniforms = stream(drawn).random((2, count))
        candidates = np.minimum(np.searchsorted(cumulative, uniforms[0] * cumulative[-1], side="right"), n - 1)
        refused += count - offer(basis, run, candidates, uniforms[1] * residuals[candidates])
        drawn += count
        run.kept.update(refused=np.array(refused), drawn=np.array(drawn))
        run.tell(0, len(basis), run.s)
        run.pause()
