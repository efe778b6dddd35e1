"""Maps of kernel gmm: generalized consistent weighted sampling."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Rows, dense, named, row_blocks
from app.core.errors import InvalidInput
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.loops import consistent_samples, count_collisions
from app.core.maps.base import Arrays, Built
from app.core.parameter_stream import sampling_parameters
from app.core.spec import MapSpec

Codes = NDArray[Any]

# Entries turned into logarithms, or codes compared, at a time.
_ENTRIES_PER_BLOCK = 1 << 18
# A hash of one entry, or the comparison of two codes, in multiplications of a matrix product.
_OPERATIONS_PER_HASH = 16


class ConsistentSamplingMap:
    """Codes (i*, t*) of the rows: for each hash, two rows agree with probability exactly their min-max kernel.

    Arrays: `r`, `log_c`, `beta`, each (2·input_dim, s) float64. All arithmetic is in float64 whatever the map's
    dtype, so that a code does not hang on the precision of the tables.
    """

    def __init__(self, spec: MapSpec, arrays: Arrays) -> None:
        if not isinstance(spec.kernel, GeneralizedMinMax):
            raise TypeError(f"kernel {spec.kernel.kind} is not hashed")
        self.spec = spec
        self._s: int = arrays["r"].shape[1]
        self.kernel = spec.kernel.rounded(spec.numpy_dtype)
        self.arrays = arrays
        self._tables = (arrays["r"], arrays["log_c"], arrays["beta"])

    @staticmethod
    def frozen_bytes(spec: MapSpec) -> int:
        """Size of the arrays that `build` will make."""
        return 3 * 2 * spec.input_dim * (spec.s or 0) * 8

    @staticmethod
    def build(spec: MapSpec) -> Built:
        """Draw the tables."""
        s = spec.s or 0
        r, log_c, beta = (np.empty((2 * spec.input_dim, s)) for _ in range(3))
        sampling_parameters(np.uint64(spec.seed), 0, r, log_c, beta)
        return Built({"r": r, "log_c": log_c, "beta": beta}, s, s, ())

    @property
    def gram_dtype(self) -> np.dtype[Any]:
        """Dtype of a Gram block."""
        return np.dtype(np.float64)

    @property
    def n_output(self) -> int:
        """Number of codes of a row."""
        return self._s

    @property
    def bytes(self) -> int:
        """Memory of the opened map."""
        return sum(array.nbytes for array in self.arrays.values())

    def pairs(self, rows: Rows) -> Codes:
        """(i*, t*) of each row and hash, int64 of shape (n, s, 2); a row without a sample gets −1 in both."""
        return self._codes(rows, slice(0, self._s), np.dtype(np.int64), 2)

    def zero_bit(self, rows: Rows) -> Codes:
        """i* alone, shape (n, s), int32 while the coordinates fit; −1 for a row without a sample."""
        dtype = np.dtype(np.int32 if 2 * self.spec.input_dim <= np.iinfo(np.int32).max else np.int64)
        return self._codes(rows, slice(0, self._s), dtype, 1)[:, :, 0]

    def gram(self, x: Rows, y: Rows) -> NDArray[np.float64]:
        """Collision rate of (i*, t*), rows (n, d) and (m, d) to (n, m): the unbiased estimate of the kernel."""
        equal = np.zeros((x.shape[0], y.shape[0]), np.int64)
        for hashes in row_blocks(self._s, _ENTRIES_PER_BLOCK // max(1, x.shape[0] + y.shape[0])):
            x_codes, y_codes = (self._codes(rows, hashes, np.dtype(np.int64), 2) for rows in (x, y))
            refuse_unsampled(x_codes, "/x")
            refuse_unsampled(y_codes, "/y")
            count_collisions(x_codes, y_codes, equal)
        return equal / self._s

    def hash_operations(self, rows: Rows) -> int:
        """Multiplications that take as long as hashing the rows."""
        return int(_OPERATIONS_PER_HASH * rows.size * self._s)

    def gram_operations(self, x: Rows, y: Rows) -> int:
        """Multiplications that take as long as `gram`, which compares every code with every other."""
        compared = _OPERATIONS_PER_HASH * x.shape[0] * y.shape[0] * self._s
        return int(self.hash_operations(x) + self.hash_operations(y) + compared)

    def exact_gram(self, x: Rows, y: Rows) -> NDArray[np.float64]:
        """The min-max kernel itself, (n, m)."""
        return self.kernel.gram(dense(x), dense(y))

    def exact_pairs(self, x: Rows, y: Rows) -> NDArray[np.float64]:
        """The min-max kernel of row i of x with row i of y, (n,)."""
        return self.kernel.pairs(dense(x), dense(y))

    def _codes(self, rows: Rows, hashes: slice, dtype: np.dtype[Any], width: int) -> Codes:
        codes = np.empty((rows.shape[0], hashes.stop - hashes.start, width), dtype)
        for block in row_blocks(rows.shape[0], _ENTRIES_PER_BLOCK * rows.shape[0] // max(1, rows.size)):
            row, coordinate, logs = self._entries(rows[block])
            indptr = np.searchsorted(row, np.arange(block.stop - block.start + 1))
            consistent_samples(indptr, coordinate, logs, *self._tables, hashes.start, codes[block])
        return codes

    def _entries(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Row, coordinate of the transformed 2d-vector, and p·log ũ of every non-zero entry, ordered by row."""
        if isinstance(rows, np.ndarray) or self.kernel.center is not None:
            centered = self.kernel.centered(dense(rows))
            row, column = np.nonzero(centered)
            values = centered[row, column]
        else:
            stored = rows.data != 0
            row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[stored]
            column = rows.indices[stored].astype(np.int64)
            values = rows.data[stored].astype(np.float64)
        coordinate = 2 * column + (values < 0)
        np.abs(values, out=values)
        np.log(values, out=values)
        values *= self.kernel.p
        return row, coordinate, values


def refuse_unsampled(codes: Codes, pointer: str, first_row: int = 0) -> None:
    """Raise InvalidInput naming the rows of codes (n, s) or (n, s, k) that have no sample, if there are any.

    Args:
        codes: −1 where a row has none.
        pointer: where the rows stood in the request.
        first_row: number of the first row among those posted.
    """
    first_hash = codes[:, 0] if codes.ndim == 2 else codes[:, 0, 0]
    unsampled = np.flatnonzero(first_hash < 0) + first_row
    if unsampled.size:
        raise InvalidInput(
            f"no sample of row {named(unsampled)}: it is all zero (after centering), or its codes are -1",
            f"{pointer}/{unsampled[0]}",
        )
