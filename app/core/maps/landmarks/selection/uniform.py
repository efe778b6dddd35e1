"""Landmarks that are a uniform sample of the rows."""

from app.core.arrays import Rows
from app.core.kernels.base import AnyKernel
from app.core.maps.landmarks.selection.base import Run, Selected, finish, take_in_order
from app.core.progress import Progress
from app.core.samplers.base import Rng


def select(kernel: AnyKernel, rows: Rows, s: int, rng: Rng, progress: Progress, threads: int) -> Selected:
    """Select the first s rows in random order, except combinations of earlier rows, such as equal rows.

    Source: Williams and Seeger (2001), Using the Nyström method to speed up kernel machines.
    """
    run = Run(s, progress, threads)
    basis = run.basis(kernel, rows)
    take_in_order(basis, run, rng.permutation(rows.shape[0]))
    return finish(basis)
