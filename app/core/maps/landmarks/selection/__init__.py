"""The methods by which rows of a dataset become landmarks."""

from collections.abc import Callable

import numpy as np

from app.core.arrays import Rows
from app.core.kernels.base import AnyKernel
from app.core.maps.landmarks.selection import uniform
from app.core.maps.landmarks.selection.base import Selected
from app.core.progress import Progress

SELECTIONS: dict[str, Callable[[AnyKernel, Rows, int, np.random.Generator, Progress, int], Selected]] = {
    "uniform": uniform.select,
    "rp_cholesky": uniform.select,
}
"""The methods by name."""
