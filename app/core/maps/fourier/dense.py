"""The dense projection: phases by a product with the matrix of frequencies."""

import numpy as np

from app.core.arrays import Floats, Rows, row_blocks
from app.core.maps.terms import Arrays, BaseSpec, FrozenArray

# Entries of the matrix looked at together.
_ENTRIES_PER_BLOCK = 1 << 18


class DenseProjection:
    """Phases w_l·x for frequencies w_l that are frozen as the array `frequencies`, (n_frequencies, d).

    A projection owns the frozen arrays that say what the frequencies are, and all that is computed from them.
    """

    def __init__(self, arrays: Arrays) -> None:
        frequencies = arrays["frequencies"]
        # (d, n_frequencies) and contiguous: the layout that dense and sparse products both take without a copy.
        self._directions: Floats = np.ascontiguousarray(frequencies.T)
        with np.errstate(over="ignore"):  # an infinite norm takes no entry but 0
            self.largest_norm = max(
                float(np.abs(frequencies[block]).sum(axis=1, dtype=np.float64).max())
                for block in row_blocks(len(frequencies), _ENTRIES_PER_BLOCK // frequencies.shape[1])
            )
            """The largest |w_l|₁: no phase is larger than this times the largest entry of a row."""

    @staticmethod
    def frozen(spec: BaseSpec, s: int) -> dict[str, FrozenArray]:
        """The arrays that say what s frequencies are."""
        return {"frequencies": FrozenArray((s, spec.input_dim), spec.numpy_dtype)}

    @property
    def frequencies(self) -> Floats:
        """w, (n_frequencies, d)."""
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
