"""Rows as bytes that travel to a job."""

import numpy as np
from scipy import sparse

from app.core.arrays import Rows
from app.core.progress import packed, unpacked


def to_bytes(rows: Rows) -> bytes:
    """The arrays of dense or of sparse rows."""
    if isinstance(rows, np.ndarray):
        return packed(rows=rows)
    return packed(values=rows.data, indices=rows.indices, indptr=rows.indptr, shape=np.array(rows.shape))


def from_bytes(attached: bytes) -> Rows:
    """The rows that `to_bytes` was given, in their dtype."""
    arrays = unpacked(attached)
    if "rows" in arrays:
        return arrays["rows"]
    parts = (arrays["values"], arrays["indices"], arrays["indptr"])
    return sparse.csr_array(parts, shape=tuple(arrays["shape"].tolist()))
