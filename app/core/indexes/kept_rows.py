"""Rows as an index stores them, one by one: dense or sparse, in float32 if that loses nothing."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import Floats, Rows

# The first byte of a stored row says whether it is dense or sparse, and its dtype.
_DTYPES = (np.dtype("<f4"), np.dtype("<f8"))
_DENSE, _SPARSE = 0, 2
_INDEX = np.dtype("<u4")


def pack_rows(rows: Rows) -> list[bytes]:
    """Encode rows for storage, each separately."""
    n = rows.shape[0]
    if isinstance(rows, np.ndarray):
        return [_pack_values(_DENSE, rows[i]) for i in range(n)]
    every = (slice(rows.indptr[i], rows.indptr[i + 1]) for i in range(n))
    return [_pack_values(_SPARSE, rows.data[one]) + rows.indices[one].astype(_INDEX).tobytes() for one in every]


def unpack_rows(stored: Sequence[bytes], input_dim: int) -> Rows:
    """Decode stored rows to float64; sparse if one of them is.

    Raises:
        ValueError, IndexError: a stored row is malformed.
    """
    if any(one[0] >= _SPARSE for one in stored):
        parts = [_sparse(one) for one in stored]
        ends = np.cumsum([0, *(len(indices) for indices, _ in parts)])
        values, indices = (np.concatenate([part[k] for part in parts]) for k in (1, 0))
        if indices.size and indices.max() >= input_dim:
            raise ValueError(f"a row has an entry {indices.max()}; its map takes {input_dim}")
        return sparse.csr_array((values, indices, ends), shape=(len(stored), input_dim))
    found = np.empty((len(stored), input_dim))
    for i, one in enumerate(stored):
        found[i] = np.frombuffer(one, _DTYPES[one[0]], input_dim, 1)
    return found


def _pack_values(form: int, values: Floats) -> bytes:
    with np.errstate(over="ignore"):  # a value that overflows is unequal, and kept wide
        narrow = values.astype(_DTYPES[0])
    is_wide = not np.array_equal(narrow, values)
    return bytes([form + is_wide]) + (values.astype(_DTYPES[1]) if is_wide else narrow).tobytes()


def _sparse(stored: bytes) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the indices and values of a stored row."""
    form, dtype = stored[0] & ~1, _DTYPES[stored[0] & 1]
    if form < _SPARSE:
        values = np.frombuffer(stored, dtype, offset=1)
        indices = np.flatnonzero(values)
        return indices, values[indices].astype(np.float64)
    n, more = divmod(len(stored) - 1, dtype.itemsize + _INDEX.itemsize)
    if more or form > _SPARSE:
        raise ValueError(f"a row of {len(stored)} bytes is none")
    values = np.frombuffer(stored, dtype, n, 1)
    indices = np.frombuffer(stored, _INDEX, n, 1 + n * dtype.itemsize)
    return indices.astype(np.int64), values.astype(np.float64)
