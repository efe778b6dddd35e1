"""The matrix that makes features of kernel values with landmarks."""

from collections.abc import Callable

import numpy as np

from app.core.arrays import Floats, Matrix
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel
from app.core.maps.landmarks.arrays import opened_landmarks
from app.core.maps.landmarks.features import landmark_block
from app.core.maps.terms import Arrays, BaseSpec
from app.core.progress import Progress

CUTS = {"float32": 1e-6, "float64": 1e-12}
"""Eigenvalues up to so many times the largest are cut in a dtype: rounding of kernel values would weigh more."""
LONG_DECOMPOSITION = 1024
"""Landmarks from which on the eigenvalues of their kernel block take more than a second."""

# The largest eigenvalue may be so small, or large, that it and what is made of it stay in the range of the dtype.
_LEAST_FACTOR, _MOST_FACTOR = 1e8, 0.25


def root_of(gram: Matrix, dtype: np.dtype[np.floating], pointer: str) -> Floats:
    """V Λ^(−1/2), (s, r), of a kernel block K = V Λ Vᵀ, (s, s), over its r eigenvalues above the cut, largest first.

    The cut is `CUTS` of the largest; of more than some thousand landmarks s·2.2e-16 of it, as eigenvalues below that
    are rounding themselves.

    Raises:
        InvalidInput: the kernel of all landmarks is 0, or leaves too little room in the dtype.
    """
    least, most = _LEAST_FACTOR * float(np.finfo(dtype).tiny), _MOST_FACTOR * float(np.finfo(dtype).max)
    size = float(np.trace(gram)) / len(gram) if np.isfinite(gram).all() else np.inf
    if not least < size < most:
        helps = "; dtype float64 has more room" if dtype == np.float32 else ""
        raise InvalidInput(
            f"the kernel of the landmarks with themselves is {size:.3g} on average; maps of {dtype} take what is above "
            f"{least:.1e} and below {most:.1e}{helps}",
            pointer,
        )
    values, vectors = np.linalg.eigh(gram)
    kept = np.flatnonzero(values > max(CUTS[dtype.name], len(gram) * np.finfo(np.float64).eps) * values[-1])[::-1]
    root: Floats = (vectors[:, kept] / np.sqrt(values[kept])).astype(dtype)
    return root


def rooted(
    spec: BaseSpec, kernel: AnyKernel, arrays: Arrays, progress: Progress, state: Callable[[], bytes]
) -> tuple[Arrays, tuple[str, ...]]:
    """The arrays with the root beside them, and a warning where eigenvalues are cut."""
    landmarks = opened_landmarks(arrays, spec.input_dim)
    s = landmarks.shape[0]
    if s > LONG_DECOMPOSITION:
        progress.before_long_call(state)
    root = root_of(landmark_block(kernel, landmarks), spec.numpy_dtype, "/sampler")
    cut = s - root.shape[1]
    told = f"{cut} of {s} landmarks are all but combinations of the others in {spec.dtype.value}: {s - cut} columns"
    return {**arrays, "root": root}, (told,) if cut else ()
