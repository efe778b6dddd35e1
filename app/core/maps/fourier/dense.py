"""The dense projection: phases by a product with the matrix of frequencies."""

from collections.abc import Callable

import numpy as np

from app.core.arrays import Floats, Rows, row_blocks
from app.core.building import Building
from app.core.maps.fourier.drawing import draw_dense
from app.core.maps.fourier.projection import Drawn, Projection
from app.core.maps.terms import Arrays, BaseSpec, FrozenArray
from app.core.panels import Panels

# Entries of the matrix looked at together.
_ENTRIES_PER_BLOCK = 1 << 18
# A set as it is frozen, and the map that holds it: for a coordinate of a frequency, and for that of all.
_BYTES_PER_COORDINATE = 16


class DenseProjection(Projection):
    """Phases w_l·x for frequencies w_l that are frozen as the array `frequencies`, (n_frequencies, d)."""

    def __init__(self, spec: BaseSpec, arrays: Arrays) -> None:
        frequencies = arrays["frequencies"]
        self.n_frequencies = len(frequencies)
        self._panels = Panels(frequencies)
        self.bytes, self.frequencies_per_block = self._panels.nbytes, self._panels.step
        with np.errstate(over="ignore"):  # an infinite norm takes no entry but 0
            self.largest_norm = max(
                float(np.abs(frequencies[block]).sum(axis=1, dtype=np.float64).max())
                for block in row_blocks(len(frequencies), _ENTRIES_PER_BLOCK // frequencies.shape[1])
            )

    @classmethod
    def frozen(cls, spec: BaseSpec, s: int) -> dict[str, FrozenArray]:
        """The matrix of frequencies."""
        return {"frequencies": FrozenArray((s, spec.input_dim), spec.numpy_dtype)}

    @classmethod
    def opening_bytes(cls, spec: BaseSpec, s: int) -> int:
        """Memory of the matrix in two layouts, in float64."""
        return _BYTES_PER_COORDINATE * spec.input_dim * (s + 1)

    @classmethod
    def draw(cls, spec: BaseSpec, rng: np.random.Generator, building: Building) -> Drawn:
        """Draw the matrix and the weights."""
        return draw_dense(spec, rng, building)

    @property
    def frequencies(self) -> Floats:
        """w, (n_frequencies, d), in memory of their own."""
        return self._panels.matrix

    def operations(self, rows: Rows) -> int:
        """Multiplications that the phases of the rows take."""
        return self._panels.operations(rows)

    def projector(self, rows: Rows) -> Callable[[slice, Floats], None]:
        """The product of the rows with the frequencies."""
        return self._panels.multiplier(rows)
