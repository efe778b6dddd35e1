"""The dense projection: phases by a product with the matrix of frequencies."""

import numpy as np

from app.core.arrays import Floats, Rows, row_blocks
from app.core.maps.fourier.projection import Projection
from app.core.maps.terms import Arrays, BaseSpec, FrozenArray

# Entries of the matrix looked at together.
_ENTRIES_PER_BLOCK = 1 << 18


class DenseProjection(Projection):
    """Phases w_l·x for frequencies w_l that are frozen as the array `frequencies`, (n_frequencies, d)."""

    def __init__(self, spec: BaseSpec, arrays: Arrays) -> None:
        frequencies = arrays["frequencies"]
        self.n_frequencies, self.bytes = len(frequencies), frequencies.nbytes
        # (d, n_frequencies) and contiguous: the layout that dense and sparse products both take without a copy.
        self._directions: Floats = np.ascontiguousarray(frequencies.T)
        with np.errstate(over="ignore"):  # an infinite norm takes no entry but 0
            self.largest_norm = max(
                float(np.abs(frequencies[block]).sum(axis=1, dtype=np.float64).max())
                for block in row_blocks(len(frequencies), _ENTRIES_PER_BLOCK // frequencies.shape[1])
            )

    @classmethod
    def frozen(cls, spec: BaseSpec, s: int) -> dict[str, FrozenArray]:
        """The matrix of frequencies."""
        return {"frequencies": FrozenArray((s, spec.input_dim), spec.numpy_dtype)}

    @property
    def frequencies(self) -> Floats:
        """w, (n_frequencies, d), held."""
        return self._directions.T

    def operations(self, rows: Rows) -> int:
        """Multiplications that the phases of the rows take."""
        return int(rows.size * self._directions.shape[1])

    def project(self, rows: Rows, frequencies: slice, out: Floats) -> None:
        """Write the phases of the rows (n, d) and of some k frequencies into `out`, (n, k)."""
        directions = self._directions[:, frequencies]
        if isinstance(rows, np.ndarray):
            np.matmul(rows, directions, out=out)
        else:
            out[...] = rows @ directions
