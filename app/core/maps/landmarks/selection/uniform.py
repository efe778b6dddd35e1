"""Any row alike."""

import numpy as np

from app.core.arrays import Rows
from app.core.kernels.base import AnyKernel
from app.core.maps.landmarks.selection.base import Selected
from app.core.progress import Progress


def select(
    kernel: AnyKernel, rows: Rows, s: int, rng: np.random.Generator, progress: Progress, threads: int
) -> Selected:
    """S rows, each set of them with the same probability."""
    del kernel, progress, threads
    n = rows.shape[0]
    return Selected(rows[np.sort(rng.permutation(n)[:s])], {})
