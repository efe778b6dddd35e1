"""How landmarks are frozen: as a matrix or, where they are sparse, as the three parts of one."""

from itertools import chain

import numpy as np
from scipy import sparse

from app.core.arrays import PostedRows, Rows
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel
from app.core.maps.landmarks.samplers import SparseRow, UploadedLandmarks
from app.core.maps.terms import Arrays, FrozenArray
from app.core.model import check_entries

# Of all landmarks together: entries of sparse ones, and of dense ones, which come from a dataset or a request.
_MOST_ENTRIES, _MOST_DENSE_ENTRIES = 1 << 24, 1 << 26


def frozen_landmarks(s: int, input_dim: int, dtype: np.dtype[np.floating]) -> dict[str, FrozenArray]:
    """The arrays that s landmarks may be frozen as, each as large as it can become.

    Numbers of columns, and where rows end, are float64, which holds them exactly.
    """
    entries, of_columns = min(s * input_dim, _MOST_ENTRIES), np.dtype(np.float64)
    rows = min(s, _MOST_DENSE_ENTRIES // input_dim)  # none of vectors so long that only sparse ones are taken
    return {
        "landmarks": FrozenArray((rows, input_dim), dtype),
        "landmark_values": FrozenArray((entries,), dtype),
        "landmark_columns": FrozenArray((entries,), of_columns),
        "landmark_ends": FrozenArray((s + 1,), of_columns),
    }


def check_made_dense(s: int, input_dim: int, kernel: AnyKernel, pointer: str) -> None:
    """Raise InvalidInput for more landmarks than there is room for, where the kernel makes sparse rows dense."""
    if not kernel.compares_sparse and s * input_dim > _MOST_DENSE_ENTRIES:
        most = _MOST_DENSE_ENTRIES // input_dim
        takes = f"{s} came; for vectors of {input_dim} entries {most} are the most" if most else "none fits"
        raise InvalidInput(f"kernel {kernel.kind} compares landmarks in their dense form: {takes}", pointer)


def landmark_arrays(landmarks: Rows, pointer: str) -> Arrays:
    """The landmarks (s, d) as they are frozen; InvalidInput if they have too many entries."""
    size = landmarks.size if isinstance(landmarks, np.ndarray) else landmarks.nnz
    most = _MOST_DENSE_ENTRIES if isinstance(landmarks, np.ndarray) else _MOST_ENTRIES
    if size > most:
        raise InvalidInput(f"the landmarks have {size} entries; {most} are the most: take a smaller s", pointer)
    if isinstance(landmarks, np.ndarray):
        return {"landmarks": landmarks}
    return {
        "landmark_values": landmarks.data,
        "landmark_columns": landmarks.indices.astype(np.float64),
        "landmark_ends": landmarks.indptr.astype(np.float64),
    }


def opened_landmarks(arrays: Arrays, input_dim: int) -> Rows:
    """The landmarks, (s, d), from their frozen arrays."""
    if "landmarks" in arrays:
        return arrays["landmarks"]
    indices, ends = (arrays[name].astype(np.int64) for name in ("landmark_columns", "landmark_ends"))
    return sparse.csr_array((arrays["landmark_values"], indices, ends), shape=(len(ends) - 1, input_dim))


def check_uploaded(sampler: UploadedLandmarks, input_dim: int) -> None:
    """Raise InvalidInput for landmarks in two forms, of another width, or with columns out of order."""
    first = isinstance(sampler.landmarks[0], SparseRow)
    for i, row in enumerate(sampler.landmarks):
        pointer = f"/sampler/landmarks/{i}"
        if isinstance(row, SparseRow) != first:
            raise InvalidInput(f"landmark {i} has another form than those before it; one form is wanted", pointer)
        if not isinstance(row, SparseRow):
            check_entries(row, input_dim, f"landmark {i}", pointer)
            continue
        if len(row.indices) != len(row.values):
            detail = f"landmark {i} has {len(row.indices)} indices and {len(row.values)} values; as many are wanted"
            raise InvalidInput(detail, pointer)
        rising = np.diff(np.array([-1, *row.indices, input_dim]))
        if (rising <= 0).any():
            raise InvalidInput(
                f"indices of landmark {i} are not increasing and below {input_dim}", f"{pointer}/indices"
            )


def uploaded_rows(sampler: UploadedLandmarks, input_dim: int) -> PostedRows:
    """The landmarks as rows, as they came: dense, or sparse."""
    parts = [row for row in sampler.landmarks if isinstance(row, SparseRow)]
    if not parts:
        return np.array(sampler.landmarks, np.float64)
    ends = np.cumsum([0, *(len(row.values) for row in parts)])
    values = np.fromiter(chain.from_iterable(row.values for row in parts), np.float64, ends[-1])
    columns = np.fromiter(chain.from_iterable(row.indices for row in parts), np.int64, ends[-1])
    return sparse.csr_array((values, columns, ends), shape=(len(parts), input_dim))
