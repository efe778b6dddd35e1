"""Signed codes of rows: for each frequency, on which side of a random threshold the cosine of its phase lies."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Floats, Matrix, Rows
from app.core.compiled import compiled, multiply_add
from app.core.hashing.encodings import Codes
from app.core.hashing.signed_codes import Arcs, arcs
from app.core.maps.fourier.phases import Phases
from app.core.maps.fourier.projection import Projection
from app.core.maps.terms import BaseSpec
from app.core.progress import Pause

_PER_RADIAN = 1 / (2 * np.pi)
_BITS_PER_BYTE = 8


class Signs:
    """Makes the bits of a map's rows, one for each frequency, packed as Raginsky and Lazebnik (2009) define them.

    The sign of cos(w·x + b) + t is never computed: whether it is positive depends on where the phase lies on the
    circle, and that is told by one multiplication, one addition and a comparison. So a bit hangs on no library's
    cosine, and it is the same for every order, batch and form of the rows, as phases are.
    """

    def __init__(self, spec: BaseSpec, projection: Projection, threads: int) -> None:
        self._phases, self._seed = Phases(spec, projection, threads), spec.seed

    @property
    def nbytes(self) -> int:
        """Memory of the arcs, once the first codes are asked for."""
        return 16 * self._phases.n_frequencies

    @cached_property
    def _arcs(self) -> Arcs:
        return arcs(self._seed, self._phases.n_frequencies)

    def of(self, rows: Rows, pause: Pause) -> Codes:
        """The bits of prepared rows (n, d), uint8 (n, ⌈s/8⌉): frequency j is bit j mod 8 of byte ⌊j/8⌋."""
        s = self._phases.n_frequencies
        packed = np.empty((rows.shape[0], -(-s // _BITS_PER_BYTE)), np.uint8)

        def write(block: slice, of: slice, phases: Floats) -> None:
            write_signs(phases, self._arcs.offsets[of], self._arcs.half_widths[of], packed[block], of.start // 8)

        self._phases.use(rows, slice(0, s), write, pause)
        return packed


@compiled
def write_signs(
    phases: Floats, offsets: Matrix, half_widths: Matrix, packed: NDArray[np.uint8], first_byte: int
) -> None:
    """Write the bits of k frequencies into the packed bits of n rows, from a byte on.

    Args:
        phases: in the first k columns of n rows.
        offsets: of the arcs, in turns, (k,).
        half_widths: of the arcs, in turns, (k,).
        packed: (n, ⌈s/8⌉).
        first_byte: that of the first frequency.
    """
    k = len(offsets)
    near = np.empty(k, np.uint8)
    for i in range(len(phases)):
        row = phases[i, :k]
        for j in range(k):
            turns = multiply_add(np.float64(row[j]), _PER_RADIAN, offsets[j])
            # From the middle of the arc, of either side; a whole number of turns is no way at all.
            near[j] = abs(turns - np.floor(turns + 0.5)) < half_widths[j]
        for byte in range((k + 7) // 8):
            bits = 0
            for j in range(8 * byte, min(8 * byte + 8, k)):
                bits |= near[j] << (j - 8 * byte)
            packed[i, first_byte + byte] = bits
