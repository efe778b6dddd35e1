"""The matrix that makes features of kernel values with landmarks."""

import numpy as np

from app.core.arrays import Floats
from app.core.errors import InvalidInput
from app.core.kernels.base import Matrix

CUTS = {"float32": 1e-6}
"""Eigenvalues up to so many times the largest are cut in this dtype: rounding of kernel values would weigh more."""


def root_of(gram: Matrix, dtype: np.dtype[np.floating], pointer: str) -> Floats:
    """V Λ^(−1/2), (s, r), of a kernel block K = V Λ Vᵀ, (s, s), over its r eigenvalues above the cut, largest first.

    The cut is `CUTS` of the largest, in float64 s·2.2e-16 of it, below which eigenvalues are rounding themselves.

    Raises:
        InvalidInput: no eigenvalue is above 0: the kernel of all landmarks is 0.
    """
    values, vectors = np.linalg.eigh(gram)
    cut = CUTS.get(dtype.name, len(gram) * float(np.finfo(np.float64).eps)) * values[-1]
    if not values[-1] > 0 or not np.isfinite(values).all():
        raise InvalidInput("the kernel of the landmarks with each other is 0 or leaves the range of float64", pointer)
    kept = np.flatnonzero(values > cut)[::-1]
    root: Floats = (vectors[:, kept] / np.sqrt(values[kept])).astype(dtype)
    return root
